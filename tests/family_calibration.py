"""Simulates segment scores of several metrics and systems, which the comparison judges as one family of tests.

``python -m tests.calibration`` prints these simulations after its own. ``test_verdict.py`` runs some of them.
"""

from dataclasses import dataclass
from unittest import mock

import numpy as np

from mt.evaluation.comparison import verdict
from mt.evaluation.comparison.segment_scores import SegmentScores
from mt.evaluation.comparison.verdict import Counts
from mt.metrics.significance import SIGNIFICANCE_LEVEL

MOST_REPEATS = 12
"""Maximum number of times that a source occurs in a test set."""


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
        called += any(judged.is_shown(metric) for judged in verdicts for metric in judged.corrected_p)
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
