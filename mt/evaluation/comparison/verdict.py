"""Decides which of two systems translates better, by significance tests over sentences and over seeds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev

import numpy as np

from mt.config import CompareConfig, as_folders
from mt.core.errors import InputError, brief
from mt.core.files import read_lines
from mt.core.randomness import generator
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.metrics.metric import Chrf, Metric, TextMetric
from mt.metrics.registry import METRICS, metrics_for
from mt.metrics.significance import (
    SIGNIFICANCE_LEVEL,
    Interval,
    Randomization,
    SeedTest,
    combine_tests,
    holm,
    paired_intervals,
    randomization_test,
    seed_test,
    sum_blocks,
)

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d{1,3})?", re.ASCII | re.IGNORECASE)
MAX_SCORE = 1e6
"""Largest absolute score. Sums of larger ones would round by more than the smallest difference that counts."""
MAX_DISAGREEMENT = 4.0
"""Maximum number of standard errors by which scores may contradict chrF2 without a warning."""

SEED = 1
"""Seed of the random exchanges and the bootstrap, fixed so that the same outputs get the same report."""


@dataclass(frozen=True, eq=False)
class SegmentScores(Metric):
    """A metric that is the mean of segment scores, which another program has computed or people have given, and its
    scores for all outputs of a comparison."""

    in_verdict = True
    name: str
    signature: str
    scores: Mapping[Path, np.ndarray]
    """``Output.origin`` → its scores (N,)."""
    higher_is_better: bool = True
    decimals: int = 2

    def statistics(self, output: Output) -> np.ndarray:
        """Return the statistics (N, 2) of an output: the score of each segment, and 1."""
        scores = self.scores[output.origin]
        return np.stack([scores, np.ones_like(scores)], axis=1)

    def score(self, sums: np.ndarray) -> np.ndarray:
        return sums[..., 0] / sums[..., 1]


def read_scores(config: CompareConfig, evaluation: EvaluationSet) -> list[SegmentScores]:
    """Read the files of the setting ``scores``: for each metric, one file for each output.

    Reports show four decimals if all scores of a metric are small, such as those of COMET.

    Raises:
        InputError: A file cannot be read, or has not one number for each test sentence, or a metric has the name of
            one that the comparison computes.
    """
    origins = [Path(origin) for system in config.systems for origin in system]
    computed = {name.casefold() for key, metric in METRICS.items() for name in (key, metric.name)}
    given = []
    for name, files in config.scores.items():
        if name.casefold() in computed:
            raise InputError(
                f"scores.{name}: {name} is computed by the comparison itself; give these scores another name"
            )
        paths = [path for system in files for path in as_folders(system)]
        scores = {
            origin: _read_file(Path(path), len(evaluation.references))
            for origin, path in zip(origins, paths, strict=True)
        }
        decimals = 4 if all(np.abs(values).max() < 10 for values in scores.values()) else 2
        signature = f"mean of the scores in {', '.join(paths)}"
        given.append(SegmentScores(name, signature, scores, config.higher_is_better(name), decimals))
    return given


def _read_file(path: Path, count: int) -> np.ndarray:
    scores = []
    for number, line in enumerate(read_lines(path), 1):
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace").strip()
        if not NUMBER.fullmatch(text) or abs(float(text)) > MAX_SCORE:
            wrong = f"“{brief(text)}” is not a number of at most {MAX_SCORE:,.0f}" if text else "is empty"
            raise InputError(
                f"{path}: line {number} {wrong}; write the score of test sentence n, such as 0.85, on line n"
            )
        scores.append(float(text))
    if len(scores) != count:
        raise InputError(
            f"{path} has {len(scores):,} scores, but there are {count:,} test sentences; write the score of test "
            "sentence n on line n"
        )
    return np.array(scores)


def find_score_warnings(
    evaluation: EvaluationSet, systems: Sequence[System], given: Sequence[SegmentScores]
) -> Iterator[str]:
    """Yield a sentence for each reason to doubt the scores of other metrics: scores that are all equal, the same for
    two outputs, or contrary to chrF2, as if they were those of another output."""
    outputs = [output for system in systems for output in system.outputs]
    chrf, blocks = Chrf(evaluation.target_language), evaluation.blocks()
    segments = [chrf.segment_scores(output.hypotheses, *evaluation.all_references) for output in outputs if given]
    for scores in given:
        sign = 1 if scores.higher_is_better else -1
        signed = [sign * scores.scores[output.origin] for output in outputs]
        for output, values in zip(outputs, signed, strict=True):
            if np.ptp(values) == 0 and len(values) > 1:
                yield f"{scores.name}: every sentence of {output.origin} has the same score, {sign * values[0]:g}"
        for (first, x, x_chrf), (second, y, y_chrf) in combinations(zip(outputs, signed, segments, strict=True), 2):
            pair = f"{scores.name}: {first.origin} and {second.origin}"
            if np.array_equal(x, y) and first.hypotheses != second.hypotheses:
                yield f"{pair} have the same scores, and their translations differ"
            gains = sum_blocks(np.stack([y - x, np.subtract(y_chrf, x_chrf)], axis=1), blocks)
            agreement = np.sign(gains).prod(axis=1)
            if agreement.sum() < -MAX_DISAGREEMENT * np.sqrt(np.abs(agreement).sum()):
                yield (
                    f"{pair}: mostly the sentences that are worse in chrF2 have the better score; check the order of "
                    "the files, and better=higher or lower"
                )


@dataclass(frozen=True)
class PairedScores:
    """The scores of a baseline and a system in one metric, averaged over their outputs, and the test of the difference
    over sentences."""

    metric: str
    signature: str
    baseline: Interval
    system: Interval
    difference: Interval
    """The system's score minus the baseline's, with the 95 % bootstrap interval over sentences."""
    p: float
    """p-value of the paired randomization test: the probability of so large a difference if the two were equally good.
    If only one of the two has several outputs, it is twice the median of the p-values of all pairs of outputs."""
    exact: bool
    """Whether the test tried all exchanges, rather than a random sample."""
    differing_blocks: int
    """The number of blocks (groups of sentences with the same source) with different counts of the metric."""
    higher_is_better: bool
    decimals: int = 2
    """The number of decimals of the scores in the report."""

    @property
    def gain(self) -> float:
        """By how much the system is better than the baseline: negative if it is worse, whatever the metric."""
        return self.difference.score if self.higher_is_better else -self.difference.score


@dataclass(frozen=True)
class SystemScore:
    """A system's scores in one metric."""

    mean: float
    deviation: float | None
    """The standard deviation over the outputs; None if there is only one."""
    outputs: list[float]
    """The score of each output."""


