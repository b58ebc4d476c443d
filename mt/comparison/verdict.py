"""Which system translates better: the tests over sentences and over seeds, and when a difference counts as shown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import numpy as np

from mt.comparison.systems import EvaluationSet, System
from mt.randomness import generator
from mt.scoring import CorpusMetric, Interval, corpus_metrics
from mt.significance import (
    SeedTest,
    bootstrap_scores,
    middle_95,
    randomisation_test,
    seed_test,
    sum_blocks,
)

LEVEL = 0.05
"""A difference is called more than chance if it would be rarer than this between equally good systems."""
SEED = 1
"""Of the random exchanges and the bootstrap: the same outputs get the same report."""


@dataclass(frozen=True)
class PairedScores:
    """One metric of a baseline and of a system on the same sentences, and how likely so large a difference would be if
    the two were equally good. The scores of several outputs are averaged."""

    metric: str
    signature: str
    """sacreBLEU's."""
    baseline: Interval
    system: Interval
    difference: Interval
    """The system's score minus the baseline's; the interval is that over other sentences."""
    p: float
    """Of the paired randomisation test."""
    exact: bool
    """Whether all exchanges were tried."""
    differing_blocks: int
    """Blocks of sentences with the same source in which the two differ in what the metric counts."""

    @property
    def gain(self) -> float:
        """By how much the system is better (TER counts errors)."""
        return -self.difference.score if self.metric == "TER" else self.difference.score


@dataclass(frozen=True)
class SystemScore:
    """Scores of a system's outputs, by metric (BLEU, chrF2, TER)."""

    of_outputs: dict[str, list[float]]

    def mean(self, metric: str) -> float:
        return mean(self.of_outputs[metric])

    def deviation(self, metric: str) -> float | None:
        """Standard deviation over the seeds; None for one."""
        scores = self.of_outputs[metric]
        return stdev(scores) if len(scores) > 1 else None


@dataclass(frozen=True)
class Verdict:
    """A system against the baseline."""

    baseline: str
    system: str
    sentences: list[PairedScores]
    """The test over sentences, of each metric: of the two outputs, or of all seeds' outputs together."""
    seeds: dict[str, SeedTest]
    """By metric, the test over seeds; empty unless both systems have several."""
    pairs: list[list[PairedScores]]
    """Where there are several seeds: the test over sentences, of each metric, for each run of the one with a run of
    the other, in the order of the seeds."""
    level: float
    """A p below this is more than chance: LEVEL, shared among all systems that are held against the baseline
    (Bonferroni)."""

    def is_significant(self, paired: PairedScores) -> bool:
        """Whether the test over sentences calls a difference more than chance."""
        return paired.p < self.level

    def is_shown(self, metric: str) -> bool:
        """Whether the systems are called different: by the test over sentences and, where there are several seeds of
        both, by the one over seeds."""
        over_sentences, over_seeds = self.over_sentences(metric), self.seeds.get(metric)
        if not self.is_significant(over_sentences):
            return False
        return over_seeds is None or (over_seeds.p is not None and over_seeds.p < self.level)

    def over_sentences(self, metric: str) -> PairedScores:
        """The test over sentences of one metric."""
        return next(one for one in self.sentences if one.metric == metric)

    def gain(self, metric: str) -> float:
        """By how much the system is better, on average over the seeds (TER counts errors)."""
        return self.over_sentences(metric).gain


class Counts:
    """What each metric counts in each output of each system, which every test and interval starts from."""

    def __init__(self, evaluation: EvaluationSet, systems: Sequence[System]) -> None:
        self.metrics = corpus_metrics(evaluation.target_language)
        self.blocks = evaluation.blocks()
        self._of_outputs = {
            system.name: [
                {metric.name: metric.counts(output.hypotheses, evaluation.references) for metric in self.metrics}
                for output in system.outputs
            ]
            for system in systems
        }

    def of_output(self, system: System, number: int, metric: CorpusMetric) -> np.ndarray:
        """(B, C) of one output, block by block."""
        return sum_blocks(self._of_outputs[system.name][number][metric.name], self.blocks)

    def of_system(self, system: System, metric: CorpusMetric) -> np.ndarray:
        """(R, B, C), for each of a system's outputs."""
        return np.stack([self.of_output(system, number, metric) for number in range(len(system.outputs))])

    def scores(self, system: System) -> SystemScore:
        return SystemScore(
            {
                metric.name: [
                    float(metric.score(self.of_output(system, number, metric).sum(axis=0)))
                    for number in range(len(system.outputs))
                ]
                for metric in self.metrics
            }
        )


