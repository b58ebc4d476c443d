"""The cleaning rules and their registry.

To add a rule, add it to RULES and, at the same position, to ``mt.config.CLEANING_RULES``.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import datasets
import ftfy
import ftfy.badness
import numpy as np
import regex

from mt.data.cleaning.findings import CleaningFindings
from mt.data.cleaning.sides import ANY_DIGIT, LETTER_RUN, CorpusSide, Letters
from mt.data.cleaning.translations import MIN_TRAIN_PAIRS, class_edges, score_translations
from mt.data.pairs import TextPairs, combined_hash, sentence_key
from mt.formats.kinds import KINDS
from mt.text.numbers import HOURS_PER_DAY, HOURS_PER_HALF_DAY, find_numbers

logger = logging.getLogger(__name__)

MAX_DEVIATIONS = 5.0
"""The most standard deviations by which the ratio of lengths may differ from the median."""
MIN_DEVIATION = 0.1
"""The smallest standard deviation of the ratio's logarithm that is assumed."""
LENGTH_CLASSES = 40
"""The most classes of lengths, each with its own median."""
MEDIAN_DEVIATION_TO_STANDARD = 1.4826
"""The standard deviation of normally distributed values divided by their median absolute deviation."""
MIN_REPEATS, MIN_TRANSLATIONS, USUAL_SHARE = 50, 10, 0.1
"""A text is boilerplate if it occurs at least MIN_REPEATS times with at least MIN_TRANSLATIONS different translations.
A translation is usual if it has at least USUAL_SHARE of the occurrences."""

CONVERSIONS = (1 / 0.3048, 1 / 0.4047, 1 / 0.4536, 1.609, 2.54)
"""Feet in a metre, acres in a hectare, pounds in a kilogram, kilometres in a mile, centimetres in an inch. Translators
convert measures for their readers."""
MIN_CONVERTED = 10
"""The smallest number that can be a converted measure. Smaller numbers have the ratios in CONVERSIONS by chance."""
MIN_CONVERTED_DIGITS = 2
"""The number of leading digits that must be right in a converted measure. The others may be rounded to zeros."""
DIGITS = regex.compile(r"\d+")
MAX_DIGITS = 15

TAG = r"</?[A-Za-z][A-Za-z0-9]{0,20}(?:\s[^<>]{0,200}=[^<>]{0,1000})?\s?/?>|<!--[^<>]{0,1000}-->"
"""A pattern for a tag of HTML or XML. Its attributes must have values, so <file object> in a text is no tag."""
ITEM = regex.compile(
    f"(?P<tag>{TAG})|{KINDS['entity']}|{KINDS['placeholder in braces']}|{KINDS['directive']}|{KINDS['link']}"
    f"|{KINDS['e-mail address']}"
)
MAY_HOLD_ITEMS = regex.compile(r"[<&{%@]|://|www\.")
"""Matches in every text with an item. A text without a match is not searched further, which saves time."""

MAX_TOKEN_CHARACTERS = 10
"""The most characters in a token, on average over the tokens of a text, that any tokenizer reaches."""
MIN_LETTER_SHARE = 0.2
MIN_CHARACTERS = 8
"""The rule ``letters`` does not judge texts with fewer characters."""


