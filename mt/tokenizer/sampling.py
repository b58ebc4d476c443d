"""Subword regularization by BPE-dropout (Provilkov et al. 2020, algorithm 1).

SentencePiece implements it, too, but its random numbers differ between processes even with the same seed, so that a
resumed run would not equal an uninterrupted one.

A symbol is a subword, or a character that the vocabulary lacks.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow

from mt.core.randomness import random_bits
from mt.storage.vocabulary import UNK

SEGMENTATIONS_PER_WORD = 64
"""Number of segmentations of a word among which sampling chooses. Each is drawn when it is first chosen."""
MAX_CACHED_SEGMENTATIONS = 300_000
"""Maximum number of cached segmentations, which take up to a hundred megabytes."""


class SubwordSampler:
    """Samples segmentations of sentences into subwords."""

    def __init__(self, names: Sequence[str], scores: Mapping[str, float], sampling: float) -> None:
        """
        Args:
            names: The subword of each token.
            scores: The score of each subword, without control tokens and bytes.
            sampling: The probability with which each possible merge is skipped.
        """
        self._names, self._scores, self._sampling = names, scores, sampling
        self._ids = {name: number for number, name in enumerate(names)}
        self._bytes = {self._ids[name]: byte for byte in range(256) if (name := f"<0x{byte:02X}>") in self._ids}
        self._word_starts = {number for number, name in enumerate(names) if name.startswith("▁")}
        self._segment_word = lru_cache(MAX_CACHED_SEGMENTATIONS)(self._sample_segmentation)

    def sample(self, sentences: pyarrow.ListArray, keys: np.ndarray) -> pyarrow.ListArray:
        """Return sampled tokens of sentences.

        Args:
            sentences: The tokens of each sentence without sampling (int32).
            keys: (B,) uint64, the seed of each sentence. The sample depends only on the tokens and the key.
        """
        rows = sentences.to_pylist()
        words = np.arange(max(map(len, rows), default=0), dtype=np.uint64)
        uniforms = (random_bits(keys[:, None], words) >> np.uint64(11)) * 2.0**-53  # from 0 to 1
        numbers = (uniforms * SEGMENTATIONS_PER_WORD).astype(np.int64).tolist()
        sampled = []
        for row, row_numbers in zip(rows, numbers, strict=True):
            starts = [index for index, token in enumerate(row) if index == 0 or token in self._word_starts]
            segmentations = [
                self._segment_word(tuple(row[start:end]), number)
                for (start, end), number in zip(pairwise([*starts, len(row)]), row_numbers, strict=False)
            ]
            sampled.append([token for tokens in segmentations for token in tokens])
        return pyarrow.array(sampled, sentences.type)

    def _sample_segmentation(self, word: tuple[int, ...], number: int) -> list[int]:
        """Return the tokens of a word's segmentation with some number, given its tokens without sampling."""
        symbols = bpe_dropout(self._to_symbols(word), self._scores, self._sampling, Random(f"{word} {number}"))
        return [token for symbol in symbols for token in self._to_tokens(symbol)]

    def _to_symbols(self, word: Sequence[int]) -> list[str]:
        """Return the characters of a word, given its tokens.

        The symbol of a token without text, such as UNK, is its name.
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

    def _to_tokens(self, symbol: str) -> list[int]:
        """Return the tokens of a symbol. A character that is not a subword is spelled in bytes, or becomes UNK."""
        if symbol not in self._ids and self._bytes and len(symbol) == 1:
            return [self._ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
        return [self._ids.get(symbol, UNK)]


def bpe_dropout(symbols: Sequence[str], scores: Mapping[str, float], probability: float, random: Random) -> list[str]:
    """Return the symbols of a word after BPE merges, each of which is skipped at random in each step.

    Args:
        symbols: The characters of the word, and symbols that cannot be merged.
        scores: The score of every subword. The merge with the highest score is first, of equal ones the leftmost.
        probability: The probability with which a possible merge is skipped; 0 for plain BPE.
        random: The source of the random decisions.
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