def judge(
    baseline: System, system: System, counts: Counts, bootstrap_samples: int, trials: int, contrasts: int
) -> Verdict:
    """Tests a system against the baseline.

    With several seeds two questions are asked, and both must be answered with yes: would other seeds have shown a
    difference (t-tests over the scores of the runs), and would other sentences (the randomisation test, which exchanges
    all outputs of a sentence together)? Runs of one system and sentences of one test set are both samples,
    and either alone can make equal systems look different.

    Args:
        counts: of both systems.
        bootstrap_samples: test sets drawn for the intervals.
        trials: random exchanges of the randomisation test.
        contrasts: how many systems are held against the baseline in all.
    """
    level = LEVEL / contrasts

    def tested(ours: list[np.ndarray], theirs: list[np.ndarray]) -> list[PairedScores]:
        return [
            _test(metric, first, second, bootstrap_samples, trials)
            for metric, first, second in zip(counts.metrics, ours, theirs, strict=True)
        ]

    sentences = tested(
        [counts.of_system(baseline, metric) for metric in counts.metrics],
        [counts.of_system(system, metric) for metric in counts.metrics],
    )
    numbers = len(baseline.outputs), len(system.outputs)
    pairs = [
        tested(
            [counts.of_output(baseline, number, metric) for metric in counts.metrics],
            [counts.of_output(system, number, metric) for metric in counts.metrics],
        )
        for number in range(min(numbers) if max(numbers) > 1 else 0)
    ]
    first, second = counts.scores(baseline).of_outputs, counts.scores(system).of_outputs
    seeds = {name: seed_test(first[name], second[name], level) for name in first} if min(numbers) > 1 else {}
    return Verdict(baseline.name, system.name, sentences, seeds, pairs, level)


def _test(metric: CorpusMetric, first: np.ndarray, second: np.ndarray, samples: int, trials: int) -> PairedScores:
    """Counts of both, (B, C) or (R, B, C) with an R of their own."""
    first, second = (counts.reshape(-1, *counts.shape[-2:]) for counts in (first, second))
    drawn = bootstrap_scores([*first, *second], metric.score, samples, generator(SEED, "bootstrap"))
    ours, theirs = drawn[: len(first)].mean(axis=0), drawn[len(first) :].mean(axis=0)
    scores = [float(metric.score(counts.sum(axis=1)).mean()) for counts in (first, second)]
    difference = scores[1] - scores[0]
    if len(first) != len(second):
        # There is no output to exchange each one with, so their mean counts are exchanged.
        first, second = (counts.mean(axis=0, keepdims=True) for counts in (first, second))
    found = randomisation_test(first, second, metric.score, trials, generator(SEED, "randomisation"))
    exchanged = float(metric.score(second.sum(axis=1)).mean() - metric.score(first.sum(axis=1)).mean())
    return PairedScores(
        metric.name,
        metric.signature,
        Interval(scores[0], *middle_95(ours)),
        Interval(scores[1], *middle_95(theirs)),
        Interval(difference, *middle_95(theirs - ours)),
        # Mean counts that point the other way than the mean scores are no evidence for them.
        found.p if exchanged * difference >= 0 else 1.0,
        found.exact,
        found.differing,
    )


def shown_p(p: float | None) -> str:
    """With three digits, or as a bound with four places; "–" where there is none."""
    return "–" if p is None else f"{p:.3f}" if p >= 0.1 else f"{rounded_up(p):.4f}"


def rounded_up(p: float) -> float:
    """Rounded up to four places, and at least 0.0001: what is said to be a bound has to be one."""
    return max(1e-4, math.ceil(round(p * 1e4, 6)) / 1e4)