@dataclass(frozen=True)
class Verdict:
    """The results of all tests of a system against the baseline."""

    baseline: str
    """The baseline's name."""
    system: str
    """The system's name."""
    over_sentences: list[PairedScores]
    """The test over sentences in each metric, BLEU first. All seeds of a system are tested together. Metrics that are
    not ``Metric.in_verdict`` are listed, too."""
    over_seeds: dict[str, SeedTest]
    """Name of a metric, such as "chrF2" → the test over seeds. It is empty unless both systems have several outputs."""
    corrected_p: dict[str, float]
    """Name of a metric that is ``in_verdict`` → the p-value by which the difference is judged: that over sentences or,
    if both systems have several outputs, the larger of that and the one over seeds; corrected by Holm's method for all
    such metrics and all systems of the comparison."""

    def is_significant(self, metric: str) -> bool:
        """Return whether the systems differ significantly in a metric.

        Args:
            metric: ``Metric.name`` of a metric that is ``in_verdict``, such as "chrF2".
        """
        return self.corrected_p[metric] < SIGNIFICANCE_LEVEL

    def test(self, metric: str) -> PairedScores:
        """Return the test over sentences for one metric. StopIteration is raised if the metric was not computed."""
        return next(paired for paired in self.over_sentences if paired.metric == metric)


Counts = Mapping[Metric, np.ndarray]
"""Metric → its counts (R, B, C) for R outputs of a system, B blocks of sentences and C counts (see ``Metric``)."""


def block_counts(
    evaluation: EvaluationSet, systems: Sequence[System], given: Sequence[SegmentScores] = ()
) -> list[Counts]:
    """Return the counts of every metric for each system.

    Args:
        given: Scores of further metrics, for all outputs.
    """
    metrics: list[TextMetric | SegmentScores] = [*metrics_for(evaluation.target_language).values(), *given]
    references, blocks = evaluation.all_references, evaluation.blocks()

    def counts(metric: TextMetric | SegmentScores, output: Output) -> np.ndarray:
        if isinstance(metric, SegmentScores):
            return sum_blocks(metric.statistics(output), blocks)
        return sum_blocks(metric.statistics(output.hypotheses, *references), blocks)

    return [
        {metric: np.stack([counts(metric, output) for output in system.outputs]) for metric in metrics}
        for system in systems
    ]


def system_scores(counts: Counts) -> dict[str, SystemScore]:
    """Return the scores of one system: name of the metric → scores."""
    scores = {metric.name: metric.score(outputs.sum(axis=1)).tolist() for metric, outputs in counts.items()}
    return {
        name: SystemScore(mean(values), stdev(values) if len(values) > 1 else None, values)
        for name, values in scores.items()
    }


