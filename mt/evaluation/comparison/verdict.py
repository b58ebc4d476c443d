"""Decides which system translates better: the tests over sentences and seeds, and when a difference counts as shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev

import numpy as np

from mt.core.randomness import generator
from mt.evaluation.systems import EvaluationSet, System
from mt.metrics.scoring import CorpusMetric, Interval, corpus_metrics
from mt.metrics.significance import (
    SIGNIFICANCE_LEVEL,
    SeedTest,
    bootstrap_scores,
    combined,
    middle_95,
    randomisation_test,
    seed_test,
    sum_blocks,
)

SEED = 1
"""Seed of the random exchanges and the bootstrap, fixed so that the same outputs get the same report."""


@dataclass(frozen=True)
class PairedScores:
    """Scores of a baseline and a system in one metric on the same sentences, with the test of their difference. The
    scores of several outputs are averaged."""

    metric: str
    signature: str
    """sacreBLEU's signature of the metric."""
    baseline: Interval
    system: Interval
    difference: Interval
    """The system's score minus the baseline's, with the bootstrap interval over sentences."""
    p: float
    """p of the paired randomisation test: how likely so large a difference would be if the two were equally good. If
    one of several outputs is compared with a single one, twice the median of the p of each."""
    exact: bool
    """Whether all exchanges were tried instead of a random sample."""
    differing_blocks: int
    """Number of blocks (sentences with the same source) for which the metric's counts of the two differ."""

    @property
    def gain(self) -> float:
        """By how much the system is better than the baseline. The sign of TER is reversed, because it counts errors."""
        return -self.difference.score if self.metric == "TER" else self.difference.score


@dataclass(frozen=True)
class SystemScore:
    """Scores of each output of a system, by metric (BLEU, chrF2, TER)."""

    of_outputs: dict[str, list[float]]

    def mean(self, metric: str) -> float:
        return mean(self.of_outputs[metric])

    def deviation(self, metric: str) -> float | None:
        """Returns the standard deviation over the seeds, or None if there is only one."""
        scores = self.of_outputs[metric]
        return stdev(scores) if len(scores) > 1 else None


@dataclass(frozen=True)
class Verdict:
    """The results of all tests of a system against the baseline."""

    baseline: str
    system: str
    sentence_tests: list[PairedScores]
    """The test over sentences for each metric, on the two outputs, or on the outputs of all seeds together."""
    seed_tests: dict[str, SeedTest]
    """The test over seeds, by metric; empty unless both systems have several seeds."""
    pairs: list[list[PairedScores]]
    """If a system has several seeds: the tests over sentences, one for each metric, of the two systems' first outputs,
    of their second outputs, and so on, in the order of the seeds."""
    level: float
    """Significance level: a p below this is more than chance. It is SIGNIFICANCE_LEVEL divided by the number of systems
    that are tested against the baseline (Bonferroni)."""

    def is_significant(self, paired: PairedScores) -> bool:
        """Returns whether this test over sentences finds the difference to be more than chance."""
        return paired.p < self.level

    def is_shown(self, metric: str) -> bool:
        """Returns whether the systems are called different in a metric: by the test over sentences and, if both have
        several seeds, also by the test over seeds."""
        by_sentences = self.is_significant(self.over_sentences(metric))
        return by_sentences and (not self.seed_tests or self.is_shown_by_seeds(metric))

    def is_shown_by_seeds(self, metric: str) -> bool:
        """Returns whether the test over seeds finds the difference to be more than chance."""
        p = self.seed_tests[metric].p
        return p is not None and p < self.level

    def over_sentences(self, metric: str) -> PairedScores:
        """Returns the test over sentences for one metric."""
        return next(one for one in self.sentence_tests if one.metric == metric)

    def gain(self, metric: str) -> float:
        """Returns by how much the system is better, on average over the seeds. The sign of TER is reversed."""
        return self.over_sentences(metric).gain


class Counts:
    """The counts of each metric in each output of each system, from which all tests and intervals are computed."""

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
        """Returns the counts (B, C) of one output, block by block."""
        return sum_blocks(self._of_outputs[system.name][number][metric.name], self.blocks)

    def of_system(self, system: System, metric: CorpusMetric) -> np.ndarray:
        """Returns the counts (R, B, C) of all R outputs of a system."""
        return np.stack([self.of_output(system, number, metric) for number in range(len(system.outputs))])

    def scores(self, system: System) -> SystemScore:
        """Returns the scores of each output of a system."""
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

    If both systems have several seeds, a difference counts as shown only if two tests agree: t-tests over the scores of
    the runs (would other seeds have shown a difference?) and the randomisation test, which exchanges all outputs of a
    sentence together (would other sentences have shown it?). The runs of a system and the sentences of a test set are
    both samples, and either alone can make equal systems look different.

    Args:
        counts: Counts of both systems.
        bootstrap_samples: Number of test sets that are drawn for the intervals.
        trials: Number of random exchanges of the randomisation test.
        contrasts: Number of systems that are tested against the baseline in all.
    """
    level = SIGNIFICANCE_LEVEL / contrasts

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
    """Tests one metric over sentences. If one system has a single output, its tests against each of the outputs of the
    other are combined.

    Args:
        first, second: Counts of the baseline and of the system, (B, C) or (R, B, C). Their R may be different.
    """
    first, second = (counts.reshape(-1, *counts.shape[-2:]) for counts in (first, second))
    drawn = bootstrap_scores([*first, *second], metric.score, samples, generator(SEED, "bootstrap"))
    ours, theirs = drawn[: len(first)].mean(axis=0), drawn[len(first) :].mean(axis=0)
    scores = [float(metric.score(counts.sum(axis=1)).mean()) for counts in (first, second)]
    difference = scores[1] - scores[0]
    random = generator(SEED, "randomisation")
    if 1 in (len(first), len(second)):
        tests = [randomisation_test(one, other, metric.score, trials, random) for one in first for other in second]
        found = combined(tests)
    elif len(first) == len(second):
        found = randomisation_test(first, second, metric.score, trials, random)
    else:
        # The outputs cannot be paired, so the mean counts of each system are exchanged instead. Alone, this would call
        # equal systems different too often where the mean of several is unlike a single one. The test over seeds, which
        # has to agree, keeps it from that.
        means = first.mean(axis=0), second.mean(axis=0)
        found = randomisation_test(*means, metric.score, trials, random)
        exchanged = float(metric.score(means[1].sum(axis=0)) - metric.score(means[0].sum(axis=0)))
        if exchanged * difference < 0:  # then the test is no evidence for a difference of the mean scores
            found = replace(found, p=1.0)
    return PairedScores(
        metric.name,
        metric.signature,
        Interval(scores[0], *middle_95(ours)),
        Interval(scores[1], *middle_95(theirs)),
        Interval(difference, *middle_95(theirs - ours)),
        found.p,
        found.exact,
        found.differing,
    )
