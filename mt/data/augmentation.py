"""Changes training pairs, so that a model meets the text that people type: small letters, words in capitals, typing
errors, no full stop. It also adds more placeholders than the items of the corpus alone would give.

The changes of a pair in an epoch depend on the seed, the epoch and the pair alone.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import regex
from pyarrow.compute import match_substring_regex

from mt.config import AugmentationConfig
from mt.core.columns import tables
from mt.core.language import between_words
from mt.core.randomness import Generators, generator
from mt.data.wrappers import COMMA, WRAPPERS, with_wrapper
from mt.text.layer import TextLayer
from mt.text.lexicon import Lexicon
from mt.text.normalization.casing import in_capitals, in_small_letters
from mt.text.normalization.final_punctuation import FINAL_PUNCTUATION, without_final_punctuation
from mt.text.normalization.keyboard import with_a_typo
from mt.text.number_words import pattern as number_word_pattern
from mt.text.number_words import shared_numbers
from mt.text.placeholders.placeholders import CORPUS_TAG, FIRST_NUMBER_PLACEHOLDER, PLACEHOLDER, placeholder
from mt.text.placeholders.shared_values import Replacement

if TYPE_CHECKING:
    import datasets

NUMBERS_OF_PLACEHOLDERS = (0.5, 0.75, 0.9, 1.0)
"""Cumulative probabilities of one, two, three and four placeholders in a pair that gets placeholders. Where lines with
several items are rare in training, models drop or exchange some of them."""
NEW_PLACEHOLDERS_ALONE = 0.45
"""The share of the pairs with placeholders whose placeholders are all new ones, put at the ends or in front of a comma
of both sides. In the others, placeholders take the place of names and numbers that both sides share, and of words with
their translations. New ones are added only if there are too few of these."""
NEW_PLACEHOLDERS_OF_NUMBERS = 0.15
"""The share of the placeholders of numbers among those that are new or stand for anything else than numbers, where
numbers have placeholders of their own."""
NUMBERS_IN_WORDS = 0.6
"""The share of the pairs with a number word on both sides, such as ten, in which a placeholder stands for it. Most
corpora have more of these than numbers in digits, and from both a model learns what stands behind numbers."""
WORDS_WITH_A_TYPO = 1 / 8
"""The share of the words of a source that get a typing error, if the source gets any."""
MAX_WORDS_IN_CAPITALS = 3
"""The most words in a row that are put into capitals."""

LETTERS = regex.compile(r"\p{L}[\p{L}\p{M}]*")
NAME_OR_NUMBER = regex.compile(r"(?<![\w'’-])(?:\p{Lu}\p{L}[\p{L}\p{M}]*|[0-9]+)(?![\w'’-])")

Change: TypeAlias = Callable[[str, str, np.random.Generator], tuple[str, str]]
"""Changes a source and its target."""


class CorpusStatistics(NamedTuple):
    """Statistics of N training pairs."""

    lexicon: Lexicon
    """Words that translate each other."""
    has_number_word: np.ndarray
    """(N,) bool, for the sources."""


class _Draws(NamedTuple):
    """The random decisions of an epoch about each of N pairs."""

    change: np.ndarray
    """(N,) float32: the number that chooses one of the changes that exclude each other."""
    placeholders: np.ndarray
    """(N,) bool: whether the pair gets placeholders for names, numbers and words."""
    number_words: np.ndarray
    """(N,) bool: whether placeholders stand for its number words."""
    wrapped: np.ndarray
    """(N,) bool: whether it gets marks of WRAPPERS."""


class Augmentation:
    """The changes of one run."""

    def __init__(self, config: AugmentationConfig, layer: TextLayer, seed: int, statistics: CorpusStatistics) -> None:
        """
        Args:
            config: How often each change is made.
            layer: Puts placeholders into the pairs.
            seed: Determines all changes.
            statistics: Of all training pairs: the words that placeholders may stand for, beside names and numbers, and
                the sources with a number word.
        """
        self._lexicon = statistics.lexicon
        self._layer = layer
        self._seed = seed
        self._has_number_word = statistics.has_number_word & bool(config.slots)
        self._placeholder_share = config.slots
        # Placeholders stand for these, whichever they are. From common marks, a model would unlearn how to use them.
        self._wrappers = [marks for marks in WRAPPERS if layer.is_value(marks[0].strip())]
        self._wrapper_generators = Generators(seed, "wrappers of a pair")
        self._wrapped_share = config.wrapped if self._wrappers else 0.0
        self._generators = Generators(seed, "augmentation of a pair")
        self._languages = layer.source_language, layer.target_language
        self._between = between_words(layer.source_language), between_words(layer.target_language)
        language = layer.source_language
        # The order belongs to the random draws: a pair gets change i if its number lies between limits i - 1 and i.
        shares = config.lower_case, config.capitals, config.unpunctuated, config.typos
        self._changes: tuple[Change, ...] = (
            lambda source, target, random: (in_small_letters(source, language), target),
            lambda source, target, random: (with_capitals(source, random, language), target),
            lambda source, target, random: without_final_punctuation(source, target),
            lambda source, target, random: (with_typos(source, random, language), target),
        )
        self._limits = np.array(list(accumulate(shares)))
        self._drawn: tuple[int, _Draws] | None = None

    def is_changed(self, epoch: int, rows: np.ndarray) -> np.ndarray:
        """Return whether pairs are changed in an epoch, (B,) bool, given their rows (B,)."""
        draws = self._draws(epoch)
        of_values = draws.placeholders[rows] | draws.number_words[rows] | draws.wrapped[rows]
        return (draws.change[rows] < self._limits[-1]) | of_values

    def pair(self, epoch: int, row: int, sources: Sequence[str], targets: Sequence[str]) -> tuple[str, str]:
        """Return the texts of a pair for the tokenizer. A tag stays in front of its source, whatever is changed.

        Args:
            epoch: The epoch.
            row: The pair's row, on which its changes depend.
            sources: Its source, and those of the pairs that are joined to it.
            targets: Its target, and those of the pairs that are joined to it.
        """
        tag = next((f"{CORPUS_TAG} " for source in sources if source.startswith(CORPUS_TAG)), "")
        sources = [source.removeprefix(tag) for source in sources]
        source, target = (between.join(side) for between, side in zip(self._between, (sources, targets), strict=True))
        if self._draws(epoch).wrapped[row]:
            words = self._word_pairs(source, target)
            random = self._wrapper_generators.at(epoch, row)
            source, target = with_wrapper(sources, targets, words, self._wrappers, self._between, random)
        source, target = self._changed(epoch, row, source, target)
        return tag + source, target

    def _changed(self, epoch: int, row: int, source: str, target: str) -> tuple[str, str]:
        """Return the marked and changed texts of a pair without a tag."""
        draws = self._draws(epoch)
        random = self._generators.at(epoch, row)
        number = int(np.searchsorted(self._limits, draws.change[row], side="right"))
        change = self._changes[number] if number < len(self._changes) else None
        if draws.placeholders[row] or draws.number_words[row]:
            # Before the case of the source is changed: afterwards the words could no longer be found.
            source, target = self._with_placeholders(
                source, target, draws.placeholders[row], draws.number_words[row], random
            )
            return change(source, target, random) if change else (source, target)
        if number == 0:
            # Small letters come last, because the text layer would give names their capitals back. A model has to know
            # lines without them: those with a single capital, and those of programs without a text layer.
            return self._changes[0](*self._layer.prepare_pair(source, target), random)
        if change:
            source, target = change(source, target, random)
        return self._layer.prepare_pair(source, target)

    def _word_pairs(self, source: str, target: str) -> list[tuple[str, str]]:
        """Return the names, numbers and other words that stand once in a source, with their translations."""
        names = ((name, name) for name in names_and_numbers(source, target))
        return list(dict.fromkeys([*names, *self._lexicon.pairs_of(source, target)]))

    def _with_placeholders(
        self, source: str, target: str, of_words: bool, of_number_words: bool, random: np.random.Generator
    ) -> tuple[str, str]:
        """Return the marked texts, with placeholders for their number words, or for names, numbers and other words, or
        both. Where there are too few words, new placeholders are added."""
        count, replaced = 0, list[Replacement]()
        if of_number_words:
            pairs = shared_numbers(source, target, self._languages)
            replaced = [Replacement(word, translation, True) for word, translation in pairs]
        if of_words:
            count = 1 + bisect_right(NUMBERS_OF_PLACEHOLDERS, random.random())
            if random.random() >= NEW_PLACEHOLDERS_ALONE:
                candidates = self._word_pairs(source, target)
                chosen = [candidates[index] for index in random.permutation(len(candidates))[:count].tolist()]
                number_words = {words.source for words in replaced}
                replaced += [
                    Replacement(word, translation, _is_number(word, random))
                    for word, translation in chosen
                    if word not in number_words
                ]
        order = random.permutation(self._layer.placeholder_count).tolist()
        source, target = self._layer.prepare_pair(source, target, replaced, order)
        for _ in range(count - len(replaced)):
            first = FIRST_NUMBER_PLACEHOLDER if _is_number("", random) else 0
            unused = next(
                (placeholder(first + number) for number in order if placeholder(first + number) not in source), None
            )
            if unused:
                source, target = with_new_placeholder(unused, source, target, self._between, random)
        return in_ascending_order(source, target)

    def _draws(self, epoch: int) -> _Draws:
        if self._drawn is None or self._drawn[0] != epoch:
            count = len(self._has_number_word)
            change, placeholders = generator(self._seed, "augmentation", epoch).random((count, 2), dtype=np.float32).T
            in_words = generator(self._seed, "numbers in words", epoch).random(count, dtype=np.float32)
            wrapped = generator(self._seed, "wrapped", epoch).random(count, dtype=np.float32)
            draws = _Draws(
                change.copy(),
                placeholders < self._placeholder_share,
                self._has_number_word & (in_words < NUMBERS_IN_WORDS),
                wrapped < self._wrapped_share,
            )
            self._drawn = epoch, draws
        return self._drawn[1]


def _is_number(word: str, random: np.random.Generator) -> bool:
    """Return whether a placeholder that stands for a word, or for nothing, is one of numbers."""
    return word.isdigit() or random.random() < NEW_PLACEHOLDERS_OF_NUMBERS


def names_and_numbers(source: str, target: str) -> list[str]:
    """Return the capitalised words and the numbers that stand exactly once on both sides."""
    words, other_words = NAME_OR_NUMBER.findall(source), NAME_OR_NUMBER.findall(target)
    return [
        word
        for word in dict.fromkeys(words)
        if words.count(word) == source.count(word) == 1 == other_words.count(word) == target.count(word)
    ]


def with_new_placeholder(
    new: str, source: str, target: str, between: Sequence[str], random: np.random.Generator
) -> tuple[str, str]:
    """Put a placeholder in front of both sides, behind them, before the punctuation at their ends or, if both have
    equally many commas, before one of these.

    Args:
        new: The placeholder.
        source, target: The pair.
        between: What stands between two words of the source, and of the target.
        random: Decides where.
    """
    draw = random.random()
    commas = [[comma.start() for comma in COMMA.finditer(text)] for text in (source, target)]
    comma = int(random.integers(len(commas[0]))) if len(commas[0]) == len(commas[1]) > 0 else None
    sides = []
    for text, blank, starts in zip((source, target), between, commas, strict=True):
        end = FINAL_PUNCTUATION.search(text)
        if comma is not None and draw < 0.5:
            start = starts[comma]
        elif draw < 0.15:
            start = 0
        elif draw < 0.5 or not end:
            start = len(text)
        else:
            start = end.start()
        inserted = f"{blank}{new}" if start else f"{new}{blank}"
        sides.append(f"{text[:start]}{inserted}{text[start:]}")
    return sides[0], sides[1]


def in_ascending_order(source: str, target: str) -> tuple[str, str]:
    """Exchange the placeholders of a pair so that the numbers of either kind ascend in the source, as they do in lines
    to translate."""
    placeholders = PLACEHOLDER.findall(source)
    exchanged: dict[int, str] = {}
    for of_numbers in (False, True):
        kind = [each for each in placeholders if (each >= placeholder(FIRST_NUMBER_PLACEHOLDER)) == of_numbers]
        exchanged |= str.maketrans(dict(zip(kind, sorted(kind), strict=True)))
    return source.translate(exchanged), target.translate(exchanged)


def with_capitals(text: str, random: np.random.Generator, language: str) -> str:
    """Put up to MAX_WORDS_IN_CAPITALS words in a row into capitals."""
    words = list(LETTERS.finditer(text))
    if not words:
        return text
    count = int(random.integers(1, MAX_WORDS_IN_CAPITALS + 1))
    first = int(random.integers(len(words)))
    start, end = words[first].start(), words[min(first + count, len(words)) - 1].end()
    return text[:start] + in_capitals(text[start:end], language) + text[end:]


def with_typos(text: str, random: np.random.Generator, language: str) -> str:
    """Put a typing error into about every eighth word, and at least into one.

    Args:
        text: Any text.
        random: Decides where, and what.
        language: The text's language, which decides the keyboard.
    """
    words = [word for word in LETTERS.finditer(text) if len(word[0]) > 1]
    if not words:
        return text
    has_typo = random.random(len(words)) < WORDS_WITH_A_TYPO
    has_typo[random.integers(len(words))] = True
    parts, end = [], 0
    for index in np.flatnonzero(has_typo):
        word = words[index]
        parts += [text[end : word.start()], with_a_typo(word[0], random, language)]
        end = word.end()
    return "".join([*parts, text[end:]])


def corpus_statistics(pairs: "datasets.Dataset", language: str, needs_lexicon: bool) -> CorpusStatistics:
    """Return the statistics of the training pairs, given their source language.

    Without ``needs_lexicon`` the lexicon is empty, which saves counting.
    """
    return CorpusStatistics(Lexicon(_mixed_texts(pairs) if needs_lexicon else ()), _has_number_word(pairs, language))


def _mixed_texts(pairs: "datasets.Dataset") -> Iterator[tuple[str, str]]:
    """Yield all pairs, a thousand from one place and a thousand from another, because corpora are often sorted."""
    texts = pairs.with_format("arrow").select_columns(["source", "target"])
    starts = np.arange(0, len(pairs), 1000)
    for start in generator(0, "lexicon").permutation(starts).tolist():
        table = texts[start : start + 1000]
        yield from zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)


def _has_number_word(pairs: "datasets.Dataset", language: str) -> np.ndarray:
    if (pattern := number_word_pattern(language)) is None:
        return np.zeros(len(pairs), dtype=bool)
    return np.concatenate(
        [match_substring_regex(table["source"], pattern).to_numpy() for table in tables(pairs, ["source"])]
    )
