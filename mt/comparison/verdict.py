"""Which system translates better, and what may be said of it: paired tests, and a sentence in plain words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from mt.comparison.systems import System
from mt.scoring import PairedScores, corpus_scores, paired_tests

LEVEL = 0.05
"""A difference is called more than chance if it would be rarer than this between equally good systems."""


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
    """The paired tests, one metric after another, of each run of the one with a run of the other, by seed."""
    level: float
    """Least p of what counts as chance: LEVEL shared among all systems of the comparison (Bonferroni)."""
    words: str

    def is_significant(self, paired: PairedScores) -> bool:
        """Whether both tests call the difference more than chance."""
        return _is_significant(paired, self.level)


def score_system(system: System, language: str) -> SystemScore:
    scores = [corpus_scores(run.hypotheses, run.references, language) for run in system.runs]

    def both(values: Sequence[float]) -> tuple[float, float | None]:
        return mean(values), stdev(values) if len(values) > 1 else None

    return SystemScore(
        *both([one.bleu for one in scores]), *both([one.chrf for one in scores]), *both([one.ter for one in scores])
    )


def judge(
    baseline: System, system: System, language: str, bootstrap_samples: int, trials: int, contrasts: int
) -> Verdict:
    """Tests the runs in pairs; ``contrasts``: how many systems are held against the baseline in all."""
    pairs = [
        paired_tests(first.hypotheses, second.hypotheses, first.references, language, bootstrap_samples, trials)
        for first, second in zip(baseline.runs, system.runs, strict=True)
    ]
    level = LEVEL / contrasts
    return Verdict(baseline.name, system.name, pairs, level, _in_words(baseline, system, pairs, level))


def rounded_up(p: float) -> float:
    """Rounded up to four places: what is said to be a bound has to be one."""
    return math.ceil(round(p * 1e4, 6)) / 1e4


def _is_significant(paired: PairedScores, level: float) -> bool:
    return max(paired.p_bootstrap, paired.p_randomization) < level


def _in_words(baseline: System, system: System, pairs: Sequence[Sequence[PairedScores]], level: float) -> str:
    """What follows from the tests, and what does not."""
    bleu = [pair[0] for pair in pairs]
    difference = mean(paired.gain for paired in bleu)
    if len(pairs) == 1:
        said = _of_one_pair(baseline.name, system.name, bleu[0], level)
    else:
        said = _of_several_pairs(baseline.name, system.name, bleu, level)
    if difference:
        said += " " + _other_metrics(pairs, difference, level)
    elif not any(paired.gain for paired in bleu) and any(paired.gain for pair in pairs for paired in pair):
        said += " " + _where_bleu_is_equal(baseline.name, system.name, pairs, level)
    sentences = len(baseline.first.references)
    on = f"{sentences:,} sentences" if sentences != 1 else "one sentence"
    if len(pairs) == 1:
        return (
            f"{said} This speaks of these two runs on this test set of {on}. Another seed can move BLEU by half a "
            "point or more: for a statement about the systems, compare several seeds of each."
        )
    return f"{said} This speaks of this test set of {on}."


def _of_one_pair(baseline: str, system: str, paired: PairedScores, level: float) -> str:
    if paired.gain == 0:
        return f"{baseline} and {system} have the same BLEU."
    better, worse = (system, baseline) if paired.gain > 0 else (baseline, system)
    size = f"{abs(paired.gain):.2f} BLEU"
    p = max(paired.p_bootstrap, paired.p_randomization)
    if _is_significant(paired, level):
        bound = f"both tests: p ≤ {rounded_up(p):.4f}"
        return f"{better} translates better than {worse}: {size}, more than chance explains ({bound})."
    return (
        f"No winner: {better} is ahead of {worse} by {size}, but that this is more than chance is not shown "
        f"(p = {p:.3f}). Nor is it shown that the two are equally good."
    )


def _of_several_pairs(baseline: str, system: str, bleu: Sequence[PairedScores], level: float) -> str:
    gains = [paired.gain for paired in bleu]
    won = sum(_is_significant(paired, level) and paired.gain > 0 for paired in bleu)
    lost = sum(_is_significant(paired, level) and paired.gain < 0 for paired in bleu)
    count = len(bleu)
    if not any(gains):
        return f"{baseline} and {system} have the same BLEU in each of {count} pairs of seeds."
    better, worse = (system, baseline) if mean(gains) > 0 else (baseline, system)
    sure, against = (won, lost) if mean(gains) > 0 else (lost, won)
    size = f"{abs(mean(gains)):.2f} ± {stdev(gains):.2f} BLEU on average over {count} pairs of seeds"
    if sure == count:
        return f"{better} translates better than {worse}: {size}, each pair more than chance explains."
    undecided = count - won - lost
    counts = (
        f"By more than chance explains, {system} is better in {won} and worse in {lost} of the pairs; "
        f"{undecided} {'is' if undecided == 1 else 'are'} undecided."
    )
    if mean(gains) == 0:
        contradiction = "The seeds contradict each other: " if won or lost else ""
        return f"{contradiction}{baseline} and {system} have the same BLEU on average over {count} pairs. {counts}"
    if against:
        return f"The seeds contradict each other: {better} is ahead of {worse} by {size}. {counts}"
    if sure:
        return f"{better} is ahead of {worse} by {size}, but not every pair shows it. {counts}"
    return f"No winner: {better} is ahead of {worse} by {size}. {counts} Nor is it shown that the two are equally good."


def _where_bleu_is_equal(baseline: str, system: str, pairs: Sequence[Sequence[PairedScores]], level: float) -> str:
    """What chrF2 and TER say then."""
    views = []
    for column, metric in ((1, "chrF2"), (2, "TER")):
        gain = mean(pair[column].gain for pair in pairs)
        sure = all(_is_significant(pair[column], level) and pair[column].gain * gain > 0 for pair in pairs)
        better = system if gain > 0 else baseline
        by = f"{abs(gain):.2f}, {'more than chance explains' if sure else 'which chance may explain'}"
        views.append(f"in {metric} {better} is better by {by}" if gain else f"in {metric} they are equal")
    said = "; ".join(views)
    return f"{said[0].upper()}{said[1:]}."


VIEWS = {
    (True, True): ("agrees", "agree"),
    (True, False): ("points the same way", "point the same way"),
    (False, False): ("does not agree", "do not agree"),
    (False, True): ("says the opposite, more than chance", "say the opposite, more than chance"),
}
"""Of one metric and of two: whether it sees the same winner as BLEU, and whether that is more than chance."""


def _other_metrics(pairs: Sequence[Sequence[PairedScores]], difference: float, level: float) -> str:
    """Whether chrF2 and TER see it in the same way."""
    views = []
    for column in (1, 2):
        gain = mean(pair[column].gain for pair in pairs)
        sure = all(_is_significant(pair[column], level) and pair[column].gain * gain > 0 for pair in pairs)
        views.append(VIEWS[gain * difference > 0, sure])
    (chrf, both), (ter, _) = views
    return f"chrF2 and TER {both}." if chrf == ter else f"chrF2 {chrf}; TER {ter}."
