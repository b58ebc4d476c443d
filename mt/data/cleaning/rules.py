"""The cleaning rules and their registry.

To add a rule, add an entry to RULES and, at the same position, its name to ``mt.config.CLEANING_RULES``.
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
from mt.data.cleaning.sides import ANY_DIGIT, LETTER_RUN, CorpusSide, LetterCounts
from mt.data.cleaning.translations import MIN_TRAIN_PAIRS, class_edges, score_and_classify
from mt.data.pairs import TextPairs, combined_hash, sentence_key
from mt.formats.kinds import KINDS
from mt.text.numbers import HOURS_PER_DAY, HOURS_PER_HALF_DAY, find_numbers

logger = logging.getLogger(__name__)

MAX_DEVIATIONS = 5.0
"""The maximum distance of a length ratio from the median, in standard deviations."""
MIN_DEVIATION = 0.1
"""The lower bound of the standard deviation of the logarithm of length ratios."""
LENGTH_CLASSES = 40
"""The maximum number of length classes. Each has a median of its own."""
MEDIAN_DEVIATION_TO_STANDARD = 1.4826
"""The ratio of the standard deviation to the median absolute deviation in a normal distribution."""
MIN_REPEATS, MIN_TRANSLATIONS, COMMON_SHARE = 50, 10, 0.1
"""A text is boilerplate if it occurs at least MIN_REPEATS times with at least MIN_TRANSLATIONS different translations.
A translation is common if it has at least COMMON_SHARE of the occurrences."""

CONVERSIONS = (1 / 0.3048, 1 / 0.4047, 1 / 0.4536, 1.609, 2.54)
"""Feet per meter, acres per hectare, pounds per kilogram, kilometers per mile, centimeters per inch. Translators
convert measures for their readers."""
MIN_CONVERTED = 10
"""The smallest number that can be a converted measure. Smaller numbers have the ratios in CONVERSIONS by chance."""
MIN_CONVERTED_DIGITS = 2
"""The number of leading digits that must be right in a converted measure. The others may be rounded to zeros."""
DIGITS = regex.compile(r"\d+")
MAX_DIGITS = 15

TAG = r"</?[A-Za-z][A-Za-z0-9]{0,20}(?:\s[^<>]{0,200}=[^<>]{0,1000})?\s?/?>|<!--[^<>]{0,1000}-->"
"""A pattern for an HTML or XML tag. Its attributes must have values, so it does not match <file object>."""
ITEM = regex.compile(
    f"(?P<tag>{TAG})|{KINDS['entity']}|{KINDS['placeholder in braces']}|{KINDS['directive']}|{KINDS['link']}"
    f"|{KINDS['e-mail address']}"
)
MAY_HOLD_ITEMS = regex.compile(r"[<&{%@]|://|www\.")
"""Matches in every text with an item. To save time, ITEM is not tried on a text without a match."""

MAX_TOKEN_CHARACTERS = 10
"""The maximum number of characters per token of any tokenizer, on average over the tokens of a text."""
MIN_LETTER_SHARE = 0.2
MIN_CHARACTERS = 8
"""The rule ``letters`` does not judge texts with fewer characters."""


@dataclass(frozen=True)
class PairBatch:
    """A few thousand pairs to judge. Attributes with values for both sides have the source first."""

    texts: TextPairs
    keys: np.ndarray
    """(N, 2) int64: the ``sentence_key`` of each source and each target."""
    sides: tuple[CorpusSide, CorpusSide]
    """The statistics of the sources and of the targets of the corpus."""
    max_length: int
    """The setting ``data.max_length``, in tokens."""

    @cached_property
    def letters(self) -> tuple[LetterCounts, LetterCounts]:
        """The counts of letters in the sources, and in the targets."""
        return self.sides[0].count_letters(self.texts[0]), self.sides[1].count_letters(self.texts[1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """(N, 2) int32: the number of characters of each text, whitespace not included."""
        return np.stack([letters.characters for letters in self.letters], axis=1)

    @cached_property
    def language_comparisons(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The results of ``CorpusSide.compare_languages`` for the sources and for the targets: the index of the
        likeliest other language of each text (N,), and its margin (N,)."""
        return list(map(CorpusSide.compare_languages, self.sides, self.texts))

    @property
    def margins(self) -> np.ndarray:
        """(N,) float32: the larger one of the margins of source and target. A margin is the log-likelihood ratio of the
        likeliest other language and the right language."""
        return np.maximum(*(margins for _, margins in self.language_comparisons))

    @property
    def is_swapped(self) -> np.ndarray:
        """(N,) bool: whether the source is in the target language and the target in the source language."""
        (sources, source_margins), (targets, target_margins) = self.language_comparisons
        source, target = self.sides
        is_source_swapped = (source_margins > 0) & target.is_own_label[sources]
        return is_source_swapped & (target_margins > 0) & source.is_own_label[targets]

    def keys_without_digits(self) -> np.ndarray:
        """Return the ``sentence_key`` of each text with every digit replaced by 0, (N, 2) int64."""
        keys = self.keys.copy()
        for side, texts in enumerate(self.texts):
            for row, text in enumerate(texts):
                if ANY_DIGIT.search(text):
                    keys[row, side] = sentence_key(ANY_DIGIT.sub("0", text))
        return keys


