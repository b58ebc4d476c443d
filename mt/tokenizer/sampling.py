"""Subword regularisation by BPE-dropout (Provilkov et al. 2020).

SentencePiece can do it, but its random numbers differ from process to process whatever seed it is given, so that a
run that was stopped could not continue as if it had never been stopped.

Sentences are cut anew from their tokens, all sentences of a table at once. Their words are looked up in a table of the
ways to cut them, which grows with the words that it lacks. So most of the work is done by NumPy, and a GPU does not
wait for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow

from mt.core.ragged import GrowingArray, RaggedArray, positions_in_rows, row_starts, slices_of
from mt.core.randomness import random_bits, uniforms
from mt.storage.vocabulary import UNK
from mt.tokenizer.bpe_dropout import MergeTable

CUTS = 64
"""Number of ways to cut a word among which sampling chooses."""
MAX_KEPT_WORDS = 100_000
"""The number of words whose cuts are kept. They take up to a hundred megabytes. The first words of a corpus in random
order are nearly always the frequent ones."""


class Subwords:
    """A vocabulary as samplers need it: how words are spelled in its tokens."""

    def __init__(self, names: Sequence[str], scores: Mapping[str, float]) -> None:
        """
        Args:
            names: The subword of each token.
            scores: The score of each subword of the model, other than control pieces and bytes.
        """
        self.scores = scores
        self.names = names
        self._ids = {name: number for number, name in enumerate(names)}
        self._bytes = {self._ids[name]: byte for byte in range(256) if (name := f"<0x{byte:02X}>") in self._ids}
        self.is_byte = np.isin(np.arange(len(names)), list(self._bytes))
        """Whether each token is a byte."""

    def symbols(self, word: Sequence[int]) -> list[str]:
        """Return the characters of a word, given its tokens.

        A token that stands for no text, such as UNK, gives its name as one symbol.
        """
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

    def spell(self, symbol: str) -> list[int]:
        """Return the tokens of a symbol. A character that is no subword is spelled in bytes, or UNK."""
        if symbol in self._ids:
            return [self._ids[symbol]]
        if self._bytes and len(symbol) == 1:
            return [self._ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
        return [UNK]


class BpeCuts:
    """CUTS ways to cut each word of a table by BPE-dropout. Each is drawn when it is chosen for the first time.

    Words are numbered from 0 in the order of ``add``.
    """

    def __init__(self, subwords: Subwords, sampling: float) -> None:
        """
        Args:
            subwords: The vocabulary.
            sampling: The probability with which each possible merge is left out.
        """
        self._subwords = subwords
        self._sampling = sampling
        self._merges = MergeTable(subwords.scores)
        self._symbols = RaggedArray(np.int64)  # of each token
        tokens = range(len(subwords.names))
        self._symbols.extend(*_flat([self._merges.symbols_of(subwords.symbols([token])) for token in tokens]))
        self._words = RaggedArray(np.int64)  # the symbols of each word
        self._keys = GrowingArray(np.uint64)  # of each word
        self._spelling = RaggedArray(np.int32)  # the tokens of each symbol
        self._drawn = RaggedArray(np.int32)  # the tokens of each cut that was drawn
        self._drawn_of = GrowingArray(np.int64)  # (words * CUTS,), the index of each cut in ``_drawn``, or -1
        self._kept = 0  # the number of cuts in ``_drawn`` of the first MAX_KEPT_WORDS words

    def add(self, tokens: np.ndarray, lengths: np.ndarray, keys: np.ndarray) -> None:
        """Add W words, given their usual tokens, concatenated, the number of tokens of each and their keys (uint64)."""
        symbols, counts = self._symbols.take(tokens)
        words = RaggedArray(np.int64)
        words.extend(symbols, np.add.reduceat(counts, row_starts(lengths)))
        rows = np.arange(len(lengths))
        # Several bytes together spell one character.
        in_bytes = np.flatnonzero(np.logical_or.reduceat(self._subwords.is_byte[tokens], row_starts(lengths)))
        rows[in_bytes] = len(words) + np.arange(len(in_bytes))
        spelled = [self._subwords.symbols(word) for word in _rows(tokens, lengths, in_bytes)]
        words.extend(*_flat(list(map(self._merges.symbols_of, spelled))))
        self._words.extend(*words.take(rows))
        self._keys.extend(keys)
        self._drawn_of.extend(np.full(CUTS * len(keys), -1))

    def choose(self, words: np.ndarray, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens of some words (N,), concatenated, and the number of tokens of each.

        The ``draws``, (N,) random numbers from 0 to 1, choose the way in which each word is cut.
        """
        cuts = words * CUTS + (draws * CUTS).astype(np.int64)
        drawn = self._drawn_of.values[cuts]
        if (drawn < 0).any():
            missing = np.unique(cuts[drawn < 0])
            # The cuts of words that are kept come first, so that those of the others can be removed.
            first_forgotten = np.searchsorted(missing, MAX_KEPT_WORDS * CUTS)
            self._draw(missing[:first_forgotten])
            self._kept = len(self._drawn)
            self._draw(missing[first_forgotten:])
            drawn = self._drawn_of.values[cuts]
        return self._drawn.take(drawn)

    def truncate(self, words: int) -> None:
        """Forget all words but the first ``words``."""
        self._words.truncate(words)
        self._keys.truncate(words)
        self._drawn_of.truncate(words * CUTS)
        self._drawn.truncate(self._kept)

    def _draw(self, cuts: np.ndarray) -> None:
        if not len(cuts):
            return
        words, numbers = np.divmod(cuts, CUTS)
        keys = random_bits(self._keys.values[words], numbers.astype(np.uint64))
        symbols, lengths = self._merges.cut(*self._words.take(words), self._sampling, keys)
        new_symbols = self._merges.symbols[len(self._spelling) :]
        if new_symbols:
            self._spelling.extend(*_flat(list(map(self._subwords.spell, new_symbols))))
        tokens, symbol_lengths = self._spelling.take(symbols)
        self._drawn_of.values[cuts] = len(self._drawn) + np.arange(len(cuts))
        self._drawn.extend(tokens, np.add.reduceat(symbol_lengths, row_starts(lengths)))


