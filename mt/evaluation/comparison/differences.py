"""Where systems differ: by source length, by the frequency of words, and in single sentences."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import and_
from statistics import mean

import numpy as np

from mt.core.language import script_in, writes_spaces
from mt.core.randomness import generator
from mt.evaluation.comparison.verdict import SEED
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.metrics.bleu import Bleu, words
from mt.metrics.significance import bootstrap_scores, middle_95

QUANTILES = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Quantiles of length at which the test set is cut. The last group is small because the longest sentences are the most
instructive."""
INTERVAL_SAMPLES = 200
"""Bootstrap samples for the interval of a group."""
MIN_INTERVAL_SENTENCES = 10
"""Size of a group from which an interval is given."""
FREQUENCIES = (0, 1, 3, 10, 30, 100, 1000)
"""Lower end of each group of words by their count in the training data (Neubig et al. 2019, compare-mt)."""


@dataclass(frozen=True)
class Group:
    """Part of the test set, or of its words, with a score for each system."""

    label: str
    count: int
    """Sentences, or occurrences of words in the references."""
    scores: list[float]
    """One for each system, the mean over its seeds."""
    half_widths: list[float]
    """Half the width of each system's 95 % interval; empty if there are no intervals: for several seeds, for fewer than
    MIN_INTERVAL_SENTENCES sentences, and for words."""


@dataclass(frozen=True)
class Example:
    """One sentence on which two systems differ."""

    number: int
    """Line in the test set, from 1."""
    source: str
    """Empty where the sources are not known."""
    reference: str
    hypotheses: list[str]
    chrf: list[float]


def bleu_by_length(systems: Sequence[System], evaluation: EvaluationSet) -> list[Group]:
    """Return BLEU of groups of sentences with similar source length (Bahdanau et al. 2015, figure 2).

    Length is counted in words, or in characters where the script has no spaces. Where the sources are unknown, it is
    the length of the reference.
    """
    lines, language = evaluation.sources, evaluation.source_language
    if lines is None:
        lines, language = evaluation.references, evaluation.target_language
    if language is None:
        script = script_in("".join(lines), None)
        spaces = script is None or all(map(writes_spaces, script.languages))
    else:
        spaces = writes_spaces(language)
    lengths = np.array([len(line.split()) if spaces else len(line) for line in lines])
    groups = np.searchsorted(sorted({int(np.quantile(lengths, share)) for share in QUANTILES}), lengths)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    return [
        _bleu_of(rows.tolist(), _label(lengths[rows].min(), lengths[rows].max()), systems, evaluation)
        for rows in members
    ]


def _label(low: int, high: int) -> str:
    return f"{low}–{high}" if low < high else f"{low}"


def _bleu_of(rows: Sequence[int], label: str, systems: Sequence[System], evaluation: EvaluationSet) -> Group:
    references = [evaluation.references[row] for row in rows]
    metric = Bleu.of_group(references, evaluation.target_language)
    counts = [
        [metric.statistics([output.hypotheses[row] for row in rows], references) for output in system.outputs]
        for system in systems
    ]
    half_widths = []
    if len(rows) >= MIN_INTERVAL_SENTENCES and all(system.is_single for system in systems):
        random = generator(SEED, "bootstrap of a group")
        samples = bootstrap_scores([outputs[0] for outputs in counts], metric.score, INTERVAL_SAMPLES, random)
        half_widths = [(high - low) / 2 for low, high in map(middle_95, samples)]
    scores = [mean(float(metric.score(output.sum(axis=0))) for output in outputs) for outputs in counts]
    return Group(label, len(rows), scores, half_widths)


def word_f1_by_frequency(systems: Sequence[System], evaluation: EvaluationSet, frequency: Counter[str]) -> list[Group]:
    """Return the F1 (0–100) of groups of words by their count in the training data."""

    def count(lines: Sequence[str]) -> list[Counter[str]]:
        return [Counter(line) for line in words(lines, evaluation.target_language)]

    def by_group(lines: Iterable[Counter[str]]) -> np.ndarray:
        """Return the number of words in each group."""
        totals = np.zeros(len(FREQUENCIES))
        for line in lines:
            for word, number in line.items():
                totals[bisect_right(FREQUENCIES, frequency[word]) - 1] += number
        return totals

    def f1(lines: Sequence[str]) -> np.ndarray:
        hypotheses = count(lines)
        return 200 * by_group(map(and_, hypotheses, references)) / np.maximum(1, by_group(hypotheses) + totals)

    references = count(evaluation.references)
    totals = by_group(references)
    scores = np.array([np.mean([f1(output.hypotheses) for output in system.outputs], axis=0) for system in systems])
    labels = [*(_label(low, end - 1) for low, end in pairwise(FREQUENCIES)), f"{FREQUENCIES[-1]} and more"]
    return [Group(labels[group], int(totals[group]), scores[:, group].tolist(), []) for group in np.flatnonzero(totals)]


def clearest_wins(
    evaluation: EvaluationSet, outputs: tuple[Output, Output], chrf: tuple[Sequence[float], Sequence[float]], count: int
) -> tuple[list[Example], list[Example]]:
    """Return the sentences with the largest difference in sentence chrF2.

    Args:
        outputs: Those of the baseline and the system.
        chrf: The chrF2 of each sentence, for both outputs.
        count: The maximum number of sentences in each list.

    Returns:
        Those that the baseline translates better, and those that the system does, the largest difference first.
    """
    differences = np.subtract(chrf[1], chrf[0])
    order = np.argsort(differences, kind="stable").tolist()

    def examples(rows: Sequence[int]) -> list[Example]:
        sources = evaluation.sources or [""] * len(differences)
        return [
            Example(
                row + 1,
                sources[row],
                evaluation.references[row],
                [output.hypotheses[row] for output in outputs],
                [scores[row] for scores in chrf],
            )
            for row in rows
        ]

    return (
        examples([row for row in order[:count] if differences[row] < 0]),
        examples([row for row in order[::-1][:count] if differences[row] > 0]),
    )
