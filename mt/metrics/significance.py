"""Significance tests and confidence intervals of the difference between two systems.

Two kinds of chance are distinguished. Other test sentences would have given other scores. Paired approximate
randomisation (Riezler & Maxwell 2005) and the bootstrap (Koehn 2004) deal with this. Other seeds would have given other
models. If each system has several runs, t-tests over their scores deal with that.

Sentences with the same source are not independent, because a system translates them alike. They form one block, whose
translations are exchanged, or drawn, together.

Shapes: N sentences, B blocks, n blocks in which two systems differ, C counts of a metric, T trials, t trials that are
computed at once, R outputs of a system.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, mean, median_high, variance

import numpy as np

Score = Callable[[np.ndarray], np.ndarray]
"""Function from summed counts (…, C) to corpus scores (…), such as ``Metric.score``."""

SIGNIFICANCE_LEVEL = 0.05
"""A difference is significant if one as large has a smaller probability than this between equally good systems."""
MAX_ENUMERATED_BLOCKS = 15
"""Up to so many differing blocks, all exchanges are tried (2¹⁵ = 32,768) instead of a random sample."""
TIE = 1e-9
"""Values closer together than this count as equal, because sums in another order round differently."""
MAX_ELEMENTS = 2**22
"""Elements of a random matrix in memory at a time (32 MB)."""


@dataclass(frozen=True)
class Interval:
    """A score with the ends of its 95 % confidence interval."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Randomisation:
    """The result of a paired randomisation test."""

    p: float
    """Probability of a difference at least as large as the real one if the two systems' outputs were exchangeable."""
    differing: int
    """Number of blocks in which the two systems' counts differ. The others have no influence on the test."""
    exact: bool
    """Whether every exchange was tried, so that p is exact; otherwise it was estimated from random exchanges."""


@dataclass(frozen=True)
class SeedTest:
    """The result of the t-tests over the scores of several runs of each system."""

    difference: float
    """Mean of the second system's scores minus the mean of the first's."""
    p: float | None
    """Two-sided p. None if neither system's scores deviate from their mean, which leaves nothing to test."""
    low: float
    high: float
    """Bounds of the difference's confidence interval at the requested level; infinite if p is None."""
    least_difference: float
    """The smallest significant difference with these numbers of seeds and these deviations."""


def block_numbers(lines: Sequence[str]) -> np.ndarray:
    """Return a number for each line, (N,) int64: equal for equal lines, from 0 in the order of first appearance."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(line, len(numbers)) for line in lines], dtype=np.int64)


def sum_blocks(counts: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Sum the counts of sentences (N, C) to counts of blocks (B, C), given the block of each sentence (N,)."""
    sums = np.zeros((int(blocks.max(initial=-1)) + 1, counts.shape[1]))
    np.add.at(sums, blocks, counts)
    return sums


def min_p(differing: int) -> float:
    """Return the smallest p that a randomisation test can give.

    At least two of the 2ⁿ ways to exchange n differing blocks give a difference as large as the real one: to exchange
    none of the blocks, and to exchange all of them.
    """
    return min(1.0, 2.0 ** (1 - differing))


def min_differing_blocks(level: float) -> int:
    """Return the smallest number of differing blocks with a significant difference at a level: 6 at 0.05."""
    return next(count for count in range(1, 1100) if min_p(count) < level)