class SubwordSampler:
    """Cuts sentences into other subwords, at random. The ``PairSampler`` of a run holds one for each tokenizer."""

    def __init__(self, starts_word: np.ndarray, cuts: BpeCuts) -> None:
        """
        Args:
            starts_word: Whether each token of the vocabulary is the first of a word, (V,) bool.
            cuts: An empty table of cuts.
        """
        self._starts_word = starts_word
        self._cuts = cuts
        self._keys = np.empty(0, np.uint64)  # of the words of the table, in ascending order
        self._words = np.empty(0, np.int64)  # and the word of each

    def sample(self, sentences: pyarrow.ListArray, keys: np.ndarray) -> pyarrow.ListArray:
        """Return the tokens of sentences, cut in other ways.

        Args:
            sentences: The usual tokens of each sentence.
            keys: (B,) uint64. What becomes of a sentence depends on its tokens and its key alone.
        """
        lengths = np.diff(sentences.offsets.to_numpy())
        tokens = sentences.flatten().to_numpy()
        first_tokens = row_starts(lengths)
        is_start = self._starts_word[tokens]
        is_start[first_tokens[lengths > 0]] = True
        starts = np.flatnonzero(is_start)
        words = self._find(tokens, starts)
        before = np.append(0, np.cumsum(is_start))
        row_words = before[first_tokens + lengths] - before[first_tokens]
        bits = random_bits(np.repeat(keys, row_words), positions_in_rows(row_words).astype(np.uint64))
        sampled, word_lengths = self._cuts.choose(words, uniforms(bits))
        ends = np.append(0, np.cumsum(word_lengths))[np.append(0, np.cumsum(row_words))]
        self._forget()
        return pyarrow.ListArray.from_arrays(ends.astype(np.int32), pyarrow.array(sampled, pyarrow.int32()))

    def _find(self, tokens: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return the numbers of words, (W,). Words that the table lacks are added.

        Args:
            tokens: The tokens of all words.
            starts: The index of the first token of each word, (W,).
        """
        if not len(starts):
            return np.empty(0, np.int64)
        lengths = np.diff(starts, append=len(tokens))
        bits = random_bits(tokens.astype(np.uint64), positions_in_rows(lengths).astype(np.uint64) << np.uint64(32))
        keys = random_bits(np.add.reduceat(bits, starts), lengths.astype(np.uint64))
        indices = np.searchsorted(self._keys, keys)
        is_new = np.append(self._keys, np.uint64(0))[indices] != keys
        if is_new.any():
            new, first = np.unique(keys[is_new], return_index=True)
            first = np.flatnonzero(is_new)[first]
            order = np.argsort(first)  # the words that come first are the frequent ones
            first = first[order]
            self._cuts.add(slices_of(tokens, starts[first], lengths[first]), lengths[first], new[order])
            numbers = np.empty(len(new), np.int64)
            numbers[order] = len(self._keys) + np.arange(len(new))
            indices = np.searchsorted(self._keys, new)
            self._keys, self._words = np.insert(self._keys, indices, new), np.insert(self._words, indices, numbers)
            indices = np.searchsorted(self._keys, keys)
        return self._words[indices]

    def _forget(self) -> None:
        """Forget all words but the first MAX_KEPT_WORDS."""
        if len(self._keys) > MAX_KEPT_WORDS:
            is_kept = self._words < MAX_KEPT_WORDS
            self._keys, self._words = self._keys[is_kept], self._words[is_kept]
            self._cuts.truncate(MAX_KEPT_WORDS)


def _flat(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the concatenation of rows of numbers, and the length of each."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum())), lengths


def _rows(values: np.ndarray, lengths: np.ndarray, numbers: np.ndarray) -> Iterator[list[int]]:
    """Yield some of the rows of a concatenation."""
    ends = np.cumsum(lengths)
    for start, end in zip(row_starts(lengths)[numbers].tolist(), ends[numbers].tolist(), strict=True):
        yield values[start:end].tolist()