def refuse_too_few_trials(config: CompareConfig) -> None:
    """Raise InputError if no corrected p-value could be below the level of significance."""
    # The smallest possible p is 1 / (trials + 1), or twice that if only one of two systems has several outputs. It is
    # multiplied by the number of tests.
    numbers, others = {len(system) for system in config.systems}, len(config.systems) - 1
    tests = others * (sum(metric.in_verdict for metric in METRICS.values()) + len(config.scores))
    needed = round((2 if 1 in numbers and len(numbers) > 1 else 1) * tests / SIGNIFICANCE_LEVEL)
    if config.randomization_trials < needed:
        raise InputError(
            f"randomization_trials={config.randomization_trials} is too few for a p-value below the level of "
            f"significance; set it to {needed} or more"
        )


def judge(names: Sequence[str], counts: Sequence[Counts], bootstrap_samples: int, trials: int) -> list[Verdict]:
    """Test each system against the baseline, which comes first, and return the verdicts.

    If both systems have several seeds, a difference counts as shown only if two tests agree: t-tests over the scores of
    the runs (would other seeds have shown a difference?) and the randomization test, which exchanges all outputs of a
    sentence together (would other sentences have shown it?). The runs of a system and the sentences of a test set are
    both samples, and either alone can make equal systems look different.

    The differences in all metrics that are ``in_verdict``, of all systems, are one family of tests, whose p-values are
    corrected together.

    Args:
        names: The names of the systems.
        counts: The counts of the systems, as ``block_counts`` returns them.
        bootstrap_samples: Number of test sets that the bootstrap draws for the intervals.
        trials: Number of random exchanges of the randomization test.
    """
    verdicts = [
        _verdict((names[0], name), (counts[0], system), bootstrap_samples, trials)
        for name, system in zip(names[1:], counts[1:], strict=True)
    ]
    corrected = np.reshape(holm([p for verdict in verdicts for p in verdict.corrected_p.values()]), (len(verdicts), -1))
    return [
        replace(verdict, corrected_p=dict(zip(verdict.corrected_p, row, strict=True)))
        for verdict, row in zip(verdicts, corrected.tolist(), strict=True)
    ]


def _verdict(names: tuple[str, str], counts: tuple[Counts, Counts], bootstrap_samples: int, trials: int) -> Verdict:
    """Test a system against the baseline. The p-values in ``corrected_p`` are not corrected yet."""
    baseline, system = counts
    over_sentences = [_test(metric, baseline[metric], system[metric], bootstrap_samples, trials) for metric in baseline]
    scores = [system_scores(system_counts) for system_counts in counts]
    over_seeds = {}
    if all(len(outputs) > 1 for system_counts in counts for outputs in system_counts.values()):
        over_seeds = {name: seed_test(scores[0][name].outputs, scores[1][name].outputs) for name in scores[0]}
    p = {paired.metric: paired.p for metric, paired in zip(baseline, over_sentences, strict=True) if metric.in_verdict}
    for name in p.keys() & over_seeds.keys():
        over_seeds_p = over_seeds[name].p
        p[name] = max(p[name], 1.0 if over_seeds_p is None else over_seeds_p)
    return Verdict(*names, over_sentences, over_seeds, p)


def _test(metric: Metric, first: np.ndarray, second: np.ndarray, samples: int, trials: int) -> PairedScores:
    """Test the difference in one metric over sentences, and compute the scores with their intervals.

    Args:
        first: Counts (R, B, C) of the baseline.
        second: Counts of the system, with the same B and C.
        samples: Number of bootstrap samples.
        trials: Number of random exchanges.
    """
    intervals = paired_intervals(first, second, metric.score, samples, generator(SEED, "bootstrap"))
    result = _randomization(metric, first, second, intervals[2].score, trials)
    return PairedScores(
        metric.name,
        metric.signature,
        *intervals,
        result.p,
        result.exact,
        result.differing,
        metric.higher_is_better,
        metric.decimals,
    )


def _randomization(
    metric: Metric, first: np.ndarray, second: np.ndarray, difference: float, trials: int
) -> Randomization:
    """Run the randomization test on counts (R, B, C) of two systems, which may have different numbers of outputs R.

    Args:
        difference: The mean score of the second system's outputs minus that of the first's.
    """
    random = generator(SEED, "randomisation")
    if 1 in (len(first), len(second)):
        return combine_tests([randomization_test(x, y, metric.score, trials, random) for x in first for y in second])
    if len(first) == len(second):
        return randomization_test(first, second, metric.score, trials, random)
    # The outputs cannot be paired, so the mean counts of each system are exchanged instead. By itself, this test finds
    # differences between equal systems too often, because a mean of several outputs is unlike a single output. The test
    # over seeds, which must agree, prevents that.
    means = first.mean(axis=0), second.mean(axis=0)
    result = randomization_test(*means, metric.score, trials, random)
    difference_of_means = float(metric.score(means[1].sum(axis=0)) - metric.score(means[0].sum(axis=0)))
    # With opposite signs, the test is not evidence for a difference of the mean scores.
    return replace(result, p=1.0) if difference_of_means * difference < 0 else result
