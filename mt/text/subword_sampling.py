"""Cuts words into pieces at random: BPE-dropout (Provilkov et al. 2020) and unigram sampling (Kudo 2018).

SentencePiece can do both, but its random numbers differ from process to process whatever seed it is given, so that a
run that was stopped could not continue as if it had never been stopped.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

WORD_START = "▁"


def split_words(normalised: str) -> list[str]:
    """Splits normalised text into the words that SentencePiece cuts independently of each other, because no piece
    reaches across the start of a word."""
    return re.findall(f"{WORD_START}[^{WORD_START}]*|[^{WORD_START}]+", normalised)


def bpe_dropout(word: str, scores: Mapping[str, float], probability: float, random: np.random.Generator) -> list[str]:
    """Returns the pieces (and characters without a piece) into which BPE-dropout cuts a word (algorithm 1).

    Args:
        scores: The score of every piece. A higher score means an earlier merge.
        probability: How likely each possible merge is left out in each step; with 0 this is plain BPE.
        random: Decides which merges are left out.
    """
    symbols = list(word)
    while len(symbols) > 1:
        merges = [
            (-scores[merged], place)
            for place, merged in enumerate(map("".join, zip(symbols, symbols[1:], strict=False)))
            if merged in scores
        ]
        kept = merges if probability == 0 else _without(merges, random.random(len(merges)) < probability)
        if not kept:
            break
        _, place = min(kept)
        symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
    return symbols


def _without(merges: Sequence[tuple[float, int]], dropped: np.ndarray) -> list[tuple[float, int]]:
    return [merge for merge, overlooked in zip(merges, dropped.tolist(), strict=True) if not overlooked]


def choose(log_probabilities: Sequence[float], smoothing: float, uniform: float) -> int:
    """Returns the index of one of several cuts.

    Args:
        log_probabilities: The log-probability of every cut.
        smoothing: A cut is chosen in proportion to its probability to the power of ``smoothing``.
        uniform: A number drawn uniformly from 0 to 1, which decides.
    """
    powers = np.exp(smoothing * (np.array(log_probabilities) - max(log_probabilities)))
    return int(np.searchsorted(np.cumsum(powers), uniform * powers.sum(), side="right").clip(max=len(powers) - 1))
