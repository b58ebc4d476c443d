"""Subword regularisation: BPE-dropout (Provilkov et al. 2020) and unigram sampling (Kudo 2018).

SentencePiece can do both, but its random numbers differ from process to process whatever seed it is given, so that a
run that was stopped could not continue as if it had never been stopped.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import sentencepiece

from mt.core.randomness import generator

WORD_START = "▁"
CUTS = 64
"""Number of ways to cut a word among which sampling chooses."""
MAX_CACHED_WORDS, MAX_CACHED_CUTS = 100_000, 1_000_000
"""They take some hundred megabytes."""


class SubwordSampler:
    """Draws random segmentations of text into subwords. Each tokenizer holds one instance."""

    def __init__(
        self, processor: sentencepiece.SentencePieceProcessor, scores: Mapping[str, float], is_unigram: bool
    ) -> None:
        """
        Args:
            processor: A SentencePiece model.
            scores: The score of each of its subwords, other than control pieces and bytes.
            is_unigram: Whether it is a unigram model. Others count as BPE.
        """
        self._processor = processor
        self._scores = scores
        self._is_unigram = is_unigram
        self._has_bytes = processor.is_byte(processor.piece_to_id("<0x00>"))
        self._best_cuts = lru_cache(maxsize=MAX_CACHED_WORDS)(self._rank_cuts)
        self._bpe_cut = lru_cache(maxsize=MAX_CACHED_CUTS)(self._draw_bpe)

    def sample(self, text: str, sampling: float, key: int) -> list[str]:
        """Return the subwords of a normalized text, cut in one of several ways, which depends on ``key`` alone.

        BPE leaves out each merge with probability ``sampling``. CUTS ways to cut a word are drawn once and for all, and
        each occurrence of the word takes one of them. Unigram takes one of the CUTS best ways to cut a word, in
        proportion to its probability to the power of 1 - ``sampling``.
        """
        words = split_words(text)
        draws = np.random.Generator(np.random.Philox(key=key)).random(len(words)).tolist()
        subwords: list[str] = []
        for word, draw in zip(words, draws, strict=True):
            if self._is_unigram:
                cuts, log_probabilities = self._best_cuts(word)
                subwords += cuts[draw_cut(log_probabilities, 1 - sampling, draw)]
            else:
                subwords += self._bpe_cut(word, sampling, int(draw * CUTS))
        return subwords

    def _draw_bpe(self, word: str, sampling: float, number: int) -> list[str]:
        random = generator(number, f"BPE-dropout {sampling} {word}")
        symbols = bpe_dropout(word, self._scores, sampling, random)
        return [subword for symbol in symbols for subword in self._spell(symbol)]

    def _spell(self, symbol: str) -> list[str]:
        """Return a subword, or the bytes of a character that is none."""
        if symbol in self._scores or not self._has_bytes:
            return [symbol]
        return [f"<0x{byte:02X}>" for byte in symbol.encode()]

    def _rank_cuts(self, word: str) -> tuple[list[list[str]], list[float]]:
        """Return the CUTS most probable ways to cut a word, and the log-probability of each."""
        if word == WORD_START:
            return [self._spell(word)], [0.0]
        # The mark of the word's start is left out: SentencePiece adds it itself.
        cuts = self._processor.nbest_encode(word[1:], nbest_size=CUTS, out_type=str)
        scores = [sum(self._processor.get_score(self._processor.piece_to_id(piece)) for piece in cut) for cut in cuts]
        return cuts, scores


def split_words(normalized: str) -> list[str]:
    """Split normalized text into words. SentencePiece cuts each by itself, because no subword goes across the start of
    a word."""
    return re.findall(f"{WORD_START}[^{WORD_START}]*|[^{WORD_START}]+", normalized)


def bpe_dropout(word: str, scores: Mapping[str, float], probability: float, random: np.random.Generator) -> list[str]:
    """Split a word by BPE-dropout (algorithm 1). Characters that are not in the vocabulary remain single symbols.

    Args:
        word: The word.
        scores: The score of every subword. A higher score means an earlier merge.
        probability: The probability with which each possible merge is left out in each step; with 0 this is plain BPE.
        random: Decides which merges are left out.
    """
    symbols = list(word)
    while len(symbols) > 1:
        merges = [
            (-scores[merged], index)
            for index, merged in enumerate(map("".join, zip(symbols, symbols[1:], strict=False)))
            if merged in scores
        ]
        draws = random.random(len(merges)).tolist()
        kept = [merge for merge, draw in zip(merges, draws, strict=True) if draw >= probability]
        if not kept:
            break
        _, index = min(kept)
        symbols[index : index + 2] = [symbols[index] + symbols[index + 1]]
    return symbols


def draw_cut(log_probabilities: Sequence[float], smoothing: float, uniform: float) -> int:
    """Return the index of one of several cuts.

    Args:
        log_probabilities: The log-probability of every cut.
        smoothing: A cut is chosen in proportion to its probability to the power of ``smoothing``.
        uniform: A number drawn uniformly from 0 to 1, which decides.
    """
    powers = np.exp(smoothing * (np.array(log_probabilities) - max(log_probabilities)))
    return int(np.searchsorted(np.cumsum(powers), uniform * powers.sum(), side="right").clip(max=len(powers) - 1))
