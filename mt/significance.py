"""Whether the difference between two systems is more than chance, and between which bounds it lies.

Two kinds of chance are told apart. Other test sentences would have given other scores: paired approximate randomisation
(Riezler & Maxwell 2005) and the bootstrap (Koehn 2004) ask how much. Other seeds would have given other models: t-tests
over the scores ask how much, where there are several runs of each system.

Sentences with the same source are not independent: a system translates them alike. They form one block, whose
translations are exchanged, or drawn, together.

Shapes: N sentences, B blocks, C counts of a metric, T trials, R outputs of a system.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import mean, variance

import numpy as np

Score = Callable[[np.ndarray], np.ndarray]
"""Summed counts (…, C) → corpus scores (…): ``CorpusMetric.score``."""

ENUMERATED = 15
"""Most differing blocks for which every way to exchange them is tried (2¹⁵ = 32,768) instead of a random sample."""
TIE = 1e-9
"""Differences between scores that are nearer than this are equal: sums in another order round differently."""
ELEMENTS = 2**22
"""Of a matrix that is held at a time (32 MB)."""


@dataclass(frozen=True)
class Randomisation:
    """What a paired randomisation test found."""

    p: float
    """Probability of a difference at least as large as the real one if the two systems' outputs were exchangeable."""
    differing: int
    """Blocks in which the two systems' counts differ. The others say nothing."""
    exact: bool
    """Whether every exchange was tried, so that p is exact; otherwise it was estimated from random exchanges."""


@dataclass(frozen=True)
class SeedTest:
    """What the t-tests over the scores of several runs of each system found."""

    difference: float
    """Mean of the second system's scores minus that of the first's."""
    p: float | None
    """Two-sided; None where no score deviates from its mean on either side, so that nothing can be said."""
    low: float
    high: float
    """The confidence interval of the difference, at the level that was asked for; infinite where p is None."""
    least_difference: float
    """The smallest difference that would have been significant with as many seeds and the same deviations."""


def blocks_of(lines: Sequence[str]) -> np.ndarray:
    """(N,) int64: the same number for equal lines, from 0 in the order of their first appearance."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(line, len(numbers)) for line in lines], dtype=np.int64)


def sum_blocks(counts: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Counts of sentences (N, C), block of each sentence (N,) → counts of blocks (B, C)."""
    sums = np.zeros((int(blocks.max(initial=-1)) + 1, counts.shape[1]))
    np.add.at(sums, blocks, counts)
    return sums


def least_p(differing: int) -> float:
    """The smallest p that a randomisation test can give: of the 2ⁿ ways to exchange n differing blocks at least two,
    none and all of them, give a difference as large as the real one."""
    return min(1.0, 2.0 ** (1 - differing))


def fewest_differing(level: float) -> int:
    """Fewest differing blocks with which a difference can be significant at a level; 6 at 0.05."""
    return next(count for count in range(1, 1100) if least_p(count) < level)


def randomisation_test(
    first: np.ndarray, second: np.ndarray, score: Score, trials: int, random: np.random.Generator
) -> Randomisation:
    """Paired approximate randomisation (Riezler & Maxwell 2005; Noreen 1989) over blocks.

    If it made no difference which system said what, the two could exchange their outputs in any of the blocks, and the
    real difference would be one among those of all such exchanges. p is the share of them with a difference at least
    as large in size: of all 2ⁿ where n ≤ ENUMERATED blocks differ, otherwise (c + 1) / (T + 1) where c of T random
    exchanges have one, which keeps the test's level (Phipson & Smyth 2010). Ties count as at least as large.

    Of R outputs of each system all are exchanged together, the first with the first, the second with the second, …; the
    difference is that between the means of their scores.

    Args:
        first, second: (B, C) or (R, B, C) counts of each system, block by block.
        score: of the summed counts.
        trials: T, random exchanges where there are too many to try all.
        random: draws them.
    """
    first, second = (counts.reshape(-1, *counts.shape[-2:]) for counts in (first, second))  # (R, B, C)
    totals = first.sum(axis=1, keepdims=True), second.sum(axis=1, keepdims=True)  # (R, 1, C)
    gains = second - first
    gains = gains[:, (np.abs(gains) > TIE).any(axis=(0, 2))]  # (R, n, C)
    differing = gains.shape[1]
    least = abs(float((score(totals[1]) - score(totals[0])).mean())) - TIE
    exact = differing <= ENUMERATED
    as_large = tried = 0
    for exchanged in _all_exchanges(differing) if exact else _random_exchanges(differing, trials, random):
        moved = exchanged @ gains  # (R, t, C)
        differences = (score(totals[1] - moved) - score(totals[0] + moved)).mean(axis=0)
        as_large += int((np.abs(differences) >= least).sum())
        tried += len(differences)
    p = as_large / tried if exact else (as_large + 1) / (tried + 1)
    return Randomisation(p, differing, exact)


