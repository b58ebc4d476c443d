"""Where systems differ: by the length of the source, by the rarity of words, and sentence by sentence."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from mt.comparison.systems import System
from mt.language import writes_spaces
from mt.scoring import bleu_interval, sentence_chrf, words

QUANTILES = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Where the test set is cut by length; the last group is small: the longest sentences tell most."""
INTERVAL_SAMPLES = 200
FREQUENCIES = (0, 1, 3, 10, 30, 100, 1000)
"""Least count of a word in the training data for each group (Neubig et al. 2019, compare-mt)."""


@dataclass(frozen=True)
class Group:
    """Part of the test set, or of its words, with a figure for each system."""

    label: str
    count: int
    scores: list[float]
    half_widths: list[float]
    """Of the 95 % intervals; empty where there are none."""


@dataclass(frozen=True)
class Example:
    """One sentence on which two systems differ."""

    number: int
    """Line in the test set, from 1."""
    source: str
    reference: str
    hypotheses: list[str]
    chrf: list[float]


def bleu_by_length(systems: Sequence[System], source_language: str, target_language: str) -> list[Group]:
    """BLEU of the sentences of similar source length, counted in words, or in characters where a script has no spaces
    (Bahdanau et al. 2015, figure 2)."""
    run = systems[0].first
    spaces = writes_spaces(source_language)
    lengths = np.array([len(line.split()) if spaces else len(line) for line in run.sources])
    edges = sorted({int(np.quantile(lengths, share)) for share in QUANTILES})
    group_of = np.array([bisect_right(edges, length - 1) for length in lengths])
    groups = []
    for number in sorted(set(group_of.tolist())):
        rows = np.flatnonzero(group_of == number)
        inside = lengths[rows]
        label = f"{inside.min()}–{inside.max()}" if inside.min() < inside.max() else f"{inside.min()}"
        references = [run.references[row] for row in rows]
        intervals = [
            [
                bleu_interval([one.hypotheses[row] for row in rows], references, target_language, INTERVAL_SAMPLES)
                for one in system.runs
            ]
            for system in systems
        ]
        groups.append(
            Group(
                label,
                len(rows),
                [mean(score for score, _ in seeds) for seeds in intervals],
                [mean(float(width) for _, width in seeds) for seeds in intervals],
            )
        )
    return groups


def word_f1_by_frequency(
    systems: Sequence[System], training_targets: Sequence[str], target_language: str
) -> list[Group]:
    """F1 of the reference's words, by how often they stand in the training data: how well rare words come out."""
    frequency = Counter(word for sentence in words(training_targets, target_language) for word in sentence)
    references = words(systems[0].first.references, target_language)
    counted = [
        [_f1_counts(words(run.hypotheses, target_language), references, frequency) for run in system.runs]
        for system in systems
    ]
    groups = []
    for number, (low, high) in enumerate(zip(FREQUENCIES, [*FREQUENCIES[1:], None], strict=True)):
        total = sum(bisect_right(FREQUENCIES, frequency[word]) - 1 == number for line in references for word in line)
        if not total:
            continue
        label = f"{low} and more" if high is None else f"{low}" if high == low + 1 else f"{low}–{high - 1}"
        scores = [mean(_f1(*(counts[number] for counts in seed)) for seed in seeds) for seeds in counted]
        groups.append(Group(label, total, scores, []))
    return groups


def _f1_counts(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], frequency: Counter[str]
) -> tuple[list[int], list[int], list[int]]:
    """For each group of words: how many are in both of a pair, in the hypotheses, in the references."""
    matched, said, wanted = ([0] * len(FREQUENCIES) for _ in range(3))
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        ours, theirs = Counter(hypothesis), Counter(reference)
        for counts, counter in ((matched, ours & theirs), (said, ours), (wanted, theirs)):
            for word, count in counter.items():
                counts[bisect_right(FREQUENCIES, frequency[word]) - 1] += count
    return matched, said, wanted


def _f1(matched: int, said: int, wanted: int) -> float:
    """From 0 to 100."""
    return 200 * matched / (said + wanted) if said + wanted else 0.0


def chrf_of_sentences(system: System) -> list[float]:
    """chrF2 of every test sentence, the mean over the seeds."""
    seeds = [sentence_chrf(run.hypotheses, run.references) for run in system.runs]
    return [mean(scores) for scores in zip(*seeds, strict=True)]


def clearest_wins(
    baseline: System, system: System, chrf: tuple[Sequence[float], Sequence[float]], count: int
) -> tuple[list[Example], list[Example]]:
    """The sentences that the baseline, and that the system, translates better by most."""
    first, second = chrf
    order = sorted(range(len(first)), key=lambda row: second[row] - first[row])
    best_of_baseline = [row for row in order[:count] if second[row] < first[row]]
    best_of_system = [row for row in order[::-1][:count] if second[row] > first[row]]
    return (
        [_example(baseline, system, chrf, row) for row in best_of_baseline],
        [_example(baseline, system, chrf, row) for row in best_of_system],
    )


def _example(baseline: System, system: System, chrf: tuple[Sequence[float], Sequence[float]], row: int) -> Example:
    run = baseline.first
    hypotheses = [run.hypotheses[row], system.first.hypotheses[row]]
    return Example(row + 1, run.sources[row], run.references[row], hypotheses, [scores[row] for scores in chrf])