@dataclass(frozen=True)
class PairBatch:
    """Some thousand pairs to judge. Everything that is given for both sides has the source first."""

    texts: TextPairs
    keys: np.ndarray
    """(N, 2) int64: the ``sentence_key`` of each source and each target."""
    sides: tuple[CorpusSide, CorpusSide]
    """The statistics of the sources and of the targets of the corpus."""
    max_length: int
    """The setting ``data.max_length``, in tokens."""

    @cached_property
    def letters(self) -> tuple[Letters, Letters]:
        """The counts of letters in the sources, and in the targets."""
        return self.sides[0].count(self.texts[0]), self.sides[1].count(self.texts[1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """(N, 2) int32: the number of characters of each text, whitespace not included."""
        return np.stack([letters.characters for letters in self.letters], axis=1)

    @cached_property
    def other_languages(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The result of ``CorpusSide.judge`` for the sources and for the targets: the index of the likeliest other
        language of each text (N,), and its margin (N,)."""
        return list(map(CorpusSide.judge, self.sides, self.texts))

    @property
    def margins(self) -> np.ndarray:
        """(N,) float32: the larger margin of the two sides. A margin is the log-likelihood ratio of the likeliest other
        language and the right language."""
        return np.maximum(*(margins for _, margins in self.other_languages))

    @property
    def exchanged(self) -> np.ndarray:
        """(N,) bool: whether the source is in the target language and the target in the source language."""
        (sources, source_margins), (targets, target_margins) = self.other_languages
        source, target = self.sides
        return (source_margins > 0) & target.owns(sources) & (target_margins > 0) & source.owns(targets)

    def keys_without_digits(self) -> np.ndarray:
        """Return the ``sentence_key`` of each text after every digit was replaced by 0, (N, 2) int64."""
        keys = self.keys.copy()
        for side, texts in enumerate(self.texts):
            for row, text in enumerate(texts):
                if ANY_DIGIT.search(text):
                    keys[row, side] = sentence_key(ANY_DIGIT.sub("0", text))
        return keys


def length_deviations(lengths: np.ndarray, train_pairs: int) -> np.ndarray:
    """Return how unusual the length ratio of each pair is for its length, in standard deviations, (N,) float32.

    The pairs are divided into classes by length. The median and the median absolute deviation of the logarithms of the
    ratios in a class describe good pairs, as long as most pairs are good.

    Args:
        lengths: The number of characters of each source and target, (N, 2).
        train_pairs: The number of training pairs, the first rows. The statistics are computed from these alone.
    """
    lengths = np.maximum(1, lengths)
    ratios = np.log(lengths[:, 1] / lengths[:, 0]).astype(np.float32)
    total = lengths.sum(axis=1)
    edges = class_edges(total[:train_pairs], LENGTH_CLASSES, train_pairs)
    classes = np.searchsorted(edges, total)
    for number in np.unique(classes):
        members = classes == number
        usual = ratios[:train_pairs][members[:train_pairs]]
        if len(usual):
            median = np.median(usual)
            deviation = MEDIAN_DEVIATION_TO_STANDARD * np.median(np.abs(usual - median))
            ratios[members] = (ratios[members] - median) / max(deviation, MIN_DEVIATION)
    return ratios


def boilerplate(keys: np.ndarray) -> np.ndarray:
    """Return whether a text of each pair is boilerplate and the translation of it is not usual, (N,) bool.

    Args:
        keys: Hashes of each source and target, (N, 2), which are equal for equal texts.
    """
    is_boilerplate = np.zeros(len(keys), dtype=bool)
    for side in (0, 1):
        _, text, repeats = np.unique(keys[:, side], return_inverse=True, return_counts=True)
        rows = np.flatnonzero(repeats[text] >= MIN_REPEATS)
        text = text[rows]
        _, first, pair, pair_repeats = np.unique(
            combined_hash(*keys[rows].T), return_index=True, return_inverse=True, return_counts=True
        )
        translations = np.bincount(text[first], minlength=len(repeats))
        is_unusual = pair_repeats[pair] < USUAL_SHARE * repeats[text]
        is_boilerplate[rows] |= is_unusual & (translations[text] >= MIN_TRANSLATIONS)
    return is_boilerplate


def has_mistranslated_number(source: str, target: str) -> bool:
    """Return whether a number of the source was probably mistranslated as another number.

    Numbers that both sides have are ignored, also if they are grouped differently (1,250 and 1 250). The result is True
    only if both sides have equally many other numbers, with equally many digits, and none of them can be the same hour
    or the same measure in other units. Otherwise a number may be missing because it is written in words (6:30, halb
    sieben).
    """
    if sorted(DIGITS.findall(source)) == sorted(DIGITS.findall(target)):
        return False  # which saves time
    left, right = _numbers(source), _numbers(target)
    left, right = left - right, right - left
    lengths, other_lengths = (sorted(len(str(number)) for number in side.elements()) for side in (left, right))
    if not left or lengths != other_lengths:
        return False
    return not any(_may_be_equal(number, other) for number in left for other in right)


def items_differ(source: str, target: str) -> bool:
    """Return whether one side has a link, an e-mail address, a tag, an entity or a placeholder that the other side
    lacks. Of tags, only the number is compared, because their attributes may be translated.
    """
    if not (MAY_HOLD_ITEMS.search(source) or MAY_HOLD_ITEMS.search(target)):
        return False
    items, other_items = (
        Counter("tag" if match["tag"] else match.group() for match in ITEM.finditer(text)) for text in (source, target)
    )
    return items != other_items


def _numbers(text: str) -> Counter[int]:
    """Return the numbers in a text, and how often each occurs. The digits after a decimal separator are another number.
    Numbers of more than MAX_DIGITS digits are left out."""
    return Counter(int(part) for _, digits in find_numbers(text) for part in digits if len(part) <= MAX_DIGITS)


def _may_be_equal(number: int, other: int) -> bool:
    """Return whether two different numbers can mean the same hour, or the same measure in other units."""
    low, high = sorted((number, other))
    if high - low == HOURS_PER_HALF_DAY and high <= HOURS_PER_DAY:
        return True
    return low >= MIN_CONVERTED and any(
        _round_like(high, low * factor) == high or _round_like(low, high / factor) == low for factor in CONVERSIONS
    )


def _round_like(number: int, value: float) -> int:
    """Return a value rounded to as many digits as ``number`` has before its final zeros, but at least to
    MIN_CONVERTED_DIGITS."""
    digits = max(MIN_CONVERTED_DIGITS, len(str(number).rstrip("0")))
    return round(float(f"{value:.{digits - 1}e}"))


class Rule(NamedTuple):
    """A cleaning rule. Either ``find`` judges batches of pairs, or ``judge`` judges all pairs at once."""

    description: str
    find: Callable[[PairBatch], np.ndarray] | None = None
    """Returns whether each of the N pairs of a batch is faulty, (N,) bool."""
    judge: Callable[[datasets.Dataset, CleaningFindings], np.ndarray] | None = None
    """Returns the rows of faulty pairs, given all pairs, their measures and the findings of earlier rules. Statistics
    are computed from the training pairs alone. A rule with scores adds its scores to the findings."""


def is_misread(text: str) -> bool:
    """Return whether a text was probably decoded with the wrong encoding, as ``Ã¼`` for ``ü``."""
    return not text.isascii() and ftfy.badness.is_bad(text) and ftfy.fix_encoding(text) != text


def _each_pair(is_faulty: Callable[[str, str], bool]) -> Callable[[PairBatch], np.ndarray]:
    """Return the ``find`` of a rule that judges a source and its target by themselves."""
    return lambda batch: np.array(list(map(is_faulty, *batch.texts)), dtype=bool)


def _has_few_letters(batch: PairBatch) -> np.ndarray:
    letters = np.stack([letters.letters for letters in batch.letters], axis=1)
    return np.any((batch.lengths >= MIN_CHARACTERS) & (letters < MIN_LETTER_SHARE * batch.lengths), axis=1)


def _is_copy(batch: PairBatch) -> np.ndarray:
    is_equal = batch.keys[:, 0] == batch.keys[:, 1]
    for row in np.flatnonzero(is_equal).tolist():
        is_equal[row] = len(LETTER_RUN.findall(batch.texts[0][row])) > 1  # a single word may be a name
    return is_equal


def _is_in_foreign_language(batch: PairBatch) -> np.ndarray:
    _, margins = zip(*batch.other_languages, strict=True)
    return np.logical_or(
        *map(CorpusSide.foreign_languages, batch.sides, batch.texts, batch.texts[::-1], batch.letters, margins)
    )


def _unusual_lengths(pairs: datasets.Dataset, findings: CleaningFindings) -> np.ndarray:
    findings.scores["length"] = deviations = length_deviations(findings.lengths, findings.sizes["train"])
    return np.flatnonzero(np.abs(deviations) > MAX_DEVIATIONS)


def _mistranslated_rows(pairs: datasets.Dataset, findings: CleaningFindings) -> np.ndarray:
    """Judge the pairs that no earlier rule finds."""
    rows = np.flatnonzero(findings.rule_numbers == 0)
    train_pairs = int((rows < findings.sizes["train"]).sum())
    if train_pairs < MIN_TRAIN_PAIRS:
        logger.warning(
            "cleaning: the rule translation is left out: it needs at least %s training pairs without other faults",
            f"{MIN_TRAIN_PAIRS:,}",
        )
        return rows[:0]
    scores, is_translation, findings.random_scores["translation"] = score_translations(pairs, rows, train_pairs)
    findings.scores["translation"] = np.full(len(pairs), np.nan, dtype=np.float32)
    findings.scores["translation"][rows] = scores
    return rows[~is_translation]


def _duplicate_rows(pairs: datasets.Dataset, findings: CleaningFindings) -> np.ndarray:
    """Return the training pairs that repeat an earlier one, of the pairs that no earlier rule finds."""
    rows = np.flatnonzero(findings.by_split["train"] == 0)
    _, first = np.unique(combined_hash(*findings.keys[rows].T), return_index=True)
    return np.delete(rows, first)


RULES = {
    "long": Rule(
        "a side has more than ten times data.max_length characters, so that it would have too many tokens",
        lambda batch: np.any(batch.lengths > MAX_TOKEN_CHARACTERS * batch.max_length, axis=1),
    ),
    "encoding": Rule(
        "the text was once read in a wrong encoding, or holds characters that could not be read",
        _each_pair(
            lambda source, target: (
                is_misread(source) or is_misread(target) or source.count("\ufffd") != target.count("\ufffd")
            )
        ),
    ),
    "letters": Rule("less than a fifth of the characters of a side are letters", _has_few_letters),
    "copy": Rule("both sides are the same but for case and punctuation", _is_copy),
    "script": Rule(
        "a side is in another script than most of its column",
        lambda batch: np.logical_or(*map(CorpusSide.foreign_scripts, batch.sides, batch.texts, batch.letters)),
    ),
    "language": Rule("a side is in another language than it should be", _is_in_foreign_language),
    "items": Rule("a link, an address, a tag or a placeholder is on one side only", _each_pair(items_differ)),
    "numbers": Rule("a number is another one on the other side", _each_pair(has_mistranslated_number)),
    "length": Rule(
        "one side is far longer or shorter, for a text of its length, than is usual in this corpus",
        judge=_unusual_lengths,
    ),
    "translation": Rule(
        "the words of the two sides go together no better than those of pairs matched at random",
        judge=_mistranslated_rows,
    ),
    "boilerplate": Rule(
        "a text that is repeated many times, with a translation that is not one of the usual ones",
        judge=lambda _, findings: np.flatnonzero(boilerplate(findings.keys[: findings.sizes["train"]])),
    ),
    "duplicate": Rule("an earlier pair is the same but for case, punctuation and digits", judge=_duplicate_rows),
}
"""Maps the name of each rule to the rule, in the order of application."""
