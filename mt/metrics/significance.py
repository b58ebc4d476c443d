"""Significance tests and confidence intervals of the difference between two systems.

Scores depend on chance in two ways. Other test sentences would have given other scores: paired approximate
randomization (Riezler & Maxwell 2005) and the bootstrap (Koehn 2004) measure this. Other seeds would have given other
models: t-tests over the scores of several runs of each system measure that.

Sentences with the same source are not independent, because a system gives them the same translation. They form a block,
and the tests exchange or draw whole blocks.

Shapes: N sentences, B blocks, n blocks in which two systems differ, C counts of a metric, T trials, t trials that are
computed at once, R outputs of a system.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import NormalDist, mean, median_high, variance

import numpy as np

Score = Callable[[np.ndarray], np.ndarray]
"""Function from summed counts (…, C) to corpus scores (…), such as ``Metric.score``."""

SIGNIFICANCE_LEVEL = 0.05
"""A difference is significant if its p-value is below this."""
BOOTSTRAP_SAMPLES = 2_000
"""Number of test sets that the bootstrap draws, where no setting says otherwise."""
MIN_DIFFERING_BLOCKS = next(blocks for blocks in count(1) if 2.0 ** (1 - blocks) < SIGNIFICANCE_LEVEL)
"""Number of differing blocks that a significant difference needs, 6 at the level 0.05.

At least two of the 2ⁿ exchanges of n blocks give a difference as large as the real one: that of no block, and that of
all. So p is at least 2 / 2ⁿ."""
MAX_ENUMERATED_BLOCKS = 15
"""Maximum number of differing blocks for which all exchanges are tried (2¹⁵ = 32,768) instead of a random sample."""
TIE = 1e-9
"""Values with a smaller difference count as equal, because sums in another order round differently."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(100)
MAX_ELEMENTS = 2**22
"""Maximum number of elements of a random matrix that are in memory at a time (32 MB)."""


@dataclass(frozen=True)
class Interval:
    """A score with the ends of its 95 % confidence interval."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Randomization:
    """The result of a paired randomization test."""

    p: float
    """Probability of a difference at least as large as the real one if the two systems' outputs were exchangeable."""
    differing: int
    """Number of blocks in which the two systems' counts differ. Other blocks have no influence on the test."""
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
    """Bounds of the difference's 95 % confidence interval; infinite if p is None."""
    least_difference: float
    """The smallest significant difference with these numbers of seeds and these deviations."""


def block_numbers(lines: Sequence[str]) -> np.ndarray:
    """Return the block of each sentence, (N,) int64, given the sources. Equal lines are one block.

    Blocks are numbered from 0 in the order of their first line.
    """
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(line, len(numbers)) for line in lines], dtype=np.int64)


