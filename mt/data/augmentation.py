"""Change training pairs, so that a model learns to translate text as people type it: in small letters, with words in
capitals, with typing errors, without a full stop. More pairs get placeholders than the numbers and links of the
corpus alone would give.

The changes of a pair in an epoch depend on the seed, the epoch and the pair alone.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pyarrow.compute import match_substring_regex

from mt.config import AugmentationConfig
from mt.config.text import EXCLUSIVE_SHARES
from mt.core.columns import tables
from mt.core.randomness import Generators, generator
from mt.data.pairs import SIDES, side_texts
from mt.text.layer import VARIATIONS, TextLayer
from mt.text.lexicon import SYMBOLS, Lexicon, with_placeholders, with_symbol, word_pairs
from mt.text.numbers import pattern as number_word_pattern
from mt.text.placeholders import CORPUS_TAG

if TYPE_CHECKING:
    import datasets

NUMBERS_IN_WORDS = 0.6
"""The share of the pairs with the same number word on both sides, such as ten, in which a placeholder replaces this
word. Most corpora have more number words than numbers in digits, and both teach a model the words that follow a
number."""


class CorpusStatistics(NamedTuple):
    """The statistics of N training pairs that augmentation needs."""

    lexicon: Lexicon
    """Words with their translations; empty if augmentation replaces no words by placeholders."""
    has_number_word: np.ndarray
    """(N,) bool: whether the source of each pair has a number word, such as ten."""


class _Draws(NamedTuple):
    """The random decisions about each of N pairs in one epoch."""

    change: np.ndarray
    """(N,) float32 from 0 to 1: selects one of EXCLUSIVE_SHARES, or none."""
    placeholders: np.ndarray
    """(N,) bool: whether the pair gets placeholders for names, numbers and words."""
    number_words: np.ndarray
    """(N,) bool: whether placeholders replace the number words of the pair."""
    symbols: np.ndarray
    """(N,) bool: whether the pair gets one of SYMBOLS."""


class Augmentation:
    """Changes the texts of training pairs at random. The ``PairSampler`` of a run holds one instance."""

    def __init__(self, config: AugmentationConfig, layer: TextLayer, seed: int, statistics: CorpusStatistics) -> None:
        """
        Args:
            config: The share of the pairs for each kind of change.
            layer: The text layer, which puts placeholders into the pairs.
            seed: Determines all changes.
            statistics: The statistics of all training pairs.
        """
        self._lexicon = statistics.lexicon
        self._layer = layer
        self._seed = seed
        self._has_number_word = statistics.has_number_word & bool(config.slots)
        self._placeholder_share = config.slots
        # Only marks that placeholders stand for: from marks that are common, a model would unlearn how to use them.
        self._symbols = [symbol for symbol in SYMBOLS if layer.is_value(symbol)]
        self._symbol_generators = Generators(seed, "symbol of a pair")
        self._symbol_share = config.symbols if self._symbols else 0.0
        self._generators = Generators(seed, "augmentation of a pair")
        # A pair gets a change if its ``_Draws.change`` lies between the limit before and its own.
        self._limits = np.array(list(accumulate(getattr(config, name) for name in EXCLUSIVE_SHARES)))
        self._draws = lru_cache(maxsize=1)(self._draw)

    def is_changed(self, epoch: int, rows: np.ndarray) -> np.ndarray:
        """Return whether the pair in each of some rows (B,) is changed in an epoch, (B,) bool."""
        draws = self._draws(epoch)
        of_values = draws.placeholders[rows] | draws.number_words[rows] | draws.symbols[rows]
        return (draws.change[rows] < self._limits[-1]) | of_values

    def pair(self, epoch: int, row: int, sources: Sequence[str], targets: Sequence[str]) -> tuple[str, str]:
        """Return the changed source and target of a pair, prepared for the tokenizer.

        A tag stays in front of the source, whatever is changed.

        Args:
            epoch: The epoch.
            row: The row of the pair, on which the changes depend.
            sources: The source of the pair, and the sources of the pairs that are joined to it.
            targets: The target of the pair, and the targets of the pairs that are joined to it.
        """
        tag = next((f"{CORPUS_TAG} " for source in sources if source.startswith(CORPUS_TAG)), "")
        sources = [source.removeprefix(tag) for source in sources]
        between_sides = self._layer.between
        source, target = (between.join(side) for between, side in zip(between_sides, (sources, targets), strict=True))
        if self._draws(epoch).symbols[row]:
            words = word_pairs(self._lexicon, source, target)
            random = self._symbol_generators.at(epoch, row)
            source, target = with_symbol(sources, targets, words, self._symbols, between_sides, random)
        source, target = self._changed(epoch, row, source, target)
        return tag + source, target

    def _changed(self, epoch: int, row: int, source: str, target: str) -> tuple[str, str]:
        """Return the changed source and target of a pair without a tag, prepared for the tokenizer."""
        draws = self._draws(epoch)
        random = self._generators.at(epoch, row)
        has_placeholders, has_number_words = draws.placeholders[row], draws.number_words[row]
        number = int(np.searchsorted(self._limits, draws.change[row], side="right"))
        name = EXCLUSIVE_SHARES[number] if number < len(self._limits) else None
        vary = VARIATIONS[name] if name else lambda source, target, language, random: (source, target)
        language = self._layer.source_language
        if has_placeholders or has_number_words:
            # Placeholders come first: after a change of case the words would no longer be found.
            pair = with_placeholders(
                source, target, has_placeholders, has_number_words, self._lexicon, self._layer, random
            )
            return vary(*pair, language, random)
        if name == "lower_case":
            # Small letters come last, because the text layer would give names their capitals back. A model must also
            # translate lines without these capitals, which it gets from programs without a text layer.
            return vary(*self._layer.prepare_pair(source, target), language, random)
        return self._layer.prepare_pair(*vary(source, target, language, random))

    def _draw(self, epoch: int) -> _Draws:
        count = len(self._has_number_word)
        change, placeholders = generator(self._seed, "augmentation", epoch).random((count, 2), dtype=np.float32).T
        in_words = generator(self._seed, "numbers in words", epoch).random(count, dtype=np.float32)
        symbols = generator(self._seed, "symbols", epoch).random(count, dtype=np.float32)
        return _Draws(
            change.copy(),
            placeholders < self._placeholder_share,
            self._has_number_word & (in_words < NUMBERS_IN_WORDS),
            symbols < self._symbol_share,
        )


def corpus_statistics(pairs: "datasets.Dataset", language: str, needs_lexicon: bool) -> CorpusStatistics:
    """Return the statistics of all training pairs.

    Args:
        pairs: The training pairs.
        language: Their source language.
        needs_lexicon: Whether to learn the lexicon from the pairs. Otherwise it is empty.
    """
    return CorpusStatistics(Lexicon(_mixed_texts(pairs) if needs_lexicon else ()), _has_number_word(pairs, language))


def _mixed_texts(pairs: "datasets.Dataset") -> Iterator[tuple[str, str]]:
    """Yield all pairs in blocks of a thousand, the blocks in random order, because corpora are often sorted."""
    texts = pairs.with_format("arrow").select_columns(list(SIDES))
    starts = np.arange(0, len(pairs), 1000)
    for start in generator(0, "lexicon").permutation(starts).tolist():
        yield from zip(*side_texts(texts[start : start + 1000]), strict=True)


def _has_number_word(pairs: "datasets.Dataset", language: str) -> np.ndarray:
    """Return whether the source of each pair has a number word of its language, (N,) bool."""
    if (pattern := number_word_pattern(language)) is None:
        return np.zeros(len(pairs), dtype=bool)
    return np.concatenate(
        [match_substring_regex(table["source"], pattern).to_numpy() for table in tables(pairs, ["source"])]
    )