def randomisation_test(
    first: np.ndarray, second: np.ndarray, score: Score, trials: int, random: np.random.Generator
) -> Randomisation:
    """Test two systems by paired approximate randomisation (Riezler & Maxwell 2005; Noreen 1989) over blocks.

    If it made no difference which system produced which output, the two could exchange their outputs in any of the
    blocks, and the real difference would be one among the differences of all such exchanges. p is the share of
    exchanges whose difference is at least as large in absolute value, ties included. If n ≤ MAX_ENUMERATED_BLOCKS
    blocks differ, all 2ⁿ exchanges are tried. Otherwise p is (c + 1) / (T + 1) if c of T random exchanges have such a
    difference, which keeps the test's level (Phipson & Smyth 2010).

    If each system has R outputs, all of a block's are exchanged together, the first with the first, the second with the
    second, and so on. The difference is then the one between the means of their scores.

    Args:
        first, second: Counts (B, C) or (R, B, C) of each system, block by block.
        score: Maps summed counts to scores.
        trials: T, the number of random exchanges if there are too many to try all.
        random: Generator for the random exchanges.
    """
    first, second = (counts.reshape(-1, *counts.shape[-2:]) for counts in (first, second))  # (R, B, C)
    totals = first.sum(axis=1, keepdims=True), second.sum(axis=1, keepdims=True)  # (R, 1, C)
    gains = second - first
    gains = gains[:, (np.abs(gains) > TIE).any(axis=(0, 2))]  # (R, n, C)
    differing = gains.shape[1]
    difference = abs(float((score(totals[1]) - score(totals[0])).mean())) - TIE
    exact = differing <= MAX_ENUMERATED_BLOCKS
    as_large = tried = 0
    for exchanged in _all_exchanges(differing) if exact else _random_exchanges(differing, trials, random):
        moved = exchanged @ gains  # (R, t, C)
        differences = (score(totals[1] - moved) - score(totals[0] + moved)).mean(axis=0)
        as_large += int((np.abs(differences) >= difference).sum())
        tried += len(differences)
    p = as_large / tried if exact else (as_large + 1) / (tried + 1)
    return Randomisation(p, differing, exact)


def combine_tests(tests: Sequence[Randomisation]) -> Randomisation:
    """Combine tests of the same hypothesis on dependent data: p is twice the median of their p.

    Twice the median is a valid p however the tests depend on each other (Rüger 1978; Meinshausen, Meier & Bühlmann
    2009). A single test is returned as it is.
    """
    if len(tests) == 1:
        return tests[0]
    p = min(1.0, 2 * median_high(test.p for test in tests))
    return Randomisation(p, max(test.differing for test in tests), all(test.exact for test in tests))


