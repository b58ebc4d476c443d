"""Subword regularization by BPE-dropout (Provilkov et al. 2020, algorithm 1).

SentencePiece can do it, but its random numbers differ from process to process whatever seed it is given, so that a
run that was stopped could not continue as if it had never been stopped.

A symbol is a subword or, if the vocabulary lacks a character, that character.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow

from mt.core.randomness import random_bits
from mt.storage.vocabulary import UNK

CUTS = 64
"""Number of ways to cut a word among which sampling chooses. A way is drawn when it is first chosen."""
MAX_KEPT_CUTS = 300_000
"""The number of cuts that are kept, in up to a hundred megabytes."""


class SubwordSampler:
    """Cuts sentences into other subwords, at random. The ``SampleMaker`` of a run holds one for each tokenizer."""

    def __init__(self, names: Sequence[str], scores: Mapping[str, float], sampling: float) -> None:
        """
        Args:
            names: The subword of each token.
            scores: The score of each subword of the model, other than control pieces and bytes.
            sampling: The probability with which each possible merge is left out.
        """
        self._names, self._scores, self._sampling = names, scores, sampling
        self._ids = {name: number for number, name in enumerate(names)}
        self._bytes = {self._ids[name]: byte for byte in range(256) if (name := f"<0x{byte:02X}>") in self._ids}
        self._word_starts = {number for number, name in enumerate(names) if name.startswith("▁")}
        self._cut = lru_cache(MAX_KEPT_CUTS)(self._draw)

    def sample(self, sentences: pyarrow.ListArray, keys: np.ndarray) -> pyarrow.ListArray:
        """Return the tokens of sentences, cut in other ways.

        Args:
            sentences: The usual tokens of each sentence (int32).
            keys: (B,) uint64. What becomes of a sentence depends on its tokens and its key alone.
        """
        rows = sentences.to_pylist()
        words = np.arange(max(map(len, rows), default=0), dtype=np.uint64)
        uniforms = (random_bits(keys[:, None], words) >> np.uint64(11)) * 2.0**-53  # from 0 to 1
        numbers = (uniforms * CUTS).astype(np.int64).tolist()
        sampled = []
        for row, own in zip(rows, numbers, strict=True):
            starts = [index for index, token in enumerate(row) if index == 0 or token in self._word_starts]
            cuts = [
                self._cut(tuple(row[start:end]), number)
                for (start, end), number in zip(pairwise([*starts, len(row)]), own, strict=False)
            ]
            sampled.append([token for cut in cuts for token in cut])
        return pyarrow.array(sampled, sentences.type)

    def _draw(self, word: tuple[int, ...], number: int) -> list[int]:
        """Return the tokens of a word, given its usual tokens and the number of the cut."""
        cut = bpe_dropout(self._symbols(word), self._scores, self._sampling, Random(f"{word} {number}"))
        return [token for symbol in cut for token in self._tokens(symbol)]

    def _symbols(self, word: Sequence[int]) -> list[str]:
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
                name = self._names[token]
                symbols += name if name in self._scores else [name]
        return symbols

    def _tokens(self, symbol: str) -> list[int]:
        """Return the tokens of a symbol. A character that is no subword is spelled in bytes, or UNK."""
        if symbol not in self._ids and self._bytes and len(symbol) == 1:
            return [self._ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
        return [self._ids.get(symbol, UNK)]


def bpe_dropout(symbols: Sequence[str], scores: Mapping[str, float], probability: float, random: Random) -> list[str]:
    """Return the symbols of a word after the merges of BPE, of which each is left out at random in each step.

    Args:
        symbols: The characters of the word, and symbols that are in no merge.
        scores: The score of every subword. A higher score means an earlier merge; of equal ones, the leftmost is first.
        probability: The probability with which a possible merge is left out; with 0 this is plain BPE.
        random: The random numbers that decide which merges are left out.
    """
    symbols = list(symbols)
    while merges := [
        (-scores[merged], index)
        for index, merged in enumerate(map("".join, pairwise(symbols)))
        if merged in scores and random.random() >= probability
    ]:
        _, index = min(merges)
        symbols[index : index + 2] = ["".join(symbols[index : index + 2])]
    return symbols
