"""The registry of cleaning rules. To add one, add it to RULES and, in its order, to ``mt.config.CLEANING_RULES``."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import datasets
import ftfy
import ftfy.badness
import numpy as np

from mt.data.cleaning.batch import Batch, read_texts
from mt.data.cleaning.correspondence import items_differ, numbers_differ
from mt.data.cleaning.findings import Findings
from mt.data.cleaning.sides import WORD, Side
from mt.data.cleaning.translations import score_translations
from mt.data.cleaning.whole_corpus import MAX_DEVIATIONS, boilerplate, duplicates, length_deviations, pair_hashes

logger = logging.getLogger(__name__)

MAX_CHARACTERS_OF_PIECE = 10
"""No tokenizer has more characters in each token of a text."""
MIN_LETTER_SHARE = 0.2
MIN_CHARACTERS = 8
"""A shorter text may have any characters."""


@dataclass(frozen=True)
class Measures:
    """The measures of all pairs, (N, …), for the rules that judge a pair by the whole corpus."""

    pairs: datasets.Dataset
    """The training pairs, then all others."""
    learnt: int
    """The number of training pairs, which show what is usual."""
    lengths: np.ndarray
    """(N, 2) int32: the number of characters of each side."""
    keys: np.ndarray
    """(N, 2) int64: hashes of the two sides, which are equal if the texts differ in case, punctuation and digits."""


class Rule(NamedTuple):
    """A rule judges either batches of pairs or the whole corpus."""

    description: str
    find: Callable[[Batch], np.ndarray] | None = None
    """Returns which pairs of a batch it finds, (N,) bool."""
    judge: Callable[[Measures, Findings], None] | None = None
    """Judges all pairs, and adds to the findings of earlier rules."""


def is_misread(text: str) -> bool:
    """Return whether a text was decoded by another encoding than it was written in."""
    return not text.isascii() and ftfy.badness.is_bad(text) and ftfy.fix_encoding(text) != text


def _encoding_is_wrong(source: str, target: str) -> bool:
    return is_misread(source) or is_misread(target) or source.count("\ufffd") != target.count("\ufffd")


def _each_pair(is_faulty: Callable[[str, str], bool]) -> Callable[[Batch], np.ndarray]:
    return lambda batch: np.array(list(map(is_faulty, *batch.texts)), dtype=bool)


def _is_too_long(batch: Batch) -> np.ndarray:
    return np.any(batch.lengths > MAX_CHARACTERS_OF_PIECE * batch.max_length, axis=1)


def _has_few_letters(batch: Batch) -> np.ndarray:
    letters = np.stack([letters.letters for letters in batch.letters], axis=1)
    return np.any((batch.lengths >= MIN_CHARACTERS) & (letters < MIN_LETTER_SHARE * batch.lengths), axis=1)


def _is_copy(batch: Batch) -> np.ndarray:
    is_equal = batch.keys[:, 0] == batch.keys[:, 1]
    for row in np.flatnonzero(is_equal).tolist():
        is_equal[row] = len(WORD.findall(batch.texts[0][row])) > 1  # a single word may be a name
    return is_equal


def _is_in_foreign_script(batch: Batch) -> np.ndarray:
    return np.logical_or(*map(Side.foreign_scripts, batch.sides, batch.letters))


def _is_in_foreign_language(batch: Batch) -> np.ndarray:
    _, margins = zip(*batch.other_languages, strict=True)
    return np.logical_or(
        *map(Side.foreign_languages, batch.sides, batch.texts, batch.texts[::-1], batch.letters, margins)
    )


def _judge_lengths(measures: Measures, findings: Findings) -> None:
    findings.scores["length"] = deviations = length_deviations(measures.lengths, measures.learnt)
    findings.mark("length", np.flatnonzero(np.abs(deviations) > MAX_DEVIATIONS))


def _judge_translations(measures: Measures, findings: Findings) -> None:
    rows = np.flatnonzero(findings.numbers == 0)
    learnt = int((rows < measures.learnt).sum())
    result = score_translations(lambda chosen: read_texts(measures.pairs, rows[chosen]), learnt, len(rows))
    if result is None:
        logger.warning("cleaning: there are too few pairs to learn which are translations: that rule finds none")
        return
    scores, is_translation, findings.random_scores["translation"] = result
    findings.mark("translation", rows[~is_translation])
    findings.scores["translation"] = np.full(len(measures.pairs), np.nan, dtype=np.float32)
    findings.scores["translation"][rows] = scores


def _judge_boilerplate(measures: Measures, findings: Findings) -> None:
    findings.mark("boilerplate", np.flatnonzero(boilerplate(measures.keys[: measures.learnt])))


def _judge_duplicates(measures: Measures, findings: Findings) -> None:
    rows = np.flatnonzero(findings.found["train"] == 0)
    findings.mark("duplicate", rows[duplicates(pair_hashes(measures.keys[rows]))])


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
        judge=_judge_lengths,
    ),
    "translation": Rule(
        "the words of the two sides go together no better than those of pairs matched at random",
        judge=_judge_translations,
    ),
    "boilerplate": Rule(
        "a text that is repeated many times, with a translation that is not one of the usual ones",
        judge=_judge_boilerplate,
    ),
    "duplicate": Rule("an earlier pair is the same but for case, punctuation and digits", judge=_judge_duplicates),
}