def _all_exchanges(count: int) -> Iterator[np.ndarray]:
    """Yield all exchanges as one matrix (2ⁿ, n): each row has 1 for exchanged blocks and 0 for the others."""
    yield (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(np.float64)


def _random_exchanges(count: int, trials: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield T random rows of the same kind, as matrices (t, n)."""
    for rows in _row_counts(trials, count):
        drawn = random.integers(0, 256, (rows, -(-count // 8)), dtype=np.uint8)
        yield np.unpackbits(drawn, axis=1, count=count).astype(np.float64)


def _row_counts(rows: int, columns: int) -> Iterator[int]:
    """Yield the numbers of rows of the parts of a matrix, each of which has at most MAX_ELEMENTS elements."""
    while rows > 0:
        part = min(rows, max(1, MAX_ELEMENTS // columns))
        yield part
        rows -= part


def bootstrap_scores(
    systems: Sequence[np.ndarray], score: Score, samples: int, random: np.random.Generator
) -> np.ndarray:
    """Score each system on bootstrapped test sets (Koehn 2004).

    Each test set consists of B blocks drawn with replacement. All systems are scored on the same test sets.

    Args:
        systems: Counts (B, C) of each system.
        score: Maps summed counts to scores.
        samples: Number of test sets that are drawn.

    Returns:
        The scores, (systems, samples).
    """
    blocks = len(systems[0])
    parts = []
    for rows in _row_counts(samples, blocks):
        drawn = random.integers(0, blocks, (rows, blocks)) + blocks * np.arange(rows)[:, None]
        times = np.bincount(drawn.ravel(), minlength=rows * blocks).reshape(rows, blocks).astype(np.float64)
        parts.append(np.stack([score(times @ counts) for counts in systems]))
    return np.concatenate(parts, axis=1)


def paired_intervals(
    first: np.ndarray, second: np.ndarray, score: Score, samples: int, random: np.random.Generator
) -> tuple[Interval, Interval, Interval]:
    """Return the scores of two systems and the second's minus the first's, with their bootstrap intervals.

    Args:
        first, second: Counts (B, C) or (R, B, C) of each system. The scores of R outputs are averaged.
        score: Maps summed counts to scores.
        samples: Number of test sets that are drawn.
    """
    first, second = (counts.reshape(-1, *counts.shape[-2:]) for counts in (first, second))  # (R, B, C)
    drawn = bootstrap_scores([*first, *second], score, samples, random)
    samples_first, samples_second = drawn[: len(first)].mean(axis=0), drawn[len(first) :].mean(axis=0)
    score_first, score_second = (float(score(counts.sum(axis=1)).mean()) for counts in (first, second))
    return (
        Interval(score_first, *middle_95(samples_first)),
        Interval(score_second, *middle_95(samples_second)),
        Interval(score_second - score_first, *middle_95(samples_second - samples_first)),
    )


def middle_95(values: np.ndarray) -> tuple[float, float]:
    """Return the bounds of the middle 95 % of the values."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def wilson_95(count: int, total: int) -> tuple[float, float]:
    """Return the bounds of the 95 % interval of the share ``count / total`` (Wilson 1927)."""
    z = NormalDist().inv_cdf(0.975)
    share, ratio = count / total, z**2 / total
    middle = (share + ratio / 2) / (1 + ratio)
    half = z / (1 + ratio) * math.sqrt(share * (1 - share) / total + ratio / (4 * total))
    # The ends are exact, without rounding errors.
    return (0.0 if count == 0 else middle - half), (1.0 if count == total else middle + half)


def holm(ps: Sequence[float]) -> list[float]:
    """Correct the p-values of several tests, however dependent on each other, by the method of Holm (1979).

    The smallest p is multiplied by the number of tests, the next smallest by one less, and so on, and none becomes
    smaller than one before it. If only corrected p below a level count, the probability to call any true hypothesis
    false is at most this level.

    Returns:
        The corrected p, in the order of ``ps``.
    """
    order = np.argsort(ps)
    multiplied = np.minimum(1, np.array(ps)[order] * np.arange(len(ps), 0, -1))
    corrected = np.empty(len(ps))
    corrected[order] = np.maximum.accumulate(multiplied)
    values: list[float] = corrected.tolist()
    return values


def seed_test(first: Sequence[float], second: Sequence[float], level: float) -> SeedTest:
    """Test the difference between the means of two systems' scores with two-sided t-tests.

    Both Welch's test (1947), which does not assume equal variances, and Student's are computed, and the stricter one
    counts. If both systems have the same number of runs, that is Welch's. For different numbers Welch's test alone
    rejects too easily. It estimates its degrees of freedom from the scores, so that if two seeds are compared with ten
    and the two happen to lie close together, their mean looks more certain than it is. In simulations, equal systems
    are then called different in a tenth of the cases instead of a twentieth.

    Args:
        first, second: The scores of two or more runs of each system.
        level: Significance level for ``least_difference``; the interval has confidence 1 - ``level``.
    """
    difference = mean(second) - mean(first)
    numbers, variances = np.array([len(first), len(second)]), np.array([variance(first), variance(second)])
    parts = variances / numbers
    if math.sqrt(parts.sum()) <= TIE:
        return SeedTest(difference, None, -math.inf, math.inf, math.inf)
    welch = parts.sum() ** 2 / (parts**2 / (numbers - 1)).sum()
    student = numbers.sum() - 2
    pooled = ((numbers - 1) * variances).sum() / student
    tests = [(math.sqrt(parts.sum()), welch), (math.sqrt(pooled * (1 / numbers).sum()), student)]
    p = max(_tail_probability(abs(difference) / error, degrees) for error, degrees in tests)
    needed = max(error * _critical_t(level, degrees) for error, degrees in tests)
    return SeedTest(difference, p, difference - needed, difference + needed, needed)


def _tail_probability(t: float, degrees: float) -> float:
    """Return P(|T| ≥ t) for Student's t distribution with ν = ``degrees`` degrees of freedom.

    With T = √ν tan θ this is the share of the integral ∫ cos(θ)^(ν-1) dθ from 0 to π/2 that lies beyond atan(t / √ν).
    The whole integral is √π Γ(ν/2) / (2 Γ((ν+1)/2)); the part beyond is computed by Gauss-Legendre quadrature.
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
    """Return the t that |T| exceeds with probability ``level``, by bisection."""
    low, high = 0.0, 1.0
    while _tail_probability(high, degrees) > level:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail_probability(middle, degrees) > level else (low, middle)
    return high
