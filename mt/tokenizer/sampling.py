"""Subword regularisation by BPE-dropout (Provilkov et al. 2020, algorithm 1).

SentencePiece can do it, but its random numbers differ from process to process whatever seed it is given, so that a
run that was stopped could not continue as if it had never been stopped.

Sentences are cut anew from their tokens. Each word is cut in one of CUTS ways, which are drawn when they are first
chosen. NumPy draws all that a table lacks together, so that a GPU does not wait for them.

A symbol is a subword or, if the vocabulary lacks a character, that character.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, repeat
from typing import Any

import numpy as np
import pyarrow

from mt.core.ragged import positions_in_rows, row_starts
from mt.core.randomness import random_bits, uniforms
from mt.storage.vocabulary import UNK

CUTS = 64
"""Number of ways to cut a word among which sampling chooses."""
MAX_KEPT_CUTS = 500_000
"""The number of cuts that are kept. They take up to a hundred megabytes. The first cuts of a corpus in random order are
nearly always those of the frequent words."""
WORD_END = -1
"""Stands for a symbol behind each word. It is in no merge."""
NO_MERGE = np.iinfo(np.int64).max
POSITION = 2**32 - 1


@dataclass
class SubwordSampler:
    """Cuts sentences into other subwords, at random. The ``SampleMaker`` of a run holds one for each tokenizer."""

    names: Sequence[str]
    """The subword of each token."""
    scores: Mapping[str, float]
    """The score of each subword of the model, other than control pieces and bytes."""
    sampling: float
    """The probability with which each possible merge is left out."""

    def __post_init__(self) -> None:
        self._ids = {name: number for number, name in enumerate(self.names)}
        self._bytes = {self._ids[name]: byte for byte in range(256) if (name := f"<0x{byte:02X}>") in self._ids}
        self._text_tokens = {self._ids[name] for name in self._ids.keys() & self.scores.keys()}
        self._starts_word = np.array([name.startswith("▁") for name in self.names])
        self._merges = MergeTable(self.scores)
        self._spell = cache(self._spelling)
        self._cuts: dict[int, bytes] = {}
        """The tokens (int32) of each cut that was drawn by its key."""

    def sample(self, sentences: pyarrow.ListArray, keys: np.ndarray) -> pyarrow.ListArray:
        """Return the tokens of sentences, cut in other ways.

        Args:
            sentences: The usual tokens of each sentence (int32).
            keys: (B,) uint64. What becomes of a sentence depends on its tokens and its key alone.
        """
        lengths = np.diff(sentences.offsets.to_numpy())
        tokens = sentences.flatten().to_numpy()
        first_tokens = row_starts(lengths)
        is_start = self._starts_word[tokens]
        is_start[first_tokens[lengths > 0]] = True
        before = np.append(0, np.cumsum(is_start))
        row_words = before[first_tokens + lengths] - before[first_tokens]
        bits = random_bits(np.repeat(keys, row_words), positions_in_rows(row_words).astype(np.uint64))
        numbers = (uniforms(bits) * CUTS).astype(np.uint64)
        starts = np.flatnonzero(is_start)
        word_lengths = np.diff(starts, append=len(tokens))
        positions = positions_in_rows(word_lengths).astype(np.uint64)
        token_bits = random_bits(tokens.astype(np.uint64), positions << np.uint64(32))
        word_keys = random_bits(np.add.reduceat(token_bits, starts), word_lengths.astype(np.uint64))
        cut_keys = random_bits(word_keys, numbers)
        cuts = list(map(self._cuts.get, cut_keys.tolist(), repeat(b"")))
        if missing := [word for word, cut in enumerate(cuts) if not cut]:
            ends = np.append(starts[1:], len(tokens))
            spans, values = zip(starts[missing].tolist(), ends[missing].tolist(), strict=True), tokens.tolist()
            self._draw(cut_keys[missing], [values[start:end] for start, end in spans])
            for word, key in zip(missing, cut_keys[missing].tolist(), strict=True):
                cuts[word] = self._cuts[key]
        while len(self._cuts) > MAX_KEPT_CUTS:
            self._cuts.popitem()
        sampled = np.frombuffer(b"".join(cuts), np.int32)
        cut_ends = np.cumsum([0, *map(len, cuts)]) // sampled.itemsize
        ends = cut_ends[np.append(0, np.cumsum(row_words))]
        return pyarrow.ListArray.from_arrays(ends.astype(np.int32), pyarrow.array(sampled))

    def _draw(self, keys: np.ndarray, words: Sequence[Sequence[int]]) -> None:
        """Draw a cut for each key, given the usual tokens of each word."""
        cuts = self._merges.cut(list(map(self._symbols, words)), self.sampling, keys)
        for key, cut in zip(keys.tolist(), cuts, strict=True):
            self._cuts[key] = b"".join([self._spell(symbol) for symbol in cut])

    def _symbols(self, word: Sequence[int]) -> Sequence[str]:
        """Return the characters of a word, given its tokens.

        A token that stands for no text, such as UNK, gives its name as one symbol.
        """
        if self._text_tokens.issuperset(word):
            return "".join([self.names[token] for token in word])
        symbols: list[str] = []
        encoded = bytearray()
        for token in [*word, None]:
            if token in self._bytes:
                encoded.append(self._bytes[token])
                continue
            symbols += encoded.decode(errors="replace")
            encoded.clear()
            if token is not None:
                name = self.names[token]
                symbols += name if name in self.scores else [name]
        return symbols

    def _spelling(self, symbol: str) -> bytes:
        """Return the tokens (int32) of a symbol. A character that is no subword is spelled in bytes, or UNK."""
        ids = [self._ids.get(symbol, UNK)]
        if symbol not in self._ids and self._bytes and len(symbol) == 1:
            ids = [self._ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
        return np.array(ids, np.int32).tobytes()


class MergeTable:
    """The merges of a BPE vocabulary, as arrays. Each sampler holds one instance."""

    def __init__(self, scores: Mapping[str, float]) -> None:
        """
        Args:
            scores: The score of every subword. A higher score means an earlier merge.
        """
        self._numbers: defaultdict[str, int] = defaultdict(lambda: len(self._numbers))
        """The number of each symbol."""
        self._numbers.update((symbol, number) for number, symbol in enumerate(scores))
        merges = {
            _pair(self._numbers[subword[:cut]], self._numbers[subword[cut:]]): number
            for number, subword in enumerate(scores)
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

    def cut(self, words: Sequence[Sequence[str]], probability: float, keys: np.ndarray) -> list[list[str]]:
        """Cut words by BPE-dropout.

        Args:
            words: The symbols of each of W words. Only characters and subwords can be merged.
            probability: The probability with which each possible merge is left out in each step; with 0 this is plain
                BPE.
            keys: (W,) uint64, the keys of the random numbers that decide which merges are left out.

        Returns:
            The symbols of each word after the merges.
        """
        symbols = np.array([number for word in words for number in [*map(self._numbers.__getitem__, word), WORD_END]])
        lengths = np.array([len(word) + 1 for word in words])
        rows = np.arange(len(words))  # the words that are not finished
        merges = self._merges(symbols, np.arange(len(symbols)))
        names = list(self._numbers)
        cuts: list[list[str]] = [[]] * len(words)
        for step in count():
            positions, starts = positions_in_rows(lengths), row_starts(lengths)
            bits = random_bits(np.repeat(keys[rows], lengths), _pair(step, positions).view(np.uint64))
            ranks = self._ranks[merges]
            is_possible = (ranks != NO_MERGE) & (uniforms(bits) >= probability)
            first = np.minimum.reduceat(np.where(is_possible, _pair(ranks, positions), NO_MERGE), starts)
            is_done = first == NO_MERGE
            is_open = ~np.repeat(is_done, lengths)
            done_symbols = [names[number] for number in symbols[~is_open].tolist()]
            done_ends = np.cumsum(lengths[is_done])
            finished = rows[is_done], done_ends - lengths[is_done], done_ends - 1
            for row, start, end in zip(*(values.tolist() for values in finished), strict=True):
                cuts[row] = done_symbols[start:end]
            if is_done.all():
                return cuts
            symbols, merges = symbols[is_open], merges[is_open]
            rows, lengths = rows[~is_done], lengths[~is_done]
            left = row_starts(lengths) + (first[~is_done] & POSITION)
            symbols[left] = self._merged[merges[left]]
            symbols, merges = np.delete(symbols, left + 1), np.delete(merges, left + 1)
            left, lengths = left - np.arange(len(left)), lengths - 1
            # The new symbol can be merged with other neighbours than the two that it is made of.
            for changed in (left - 1, left):
                merges[changed] = self._merges(symbols, changed)
        raise AssertionError("each step makes the words shorter")

    def _merges(self, symbols: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Return the merges of the symbols at some indices with the next ones, as indices of this table."""
        pairs = _pair(symbols[indices], symbols.take(indices + 1, mode="wrap"))
        merges = np.searchsorted(self._keys, pairs)
        merges[self._keys[merges] != pairs] = len(self._keys) - 1
        return merges


def _pair(high: Any, low: Any) -> Any:
    """Return two numbers below 2³¹ as one."""
    return (high << 32) | low