def length_deviations(lengths: np.ndarray, train_pairs: int) -> np.ndarray:
    """Return the distance of each pair's length ratio from the median for its length, in standard deviations, (N,)
    float32.

    The pairs are divided into classes by length. In each class, the median and the median absolute deviation of the
    logarithms of the ratios describe correct pairs, as long as most pairs are correct.

    Args:
        lengths: The number of characters of each source and target, (N, 2).
        train_pairs: The number of training pairs, which are the first rows. Statistics are computed from these alone.
    """
    lengths = np.maximum(1, lengths)
    ratios = np.log(lengths[:, 1] / lengths[:, 0]).astype(np.float32)
    total = lengths.sum(axis=1)
    edges = class_edges(total[:train_pairs], LENGTH_CLASSES, train_pairs)
    classes = np.searchsorted(edges, total)
    for number in np.unique(classes):
        members = classes == number
        train_ratios = ratios[:train_pairs][members[:train_pairs]]
        if len(train_ratios):
            median = np.median(train_ratios)
            deviation = MEDIAN_DEVIATION_TO_STANDARD * np.median(np.abs(train_ratios - median))
            ratios[members] = (ratios[members] - median) / max(deviation, MIN_DEVIATION)
    return ratios


def find_boilerplate(keys: np.ndarray) -> np.ndarray:
    """Return whether each pair has a boilerplate text with an uncommon translation, (N,) bool.

    Args:
        keys: Hashes of each source and target, (N, 2). Equal texts have equal hashes.
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
        is_uncommon = pair_repeats[pair] < COMMON_SHARE * repeats[text]
        is_boilerplate[rows] |= is_uncommon & (translations[text] >= MIN_TRANSLATIONS)
    return is_boilerplate


def has_mistranslated_number(source: str, target: str) -> bool:
    """Return whether a number of the source was probably translated as another number.

    Numbers on both sides are ignored, even if they are grouped differently (1,250 and 1 250). The result is True only
    if both sides have the same number of remaining numbers, with the same numbers of digits, and no two of them can be
    the same hour or the same measure in other units. In all other cases, a number may be missing because it is written
    in words (6:30, halb sieben).
    """
    if sorted(DIGITS.findall(source)) == sorted(DIGITS.findall(target)):
        return False  # saves time
    left, right = _count_numbers(source), _count_numbers(target)
    left, right = left - right, right - left
    lengths, other_lengths = (sorted(len(str(number)) for number in side.elements()) for side in (left, right))
    if not left or lengths != other_lengths:
        return False
    return not any(_may_be_converted(number, other) for number in left for other in right)


def has_unmatched_item(source: str, target: str) -> bool:
    """Return whether a link, an e-mail address, a tag, an entity or a placeholder is on one side only.

    Tags are only counted, because their attributes may be translated.
    """
    if not (MAY_HOLD_ITEMS.search(source) or MAY_HOLD_ITEMS.search(target)):
        return False
    items, other_items = (
        Counter("tag" if match["tag"] else match.group() for match in ITEM.finditer(text)) for text in (source, target)
    )
    return items != other_items


def _count_numbers(text: str) -> Counter[int]:
    """Count the occurrences of each number in a text.

    The digits after a decimal separator are a number of their own. Numbers of more than MAX_DIGITS digits are skipped.
    """
    return Counter(int(part) for _, digits in find_numbers(text) for part in digits if len(part) <= MAX_DIGITS)


def _may_be_converted(number: int, other: int) -> bool:
    """Return whether two different numbers can mean the same hour, or the same measure in other units."""
    low, high = sorted((number, other))
    if high - low == HOURS_PER_HALF_DAY and high <= HOURS_PER_DAY:
        return True
    return low >= MIN_CONVERTED and any(
        _round_to_digits_of(high, low * factor) == high or _round_to_digits_of(low, high / factor) == low
        for factor in CONVERSIONS
    )


def _round_to_digits_of(number: int, value: float) -> int:
    """Round a value to the number of digits that ``number`` has before its trailing zeros, and at least to
    MIN_CONVERTED_DIGITS."""
    digits = max(MIN_CONVERTED_DIGITS, len(str(number).rstrip("0")))
    return round(float(f"{value:.{digits - 1}e}"))


class Rule(NamedTuple):
    """A cleaning rule. It has either ``match_batch`` for batches of pairs, or ``match_corpus`` for all pairs at
    once."""

    description: str
    match_batch: Callable[[PairBatch], np.ndarray] | None = None
    """Returns whether each of the N pairs of a batch is faulty, (N,) bool."""
    match_corpus: Callable[[datasets.Dataset, CleaningFindings], np.ndarray] | None = None
    """Returns the rows of faulty pairs, given all pairs and the findings of earlier rules. Statistics are computed from
    the training pairs alone. A rule with scores adds these to the findings."""


def is_mojibake(text: str) -> bool:
    """Return whether a text was probably decoded with the wrong encoding, such as ``Ã¼`` for ``ü``."""
    return not text.isascii() and ftfy.badness.is_bad(text) and ftfy.fix_encoding(text) != text


def _match_each(is_faulty: Callable[[str, str], bool]) -> Callable[[PairBatch], np.ndarray]:
    """Return the ``match_batch`` of a rule, given a function that judges one source and its target."""
    return lambda batch: np.array(list(map(is_faulty, *batch.texts)), dtype=bool)


def _lacks_letters(batch: PairBatch) -> np.ndarray:
    letters = np.stack([letters.letters for letters in batch.letters], axis=1)
    return np.any((batch.lengths >= MIN_CHARACTERS) & (letters < MIN_LETTER_SHARE * batch.lengths), axis=1)


def _is_copy(batch: PairBatch) -> np.ndarray:
    is_equal = batch.keys[:, 0] == batch.keys[:, 1]
    for row in np.flatnonzero(is_equal).tolist():
        is_equal[row] = len(LETTER_RUN.findall(batch.texts[0][row])) > 1  # a single word may be a name
    return is_equal


def _is_in_foreign_language(batch: PairBatch) -> np.ndarray:
    _, margins = zip(*batch.language_comparisons, strict=True)
    return np.logical_or(
        *map(CorpusSide.is_foreign_language, batch.sides, batch.texts, batch.texts[::-1], batch.letters, margins)
    )


def _rows_of_unusual_length(pairs: datasets.Dataset, findings: CleaningFindings) -> np.ndarray:
    findings.scores["length"] = deviations = length_deviations(findings.lengths, findings.sizes["train"])
    return np.flatnonzero(np.abs(deviations) > MAX_DEVIATIONS)


def _mistranslated_rows(pairs: datasets.Dataset, findings: CleaningFindings) -> np.ndarray:
    """Return the rows of pairs whose sides are not translations of each other. Pairs that an earlier rule matches are
    not judged."""
    rows = np.flatnonzero(findings.rule_numbers == 0)
    train_pairs = int((rows < findings.sizes["train"]).sum())
    if train_pairs < MIN_TRAIN_PAIRS:
        logger.warning(
            "cleaning: the rule translation is skipped: it needs at least %s training pairs without other faults",
            f"{MIN_TRAIN_PAIRS:,}",
        )
        return rows[:0]
    scores, is_translation, random_scores = score_and_classify(pairs, rows, train_pairs)
    findings.random_scores["translation"] = random_scores
    findings.scores["translation"] = np.full(len(pairs), np.nan, dtype=np.float32)
    findings.scores["translation"][rows] = scores
    return rows[~is_translation]


def _duplicate_rows(pairs: datasets.Dataset, findings: CleaningFindings) -> np.ndarray:
    """Return the rows of training pairs that repeat an earlier one. Pairs that an earlier rule matches are ignored."""
    rows = np.flatnonzero(findings.by_split["train"] == 0)
    _, first = np.unique(combined_hash(*findings.keys[rows].T), return_index=True)
    return np.delete(rows, first)


RULES = {
    "long": Rule(
        "a side has more than ten times data.max_length characters, and so too many tokens for any tokenizer",
        lambda batch: np.any(batch.lengths > MAX_TOKEN_CHARACTERS * batch.max_length, axis=1),
    ),
    "encoding": Rule(
        "a text was decoded with the wrong encoding, or has a replacement character (U+FFFD)",
        _match_each(
            lambda source, target: (
                is_mojibake(source) or is_mojibake(target) or source.count("\ufffd") != target.count("\ufffd")
            )
        ),
    ),
    "letters": Rule("less than a fifth of the characters of a side are letters", _lacks_letters),
    "copy": Rule("the two sides are equal, or differ only in case and punctuation", _is_copy),
    "script": Rule(
        "a side is in a script that is rare in its column",
        lambda batch: np.logical_or(*map(CorpusSide.is_foreign_script, batch.sides, batch.texts, batch.letters)),
    ),
    "language": Rule("a side is in another language than it should be", _is_in_foreign_language),
    "items": Rule("a link, an address, a tag or a placeholder is on one side only", _match_each(has_unmatched_item)),
    "numbers": Rule("a number is translated as another number", _match_each(has_mistranslated_number)),
    "length": Rule(
        "the length ratio of the two sides is unusual for texts of this length in this corpus",
        match_corpus=_rows_of_unusual_length,
    ),
    "translation": Rule(
        "the words of the two sides match no better than those of randomly matched sentences",
        match_corpus=_mistranslated_rows,
    ),
    "boilerplate": Rule(
        "a text that occurs many times has an uncommon translation",
        match_corpus=lambda _, findings: np.flatnonzero(find_boilerplate(findings.keys[: findings.sizes["train"]])),
    ),
    "duplicate": Rule("an earlier pair differs only in case, punctuation or digits", match_corpus=_duplicate_rows),
}
"""Maps the name of each rule to the rule, in the order of application."""