def _all_exchanges(count: int) -> Iterator[np.ndarray]:
    """(2ⁿ, n): each row says with 1 which blocks are exchanged, with 0 which are not."""
    yield (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(np.float64)


def _random_exchanges(count: int, trials: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Rows of the same kind at random, (t, n) at a time, T in all."""
    at_once = max(1, ELEMENTS // count)
    for start in range(0, trials, at_once):
        rows = min(at_once, trials - start)
        drawn = random.integers(0, 256, (rows, -(-count // 8)), dtype=np.uint8)
        yield np.unpackbits(drawn, axis=1, count=count).astype(np.float64)


def bootstrap_scores(
    systems: Sequence[np.ndarray], score: Score, samples: int, random: np.random.Generator
) -> np.ndarray:
    """Scores of each system on test sets made by drawing as many blocks with replacement (Koehn 2004), the same ones
    for all systems.

    Args:
        systems: counts (B, C) of each.
        score: of the summed counts.
        samples: how many test sets are drawn.

    Returns:
        (systems, samples)
    """
    blocks = len(systems[0])
    at_once = max(1, ELEMENTS // blocks)
    parts = []
    for start in range(0, samples, at_once):
        rows = min(at_once, samples - start)
        drawn = random.integers(0, blocks, (rows, blocks)) + blocks * np.arange(rows)[:, None]
        times = np.bincount(drawn.ravel(), minlength=rows * blocks).reshape(rows, blocks).astype(np.float64)
        parts.append(np.stack([score(times @ counts) for counts in systems]))
    return np.concatenate(parts, axis=1)


def middle_95(values: np.ndarray) -> tuple[float, float]:
    """Between which bounds the middle 95 % of the values lie."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def seed_test(first: Sequence[float], second: Sequence[float], level: float) -> SeedTest:
    """Two-sided t-tests for the difference between the means of two samples: Welch's (1947), which does not ask the two
    to scatter alike, and Student's, of which the one that is harder to pass counts.

    For equal numbers that is Welch's. For unequal ones Welch's alone is too easy: it estimates its degrees of freedom
    from the scores, and two seeds beside ten, which by chance lie close together, look more certain than they are
    (simulated, equal systems are then called different in a tenth of cases instead of a twentieth).

    Args:
        first, second: the scores of two or more runs of each system.
        level: of the test that ``least_difference`` speaks of; the interval has confidence 1 - ``level``.
    """
    difference = mean(second) - mean(first)
    numbers, variances = (len(first), len(second)), (variance(first), variance(second))
    parts = [spread / number for spread, number in zip(variances, numbers, strict=True)]
    if math.sqrt(sum(parts)) <= TIE:
        return SeedTest(difference, None, -math.inf, math.inf, math.inf)
    welch = sum(parts) ** 2 / sum(part**2 / (number - 1) for part, number in zip(parts, numbers, strict=True))
    student = sum(numbers) - 2
    pooled = sum((number - 1) * spread for number, spread in zip(numbers, variances, strict=True)) / student
    tests = [(math.sqrt(sum(parts)), welch), (math.sqrt(pooled * sum(1 / number for number in numbers)), student)]
    p = max(_outside(abs(difference) / error, degrees) for error, degrees in tests)
    needed = max(error * _critical_t(level, degrees) for error, degrees in tests)
    return SeedTest(difference, p, difference - needed, difference + needed, needed)


def _outside(t: float, degrees: float) -> float:
    """P(|T| ≥ t) of Student's t distribution.

    With T = √ν tan θ it is the share of ∫ cos(θ)^(ν-1) dθ, from 0 to π/2, that lies beyond atan(t / √ν). The integral
    over all is √π Γ(ν/2) / (2 Γ((ν+1)/2)); the one over the rest is found by Gauss-Legendre quadrature.
    """
    nodes, weights = _quadrature()
    start = math.atan(t / math.sqrt(degrees))
    half = (math.pi / 2 - start) / 2
    angles = start + half * (nodes + 1)
    beyond = half * float(weights @ np.cos(angles) ** (degrees - 1))
    log_all = math.lgamma(degrees / 2) - math.lgamma((degrees + 1) / 2) + math.log(math.pi) / 2 - math.log(2)
    return min(1.0, beyond / math.exp(log_all))


@lru_cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(100)


def _critical_t(level: float, degrees: float) -> float:
    """The t that |T| exceeds with probability ``level``, by bisection."""
    low, high = 0.0, 1.0
    while _outside(high, degrees) > level:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _outside(middle, degrees) > level else (low, middle)
    return high
