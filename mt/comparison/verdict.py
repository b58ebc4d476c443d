"""Which system translates better, and what may be said of it: paired tests, and a sentence in plain words."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from mt.comparison.systems import System
from mt.scoring import PairedScores, corpus_scores, paired_tests

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class SystemScore:
    """Mean over a system's seeds, and their standard deviation (None for one seed)."""

    bleu: float
    bleu_deviation: float | None
    chrf: float
    chrf_deviation: float | None
    ter: float
    ter_deviation: float | None


@dataclass(frozen=True)
class Verdict:
    """A system against the baseline."""

    baseline: str
    system: str
    pairs: list[list[PairedScores]]
    """The paired tests of run i of the one with run i of the other."""
    words: str


def score_system(system: System, language: str) -> SystemScore:
    scores = [corpus_scores(run.hypotheses, run.references, language) for run in system.runs]

    def both(values: Sequence[float]) -> tuple[float, float | None]:
        return mean(values), stdev(values) if len(values) > 1 else None

    return SystemScore(
        *both([one.bleu for one in scores]), *both([one.chrf for one in scores]), *both([one.ter for one in scores])
    )


def judge(baseline: System, system: System, language: str, bootstrap_samples: int, trials: int) -> Verdict:
    """Tests each pair of runs; with unequal numbers of seeds, as many as there are pairs."""
    pairs = [
        paired_tests(first.hypotheses, second.hypotheses, first.references, language, bootstrap_samples, trials)
        for first, second in zip(baseline.runs, system.runs, strict=False)
    ]
    return Verdict(baseline.name, system.name, pairs, _in_words(baseline, system, pairs))


def is_significant(paired: PairedScores) -> bool:
    """Whether both tests call the difference more than chance."""
    return max(paired.p_bootstrap, paired.p_randomization) < SIGNIFICANT


def _in_words(baseline: System, system: System, pairs: Sequence[Sequence[PairedScores]]) -> str:
    """What follows from the tests, and what does not."""
    sentences = len(baseline.first.references)
    bleu = [pair[0] for pair in pairs]
    difference = mean(paired.gain for paired in bleu)
    better, worse = (system.name, baseline.name) if difference > 0 else (baseline.name, system.name)
    sure = [paired for paired in bleu if is_significant(paired) and paired.gain * difference > 0]
    p = max(max(paired.p_bootstrap, paired.p_randomization) for paired in bleu)
    if len(sure) == len(pairs):
        said = (
            f"{better} translates this test set better than {worse}: {abs(difference):.2f} BLEU, more than chance "
            f"explains (p ≤ {p:.4f} in both tests)."
        )
    elif difference == 0:
        said = f"{baseline.name} and {system.name} have the same BLEU."
    elif sure:
        said = (
            f"{better} is ahead of {worse} by {abs(difference):.2f} BLEU on average, but only {len(sure)} of "
            f"{len(pairs)} pairs of seeds differ by more than chance: the seed matters about as much as the system."
        )
    else:
        said = (
            f"No winner: {better} is ahead by {abs(difference):.2f} BLEU, which chance explains easily enough "
            f"(p = {p:.2f}). That is no proof that the two are equally good."
        )
    said += _other_metrics(pairs, difference)
    if len(pairs) == 1:
        said += (
            f" This holds for these two runs on these {sentences:,} sentences. Another seed can move BLEU by half a "
            "point or more: for a statement about the systems, compare several seeds of each."
        )
    else:
        said += f" {len(pairs)} pairs of seeds were compared on {sentences:,} sentences."
    return said


def _other_metrics(pairs: Sequence[Sequence[PairedScores]], difference: float) -> str:
    """Whether chrF2 and TER see it in the same way."""
    against = [
        metric
        for column, metric in ((1, "chrF2"), (2, "TER"))
        if mean(pair[column].gain for pair in pairs) * difference < 0
    ]
    if difference == 0:
        return ""
    return f" {' and '.join(against)} see it the other way round." if against else " chrF2 and TER agree."
