"""BPE-dropout (Provilkov et al. 2020, algorithm 1) of many words at a time.

A symbol is a subword or, if the vocabulary lacks a character, that character.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mt.core.ragged import positions_in_rows, row_starts, slices_of
from mt.core.randomness import random_bits, uniforms

NO_MERGE = np.iinfo(np.int64).max
POSITION = 2**32 - 1


class MergeTable:
    """The merges of a BPE vocabulary, as arrays. Each sampler of a BPE tokenizer holds one instance."""

    def __init__(self, scores: Mapping[str, float]) -> None:
        """
        Args:
            scores: The score of every subword. A higher score means an earlier merge.
        """
        self.symbols = list(scores)
        """The string of each symbol."""
        self._numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
        merges = {
            _pair(self._number(subword[:cut]), self._number(subword[cut:])): number
            for number, subword in enumerate(list(scores))
            for cut in range(1, len(subword))
            if all(len(part) == 1 or part in scores for part in (subword[:cut], subword[cut:]))
        }
        keys = np.fromiter(merges, np.int64, len(merges))
        order = np.argsort(keys)
        # The last entry stands for the pairs that cannot be merged.
        self._keys = np.append(keys[order], NO_MERGE)
        self._merged = np.append(np.fromiter(merges.values(), np.int64, len(merges))[order], 0)
        # Merges of equal scores have equal ranks, so that the leftmost is first.
        negative = -np.fromiter(scores.values(), np.float64, len(scores))
        self._ranks = np.append(np.unique(negative, return_inverse=True)[1][self._merged[:-1]], NO_MERGE)

    def symbols_of(self, strings: Iterable[str]) -> list[int]:
        """Return the symbol of each string. Only characters and subwords can be merged."""
        return list(map(self._number, strings))

    def cut(
        self, symbols: np.ndarray, lengths: np.ndarray, probability: float, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cut words by BPE-dropout.

        Args:
            symbols: The symbols of W words, concatenated. No word is empty.
            lengths: The number of symbols of each word, (W,).
            probability: The probability with which each possible merge is left out in each step; with 0 this is plain
                BPE.
            keys: (W,) uint64, the keys of the random numbers that decide which merges are left out.

        Returns:
            The symbols of all words, concatenated, and the number of symbols of each word, (W,).
        """
        lengths = lengths.astype(np.int64)
        cut, cut_starts, cut_lengths = np.empty_like(symbols), row_starts(lengths), np.empty_like(lengths)
        rows = np.arange(len(keys))  # the words that are not finished
        merges = self._merges(symbols, np.arange(len(symbols)), positions_in_rows(lengths), np.repeat(lengths, lengths))
        for step in range(len(symbols)):
            positions, starts = positions_in_rows(lengths), row_starts(lengths)
            bits = random_bits(np.repeat(keys[rows], lengths), _pair(step, positions).view(np.uint64))
            ranks = self._ranks[merges]
            is_possible = (ranks != NO_MERGE) & (uniforms(bits) >= probability)
            first = np.minimum.reduceat(np.where(is_possible, _pair(ranks, positions), NO_MERGE), starts)
            is_done = first == NO_MERGE
            done = np.repeat(is_done, lengths)
            cut[np.repeat(cut_starts[rows], lengths)[done] + positions[done]] = symbols[done]
            cut_lengths[rows[is_done]] = lengths[is_done]
            if is_done.all():
                break
            symbols, merges = symbols[~done], merges[~done]
            rows, lengths, first = rows[~is_done], lengths[~is_done], first[~is_done] & POSITION
            left = row_starts(lengths) + first
            symbols[left] = self._merged[merges[left]]
            symbols, merges = np.delete(symbols, left + 1), np.delete(merges, left + 1)
            left, lengths = left - np.arange(len(left)), lengths - 1
            # The new symbol can be merged with other neighbours than the two that it is made of.
            merges[left] = self._merges(symbols, left, first, lengths)
            inner = first > 0
            merges[left[inner] - 1] = self._merges(symbols, left[inner] - 1, first[inner] - 1, lengths[inner])
        return slices_of(cut, cut_starts, cut_lengths), cut_lengths

    def _merges(
        self, symbols: np.ndarray, indices: np.ndarray, positions: np.ndarray, lengths: np.ndarray
    ) -> np.ndarray:
        """Return the merge of some symbols with the next ones, as indices of this table.

        Args:
            symbols: The symbols of several words.
            indices: The indices of some of them, (S,).
            positions: The positions of these in their words, (S,).
            lengths: The lengths of their words, (S,).
        """
        pairs = _pair(symbols[indices], symbols[np.minimum(indices + 1, len(symbols) - 1)])
        merges = np.searchsorted(self._keys, pairs)
        merges[(self._keys[merges] != pairs) | (positions == lengths - 1)] = len(self._keys) - 1
        return merges

    def _number(self, symbol: str) -> int:
        number = self._numbers.setdefault(symbol, len(self.symbols))
        if number == len(self.symbols):
            self.symbols.append(symbol)
        return number


def _pair(high: Any, low: Any) -> Any:
    """Return two numbers below 2³¹ as one."""
    return (high << 32) | low