def sum_blocks(counts: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Sum the counts of sentences (N, C) to counts of blocks (B, C), given the block of each sentence (N,)."""
    sums = np.zeros((int(blocks.max(initial=-1)) + 1, counts.shape[1]))
    np.add.at(sums, blocks, counts)
    return sums


def randomization_test(
    first: np.ndarray, second: np.ndarray, score: Score, trials: int, random: np.random.Generator
) -> Randomization:
    """Test two systems by paired approximate randomization (Riezler & Maxwell 2005; Noreen 1989) over blocks.

    Under the null hypothesis, the systems could exchange their outputs in any blocks, and the real difference would be
    one among the differences of all such exchanges. p is the share of exchanges whose difference is at least as large
    in absolute value, ties included. If n ≤ MAX_ENUMERATED_BLOCKS blocks differ, all 2ⁿ exchanges are tried. Otherwise
    T random exchanges are tried, and if c of them have such a difference, p is (c + 1) / (T + 1), which keeps the
    test's level (Phipson & Smyth 2010).

    If each system has R outputs, a block exchanges all of them at once: output r of the first system and output r of
    the second. The difference is then between the systems' mean scores over the R outputs.

    Args:
        first, second: Counts (B, C) or (R, B, C) of each system, block by block.
        score: Maps summed counts to scores.
        trials: T, the number of random exchanges if there are too many to try all.
        random: Generator for the random exchanges.
    """
    first, second = _of_outputs(first, second)  # (R, B, C)
    totals = first.sum(axis=1, keepdims=True), second.sum(axis=1, keepdims=True)  # (R, 1, C)
    gains = second - first
    gains = gains[:, (np.abs(gains) > TIE).any(axis=(0, 2))]  # (R, n, C)
    differing = gains.shape[1]
    difference = abs(float((score(totals[1]) - score(totals[0])).mean())) - TIE
    exact = differing <= MAX_ENUMERATED_BLOCKS
    exchanges = _random_exchanges(differing, trials, random)
    if exact:  # all of them, in a single matrix (2ⁿ, n): 1 for exchanged blocks, else 0
        every = np.arange(2**differing)[:, None] >> np.arange(differing) & 1
        exchanges = iter([every.astype(np.float64)])
    all_moved = (exchanged @ gains for exchanged in exchanges)  # (R, t, C) each
    differences = [(score(totals[1] - moved) - score(totals[0] + moved)).mean(axis=0) for moved in all_moved]
    as_large = np.abs(np.concatenate(differences)) >= difference
    p = as_large.mean() if exact else (as_large.sum() + 1) / (len(as_large) + 1)
    return Randomization(float(p), differing, exact)


def _of_outputs(*counts: np.ndarray) -> Iterator[np.ndarray]:
    """Yield counts (B, C) or (R, B, C) as (R, B, C)."""
    return (part.reshape(-1, *part.shape[-2:]) for part in counts)


def combine_tests(tests: Sequence[Randomization]) -> Randomization:
    """Combine tests of the same hypothesis on dependent data: the p-value is twice the median of theirs, at most 1.

    Twice the median is a valid p however the tests depend on each other (Rüger 1978; Meinshausen, Meier & Bühlmann
    2009). A single test is returned as it is.
    """
    if len(tests) == 1:
        return tests[0]
    p = min(1.0, 2 * median_high(test.p for test in tests))
    return Randomization(p, max(test.differing for test in tests), all(test.exact for test in tests))


def _random_exchanges(count: int, trials: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield random exchanges as matrices (t, n), n = ``count``: 1 for exchanged blocks, else 0. T rows in all."""
    for rows in _row_counts(trials, count):
        drawn = random.integers(0, 256, (rows, -(-count // 8)), dtype=np.uint8)
        yield np.unpackbits(drawn, axis=1, count=count).astype(np.float64)


def _row_counts(rows: int, columns: int) -> Iterator[int]:
    """Cut a matrix (rows, columns) into parts of at most MAX_ELEMENTS elements. Yield the number of rows of each."""
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
        random: Generator for the draws.

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
    """Compute bootstrap intervals of the scores of two systems and of their difference, on the same test sets.

    Args:
        first, second: Counts (B, C) or (R, B, C) of each system. The scores of R outputs are averaged.
        score: Maps summed counts to scores.
        samples: Number of test sets that are drawn.
        random: Generator for the draws.

    Returns:
        The first system's score, the second's, and the second's minus the first's, each with its interval.
    """
    first, second = _of_outputs(first, second)  # (R, B, C)
    drawn = bootstrap_scores([*first, *second], score, samples, random)
    samples_first, samples_second = drawn[: len(first)].mean(axis=0), drawn[len(first) :].mean(axis=0)
    score_first, score_second = (float(score(counts.sum(axis=1)).mean()) for counts in (first, second))
    return (
        Interval(score_first, *middle_95(samples_first)),
        Interval(score_second, *middle_95(samples_second)),
        Interval(score_second - score_first, *middle_95(samples_second - samples_first)),
    )


def middle_95(values: np.ndarray) -> tuple[float, float]:
    """Return the 2.5th and the 97.5th percentile of values."""
    low, high = np.percentile(values, [2.5, 97.5]).tolist()
    return low, high


def wilson_95(count: int, total: int) -> tuple[float, float]:
    """Return the bounds of the 95 % confidence interval of the share ``count / total`` (Wilson 1927)."""
    z = NormalDist().inv_cdf(0.975)
    share, ratio = count / total, z**2 / total
    middle = (share + ratio / 2) / (1 + ratio)
    half = z / (1 + ratio) * math.sqrt(share * (1 - share) / total + ratio / (4 * total))
    # The ends are exact, without rounding errors.
    return (0.0 if count == 0 else middle - half), (1.0 if count == total else middle + half)


def holm(ps: Sequence[float]) -> list[float]:
    """Correct p-values for multiple testing by Holm's method (1979). The tests may depend on each other.

    The smallest of m p-values is multiplied by m, the next by m - 1, and so on; none becomes smaller than the one
    before it, or larger than 1. Testing the corrected p-values at a level keeps the family-wise error rate below it.

    Returns:
        The corrected p-values, in the order of ``ps``.
    """
    order = np.argsort(ps)
    multiplied = np.minimum(1, np.array(ps)[order] * np.arange(len(ps), 0, -1))
    corrected = np.empty(len(ps))
    corrected[order] = np.maximum.accumulate(multiplied)
    return corrected.tolist()


def seed_test(first: Sequence[float], second: Sequence[float]) -> SeedTest:
    """Test the difference between the means of two systems' scores with two-sided t-tests.

    Both Welch's test (1947), which does not assume equal variances, and Student's are computed, and the stricter result
    counts. With equal numbers of runs, this is always Welch's. With different numbers, Welch's test alone rejects too
    easily: if two seeds are compared with ten, and the two scores happen to be close, their mean looks more certain
    than it is. In simulations with equal systems, it then rejects in a tenth of the cases at the level 0.05.

    Args:
        first, second: The scores of two or more runs of each system.
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
    needed = max(error * _critical_t(SIGNIFICANCE_LEVEL, degrees) for error, degrees in tests)
    return SeedTest(difference, p, difference - needed, difference + needed, needed)


def _tail_probability(t: float, degrees: float) -> float:
    """Return P(|T| ≥ t) for Student's t distribution with ν = ``degrees`` degrees of freedom.

    With T = √ν tan θ this is the share of the integral ∫ cos(θ)^(ν-1) dθ from 0 to π/2 that lies beyond atan(t / √ν).
    """

    def integral(start: float) -> float:  # from ``start`` to π/2, by Gauss-Legendre quadrature
        half = (math.pi / 2 - start) / 2
        return half * float(WEIGHTS @ np.cos(start + half * (NODES + 1)) ** (degrees - 1))

    return integral(math.atan(t / math.sqrt(degrees))) / integral(0.0)


def _critical_t(level: float, degrees: float) -> float:
    """Return the t that |T| exceeds with probability ``level``, by bisection."""
    low, high = 0.0, 1.0
    while _tail_probability(high, degrees) > level:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail_probability(middle, degrees) > level else (low, middle)
    return high
