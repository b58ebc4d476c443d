"""The registry of cleaning rules.

To add a rule, add it to RULES and, at the same position, to ``mt.config.CLEANING_RULES``.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import datasets
import ftfy
import ftfy.badness
import numpy as np

from mt.data.cleaning.batch import PairBatch
from mt.data.cleaning.correspondence import items_differ, numbers_differ
from mt.data.cleaning.findings import CleaningFindings
from mt.data.cleaning.sides import LETTER_RUN, CorpusSide
from mt.data.cleaning.translations import MIN_TRAIN_PAIRS, score_translations
from mt.data.cleaning.whole_corpus import MAX_DEVIATIONS, boilerplate, duplicates, length_deviations
from mt.data.sentence_key import combined_hash

logger = logging.getLogger(__name__)

MAX_TOKEN_CHARACTERS = 10
"""The most characters in a token, on average over the tokens of a text, that any tokenizer reaches."""
MIN_LETTER_SHARE = 0.2
MIN_CHARACTERS = 8
"""The rule ``letters`` does not judge texts with fewer characters."""


@dataclass(frozen=True)
class Measures:
    """The measures of N pairs, those of all splits, for the rules that judge a pair by the whole corpus."""

    pairs: datasets.Dataset
    """The training pairs, then the validation and test pairs."""
    train_pairs: int
    """The number of training pairs. Statistics are computed from these alone."""
    lengths: np.ndarray
    """(N, 2) int32: the number of characters of the source and of the target, white space not included."""
    keys: np.ndarray
    """(N, 2) int64: hashes of the source and of the target, which are equal for texts that differ only in case,
    punctuation and digits."""


class Rule(NamedTuple):
    """A cleaning rule. Either ``find`` judges batches of pairs, or ``judge`` judges all pairs at once."""

    description: str
    find: Callable[[PairBatch], np.ndarray] | None = None
    """Returns whether each of the N pairs of a batch is faulty, (N,) bool."""
    judge: Callable[[Measures, CleaningFindings], np.ndarray] | None = None
    """Returns the rows of faulty pairs, given the findings of earlier rules. A rule with scores adds its scores to the
    findings."""


def is_misread(text: str) -> bool:
    """Return whether a text was probably decoded with the wrong encoding, as ``Ã¼`` for ``ü``."""
    return not text.isascii() and ftfy.badness.is_bad(text) and ftfy.fix_encoding(text) != text


def _encoding_is_wrong(source: str, target: str) -> bool:
    return is_misread(source) or is_misread(target) or source.count("\ufffd") != target.count("\ufffd")


def _each_pair(is_faulty: Callable[[str, str], bool]) -> Callable[[PairBatch], np.ndarray]:
    """Return the ``find`` of a rule that judges a source and its target by themselves."""
    return lambda batch: np.array(list(map(is_faulty, *batch.texts)), dtype=bool)


def _is_too_long(batch: PairBatch) -> np.ndarray:
    return np.any(batch.lengths > MAX_TOKEN_CHARACTERS * batch.max_length, axis=1)


def _has_few_letters(batch: PairBatch) -> np.ndarray:
    letters = np.stack([letters.letters for letters in batch.letters], axis=1)
    return np.any((batch.lengths >= MIN_CHARACTERS) & (letters < MIN_LETTER_SHARE * batch.lengths), axis=1)


def _is_copy(batch: PairBatch) -> np.ndarray:
    is_equal = batch.keys[:, 0] == batch.keys[:, 1]
    for row in np.flatnonzero(is_equal).tolist():
        is_equal[row] = len(LETTER_RUN.findall(batch.texts[0][row])) > 1  # a single word may be a name
    return is_equal


def _is_in_foreign_script(batch: PairBatch) -> np.ndarray:
    return np.logical_or(*map(CorpusSide.foreign_scripts, batch.sides, batch.letters))


def _is_in_foreign_language(batch: PairBatch) -> np.ndarray:
    _, margins = zip(*batch.other_languages, strict=True)
    return np.logical_or(
        *map(CorpusSide.foreign_languages, batch.sides, batch.texts, batch.texts[::-1], batch.letters, margins)
    )


def _unusual_lengths(measures: Measures, findings: CleaningFindings) -> np.ndarray:
    findings.scores["length"] = deviations = length_deviations(measures.lengths, measures.train_pairs)
    return np.flatnonzero(np.abs(deviations) > MAX_DEVIATIONS)


def _wrong_translations(measures: Measures, findings: CleaningFindings) -> np.ndarray:
    """Judge the pairs that no earlier rule finds."""
    rows = np.flatnonzero(findings.rule_numbers == 0)
    result = score_translations(measures.pairs, rows, int((rows < measures.train_pairs).sum()))
    if result is None:
        logger.warning(
            "cleaning: the rule translation is left out: it needs at least %s training pairs without other faults",
            f"{MIN_TRAIN_PAIRS:,}",
        )
        return rows[:0]
    scores, is_translation, findings.random_scores["translation"] = result
    findings.scores["translation"] = np.full(len(measures.pairs), np.nan, dtype=np.float32)
    findings.scores["translation"][rows] = scores
    return rows[~is_translation]


def _duplicate_rows(measures: Measures, findings: CleaningFindings) -> np.ndarray:
    """Return the training pairs that repeat an earlier one, of the pairs that no earlier rule finds."""
    rows = np.flatnonzero(findings.by_split["train"] == 0)
    return rows[duplicates(combined_hash(*measures.keys[rows].T))]


RULES = {
    "long": Rule(
        "a side has more than ten times data.max_length characters, so that it would have too many tokens", _is_too_long
    ),
    "encoding": Rule(
        "the text was once read in a wrong encoding, or holds characters that could not be read",
        _each_pair(_encoding_is_wrong),
    ),
    "letters": Rule("less than a fifth of the characters of a side are letters", _has_few_letters),
    "copy": Rule("both sides are the same but for case and punctuation", _is_copy),
    "script": Rule("a side is in another script than most of its column", _is_in_foreign_script),
    "language": Rule("a side is in another language than it should be", _is_in_foreign_language),
    "items": Rule("a link, an address, a tag or a placeholder is on one side only", _each_pair(items_differ)),
    "numbers": Rule("a number is another one on the other side", _each_pair(numbers_differ)),
    "length": Rule(
        "one side is far longer or shorter, for a text of its length, than is usual in this corpus",
        judge=_unusual_lengths,
    ),
    "translation": Rule(
        "the words of the two sides go together no better than those of pairs matched at random",
        judge=_wrong_translations,
    ),
    "boilerplate": Rule(
        "a text that is repeated many times, with a translation that is not one of the usual ones",
        judge=lambda measures, _: np.flatnonzero(boilerplate(measures.keys[: measures.train_pairs])),
    ),
    "duplicate": Rule("an earlier pair is the same but for case, punctuation and digits", judge=_duplicate_rows),
}
"""Maps the name of each rule to the rule, in the order of application."""
