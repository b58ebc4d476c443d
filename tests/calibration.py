"""Simulates how often the comparison's tests call equal systems different, and how often different ones.

    python -m tests.calibration [pairs=4000] [trials=999]

The simulated equal systems are exchangeable: in every sentence both draw their translation from the same distribution.
Of 4,000 pairs of such systems at most 5 % + 3 standard errors may be called different. ``test_significance.py`` runs
the smaller cells.

Beside the power of our test, that of the exact test is printed where it is known. Where all exchanges are tried, our
test is the exact one. Where all differences are the same and no source repeats, the exact test is the sign test.

Segment scores of several correlated metrics and systems are judged by the comparison itself, as one family of tests: at
most 5 % + 3 standard errors of the families of equal systems may have any difference that is called real.
"""

import math
import sys
import time
from dataclasses import dataclass
from functools import cache
from unittest import mock

import numpy as np

from mt.evaluation.comparison import verdict
from mt.evaluation.comparison.verdict import Counts, SegmentScores
from mt.metrics.metric import TextMetric
from mt.metrics.registry import metrics_for
from mt.metrics.significance import MAX_ENUMERATED_BLOCKS, SIGNIFICANCE_LEVEL, randomization_test, seed_test
from tests import options
from tests.toy import SYLLABLES

MOST_REPEATS = 12
"""Maximum number of times that a source occurs in a test set."""
VARIANTS = 6
"""Number of translations of each sentence, from one without an error to one with five."""
SENTENCES = 200
"""Number of different sentences that test sets are drawn from."""


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation: the kind of systems and test set."""

    metric: str
    blocks: int
    """Number of blocks, in all of which the systems differ."""
    ties: bool
    """Whether all differences are the same: one wrong word in the middle of a sentence of 12."""
    repeats: bool
    """Whether a source occurs in the test set up to MOST_REPEATS times, otherwise once."""
    references: int = 1
    """Number of references, 1 or 2. The second accepts some of the wrong words."""


@cache
def metrics() -> dict[str, TextMetric]:
    return {metric.name: metric for metric in metrics_for("xx").values()}


@cache
def pool(metric: str, ties: bool, references: int = 1) -> np.ndarray:
    """Returns sacreBLEU's counts (S, V, C) of S sentences with V translations each. Translation v has v wrong words."""
    random = np.random.default_rng(7)
    first, second, hypotheses = [], [], []
    for _ in range(SENTENCES):
        length = 12 if ties else int(random.integers(6, 25))
        # Words differ from their neighbors, so that an error spoils the same n-grams everywhere.
        words = [f"{SYLLABLES[(3 * place) % len(SYLLABLES)]}{place}" for place in range(length)]
        order = random.permutation(length)
        for wrong in range(VARIANTS):
            spoilt = {length // 2} if ties and wrong == 1 else set(order[:wrong].tolist())
            others = [f"{word}x" if place % 2 and references == 2 else "zzz" for place, word in enumerate(words)]
            first.append(" ".join(words))
            second.append(" ".join(words[: length // 2] + others[length // 2 :]))
            hypotheses.append(" ".join(others[place] if place in spoilt else words[place] for place in range(length)))
    counts = metrics()[metric].statistics(hypotheses, *[first, second][:references])
    return counts.reshape(SENTENCES, VARIANTS, -1)


def exchangeable(cell: Cell, advantage: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Returns the counts (B, C) of two simulated systems that differ in every block.

    The second has the better translation of a block with probability 0.5 + ``advantage``. Without an advantage the two
    are exchangeable.
    """
    counts = pool(cell.metric, cell.ties, cell.references)
    sentences = random.integers(0, SENTENCES, cell.blocks)
    if cell.ties:
        better, worse = np.zeros(cell.blocks, dtype=int), np.ones(cell.blocks, dtype=int)
    else:
        drawn = np.sort(np.argsort(random.random((cell.blocks, VARIANTS)), axis=1)[:, :2], axis=1)
        better, worse = drawn[:, 0], drawn[:, 1]
    times = random.integers(1, MOST_REPEATS + 1, (cell.blocks, 1)) if cell.repeats else 1
    wins = random.random(cell.blocks) < 0.5 + advantage
    first = counts[sentences, np.where(wins, worse, better)] * times
    second = counts[sentences, np.where(wins, better, worse)] * times
    return first, second


def share_called_different(cell: Cell, pairs: int, trials: int, advantage: float = 0.0) -> float:
    """Returns the share of simulated pairs of systems that the randomization test calls different."""
    random = np.random.default_rng(cell.blocks)
    score = metrics()[cell.metric].score
    called = 0
    for _ in range(pairs):
        first, second = exchangeable(cell, advantage, random)
        called += randomization_test(first, second, score, trials, random).p < SIGNIFICANCE_LEVEL
    return called / pairs


def exact_power(cell: Cell, share: float, advantage: float) -> float | None:
    """Returns the probability that the exact test calls such systems different, or None where it is not known.

    Args:
        share: What ``share_called_different`` found for the same cell and ``advantage``.
    """
    if cell.blocks <= MAX_ENUMERATED_BLOCKS:
        return share
    if not cell.ties or cell.repeats:
        return None
    wins = range(cell.blocks + 1)
    ways = [math.comb(cell.blocks, won) for won in wins]

    def p(won: int) -> float:
        """Returns p of the two-sided sign test."""
        fewer = min(won, cell.blocks - won)
        return min(1.0, 2 * sum(ways[: fewer + 1]) / 2**cell.blocks)

    winning = 0.5 + advantage
    likely = [ways[won] * winning**won * (1 - winning) ** (cell.blocks - won) for won in wins]
    return sum(likely[won] for won in wins if p(won) < SIGNIFICANCE_LEVEL)


def most_allowed(pairs: int) -> float:
    """Returns the largest share that may be called different: 5 % plus three standard errors for this many pairs."""
    return SIGNIFICANCE_LEVEL + 3 * (SIGNIFICANCE_LEVEL * (1 - SIGNIFICANCE_LEVEL) / pairs) ** 0.5


@dataclass(frozen=True)
class SeedCell:
    """One setting of the simulation with several seeds."""

    seeds: tuple[int, int]
    """Number of seeds of each system."""
    sentences: int
    """Size of the test set."""
    wandering: float
    """Share of the sentences whose translation depends on the seed. It determines the deviation of BLEU."""


def simulate_seeds(cell: SeedCell, pairs: int, trials: int, gain: float = 0.0) -> tuple[float, float, dict[str, float]]:
    """Simulates pairs of systems with several seeds.

    Each run draws a quality of its own and draws the translations of some sentences anew. The systems are equal unless
    ``gain`` is above 0.

    Args:
        gain: Share of the second system's sentences that have one error less.

    Returns:
        The standard deviation of BLEU over the seeds, the mean difference in BLEU, and the shares of pairs that are
        called different by the test over sentences alone, by the one over seeds alone, and by both, as in the
        comparison.
    """
    random = np.random.default_rng(cell.sentences)
    counts, score = pool("BLEU", False), metrics()["BLEU"].score
    called = dict.fromkeys(("sentences", "seeds", "both"), 0)
    deviations, differences = [], []
    for _ in range(pairs):
        sentences = random.integers(0, SENTENCES, cell.sentences)
        usual = random.integers(1, VARIANTS, cell.sentences)

        def run(gained: float, sentences: np.ndarray = sentences, usual: np.ndarray = usual) -> np.ndarray:
            """Returns the counts (N, C) of one run."""
            wander = random.random(cell.sentences) < cell.wandering
            quality = random.normal(0, 0.5)  # of this seed
            drawn = np.clip(np.rint(2.5 + quality + random.normal(0, 1.5, cell.sentences)), 0, VARIANTS - 1).astype(int)
            variants = np.where(wander, drawn, usual)
            variants = np.maximum(0, variants - (random.random(cell.sentences) < gained))
            return counts[sentences, variants]

        systems = [[run(gained) for _ in range(size)] for gained, size in zip((0.0, gain), cell.seeds, strict=True)]
        scores = [[float(score(one.sum(axis=0))) for one in system] for system in systems]
        outputs = [
            np.stack(system) if cell.seeds[0] == cell.seeds[1] else np.mean(system, axis=0) for system in systems
        ]
        by_sentences = randomization_test(outputs[0], outputs[1], score, trials, random)
        by_seeds = seed_test(scores[0], scores[1])
        seeds_differ = by_seeds.p is not None and by_seeds.p < SIGNIFICANCE_LEVEL
        called["sentences"] += by_sentences.p < SIGNIFICANCE_LEVEL
        called["seeds"] += seeds_differ
        called["both"] += by_sentences.p < SIGNIFICANCE_LEVEL and seeds_differ
        deviations.append(np.std(scores[0], ddof=1))
        differences.append(by_seeds.difference)
    deviation = float(np.sqrt(np.mean(np.square(deviations))))
    return deviation, float(np.mean(differences)), {name: count / pairs for name, count in called.items()}


@dataclass(frozen=True)
class FamilyCell:
    """One setting of the simulation of segment scores, as other metrics or people give them."""

    scores: str
    """A key of SCORES."""
    blocks: int
    repeats: bool
    """Whether a source occurs in the test set up to MOST_REPEATS times, otherwise once."""
    metrics: int
    """Number of metrics, whose scores of an output are correlated."""
    systems: int
    """Number of systems that are compared with the baseline."""
    seeds: int = 1
    """Number of outputs of each system, from runs with a quality of their own."""
    correlation: float = 0.8


SCORES = {
    "normal": lambda quality: quality,
    "skewed": lambda quality: 1 - np.exp(1.5 * quality),  # mostly near one end, and a few very bad
    "ties": lambda quality: np.clip(np.rint(2 + quality), 0, 4),  # a scale of five, as people use it
}


def family(cell: FamilyCell, advantage: float, random: np.random.Generator) -> list[Counts]:
    """Returns the counts of the baseline and of the other systems. Those are better by ``advantage`` deviations of a
    segment's quality; without an advantage, all are exchangeable."""
    times = random.integers(1, MOST_REPEATS + 1, (cell.blocks, 1)) if cell.repeats else np.ones((cell.blocks, 1))
    difficulty = random.normal(size=cell.blocks)
    common, own = cell.correlation**0.5, (1 - cell.correlation) ** 0.5
    shape = cell.systems + 1, cell.seeds, cell.blocks
    quality = (
        random.normal(size=(cell.systems + 1, 1, cell.blocks)) + advantage * (np.arange(shape[0]) > 0)[:, None, None]
    )
    if cell.seeds > 1:
        quality = quality + 0.5 * random.normal(size=shape) + 0.3 * random.normal(size=(shape[0], cell.seeds, 1))
    counts: list[Counts] = [{} for _ in range(shape[0])]
    for number in range(cell.metrics):
        metric = SegmentScores(f"metric {number}", "", {})
        values = SCORES[cell.scores](difficulty + common * quality + own * random.normal(size=quality.shape))
        for system, scores in enumerate(values):
            counts[system] |= {metric: np.stack([np.stack([one, np.ones_like(one)], axis=1) * times for one in scores])}
    return counts


def share_of_families_called_different(
    cell: FamilyCell, pairs: int, trials: int, advantage: float = 0.0
) -> tuple[float, float]:
    """Returns the share of simulated families in which the comparison calls any difference real, and the share in which
    it would do so without Holm's correction."""
    random = np.random.default_rng(cell.blocks)
    names = [f"system {number}" for number in range(cell.systems + 1)]
    called = uncorrected = 0
    for number in range(pairs):
        with mock.patch.object(verdict, "SEED", number):  # other exchanges each time, as other outputs have them
            verdicts = verdict.judge(names, family(cell, advantage, random), 1, trials)
        called += any(judged.is_significant(metric) for judged in verdicts for metric in judged.corrected_p)
        uncorrected += min(map(_uncorrected_p, verdicts)) < SIGNIFICANCE_LEVEL
    return called / pairs, uncorrected / pairs


def _uncorrected_p(judged: verdict.Verdict) -> float:
    """Returns the smallest p-value of all metrics: over sentences or, if it is larger, over seeds."""
    over_seeds = {metric: 1.0 if test.p is None else test.p for metric, test in judged.over_seeds.items()}
    return min(max(paired.p, over_seeds.get(paired.metric, 0.0)) for paired in judged.over_sentences)


FAMILIES = [
    FamilyCell("normal", 100, False, 4, 1), FamilyCell("normal", 100, True, 4, 1, correlation=0.0),
    FamilyCell("normal", 30, True, 2, 3), FamilyCell("skewed", 12, False, 3, 1), FamilyCell("skewed", 30, False, 4, 2),
    FamilyCell("skewed", 100, True, 4, 2), FamilyCell("ties", 12, True, 3, 1), FamilyCell("ties", 30, False, 4, 1),
    FamilyCell("ties", 100, True, 4, 2), FamilyCell("ties", 300, True, 1, 1),
    FamilyCell("normal", 100, False, 4, 1, seeds=3), FamilyCell("skewed", 100, True, 4, 2, seeds=3),
    FamilyCell("ties", 100, False, 3, 1, seeds=5),
]  # fmt: skip


def print_families(pairs: int, trials: int) -> float:
    """Prints the shares of FAMILIES, and returns the largest share that is called different."""
    print("scores  blocks  repeats  metrics  systems  seeds  correlation  called different  uncorrected  power (0.3)")
    worst = 0.0
    for cell in FAMILIES:
        share, uncorrected = share_of_families_called_different(cell, pairs, trials)
        power, _ = share_of_families_called_different(cell, pairs // 10, trials, advantage=0.3)
        worst = max(worst, share)
        print(
            f"{cell.scores:<7} {cell.blocks:>6}  {cell.repeats!s:<7}  {cell.metrics:>7}  {cell.systems:>7}  "
            f"{cell.seeds:>5}  {cell.correlation:>11}  {share:>16.4f}  {uncorrected:>11.4f}  {power:>11.3f}",
            flush=True,
        )
    return worst


class Options(options.Options):
    pairs: int = 4000
    trials: int = 999


def main() -> None:
    settings = Options.parse(__doc__)
    pairs, trials = settings.pairs, settings.trials
    worst = 0.0
    print(f"{pairs} pairs a cell, {trials} trials; at most {most_allowed(pairs):.4f} may be called different")
    print("metric  blocks  ties   repeats  refs  called different  power (0.7 of blocks won)  exact  seconds")
    for metric in metrics():
        for blocks in (2, 3, 5, 6, 7, 9, 12, 15, 16, 20, 30, 100, 300):
            for ties, references in ((False, 1), (True, 1), (False, 2)):
                for repeats in (False, True):
                    began = time.monotonic()
                    cell = Cell(metric, blocks, ties, repeats, references)
                    share = share_called_different(cell, pairs, trials)
                    power = share_called_different(cell, pairs // 4, trials, advantage=0.2)
                    exact = exact_power(cell, power, 0.2)
                    worst = max(worst, share)
                    print(
                        f"{metric:<7} {blocks:>6}  {ties!s:<5}  {repeats!s:<7}  {references:>4}  {share:>16.4f}  "
                        f"{power:>25.3f}  {'' if exact is None else format(exact, '.3f'):>5}  "
                        f"{time.monotonic() - began:>7.1f}",
                        flush=True,
                    )
    print("seeds   sentences  deviation  difference  by sentences  by seeds  by both")
    for gain in (0.0, 0.08):
        for seeds in ((2, 2), (2, 3), (3, 3), (2, 5), (3, 5), (5, 5), (2, 10), (3, 20)):
            for sentences, wandering in ((1000, 0.02), (1000, 0.08), (1000, 0.3)):
                cell = SeedCell(seeds, sentences, wandering)
                deviation, difference, called = simulate_seeds(cell, pairs if gain == 0 else pairs // 4, trials, gain)
                worst = max(worst, called["both"] if gain == 0 else 0)
                print(
                    f"{seeds!s:<7} {sentences:>9}  {deviation:>9.2f}  {difference:>10.2f}  {called['sentences']:>12.4f}"
                    f"  {called['seeds']:>8.4f}  {called['both']:>7.4f}",
                    flush=True,
                )
    worst = max(worst, print_families(pairs, trials))
    sys.exit(worst > most_allowed(pairs))


if __name__ == "__main__":
    main()
