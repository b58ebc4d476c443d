"""Other ways to cut a word into pieces: BPE-dropout (Provilkov et al. 2020) and unigram sampling (Kudo 2018).

SentencePiece can do both, but its random numbers differ from process to process whatever seed it is given, so that a
run that was stopped could not go on as if it had not been.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

WORD_START = "▁"


def split_words(normalised: str) -> list[str]:
    """What SentencePiece cuts independently of each other: no piece reaches over the start of a word."""
    return re.findall(f"{WORD_START}[^{WORD_START}]*|[^{WORD_START}]+", normalised)


def bpe_dropout(word: str, scores: Mapping[str, float], probability: float, random: np.random.Generator) -> list[str]:
    """The pieces (and characters without a piece) that BPE makes of a word when it overlooks each possible merge of a
    step with some probability (algorithm 1); with probability 0, those of plain BPE.

    ``scores``: of every piece; the higher, the earlier it is merged.
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
    """One of several cuts, each as likely as its probability to the power of ``smoothing``; ``uniform`` from 0 to 1
    decides."""
    powers = np.exp(smoothing * (np.array(log_probabilities) - max(log_probabilities)))
    return int(np.searchsorted(np.cumsum(powers), uniform * powers.sum(), side="right").clip(max=len(powers) - 1))
