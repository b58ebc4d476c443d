"""Where systems differ: by source length, by the rarity of words, and in single sentences."""

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


def _label(low: int, high: int) -> str:
    return f"{low}–{high}" if low < high else f"{low}"


FREQUENCY_LABELS = [*(_label(low, end - 1) for low, end in pairwise(FREQUENCIES)), f"{FREQUENCIES[-1]} and more"]


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
    lengths = [len(line.split()) if spaces else len(line) for line in lines]
    edges = sorted({int(np.quantile(lengths, share)) for share in QUANTILES})
    rows = _rows_by_group(bisect_right(edges, length - 1) for length in lengths)
    return [
        _bleu_of(
            members,
            _label(min(lengths[row] for row in members), max(lengths[row] for row in members)),
            systems,
            evaluation,
        )
        for _, members in sorted(rows.items())
    ]


def bleu_by_rarity(systems: Sequence[System], evaluation: EvaluationSet, frequency: Counter[str]) -> list[Group]:
    """Return BLEU of groups of sentences by the training frequency of the reference's rarest word."""
    references = words(evaluation.references, evaluation.target_language)
    rows = _rows_by_group(_frequency_group(min((frequency[word] for word in line), default=0)) for line in references)
    return [_bleu_of(rows[group], FREQUENCY_LABELS[group], systems, evaluation) for group in sorted(rows)]


def _rows_by_group(groups: Iterable[int]) -> dict[int, list[int]]:
    """Return the rows of each group, given the group of each row."""
    rows: dict[int, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    return rows


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


def _frequency_group(count: int) -> int:
    """Return the index in FREQUENCIES of the group for a word with this count in the training data."""
    return bisect_right(FREQUENCIES, count) - 1


def word_f1_by_frequency(systems: Sequence[System], evaluation: EvaluationSet, frequency: Counter[str]) -> list[Group]:
    """Return the F1 of groups of words by their count in the training data."""

    def counted(lines: Sequence[str]) -> list[Counter[str]]:
        return [Counter(line) for line in words(lines, evaluation.target_language)]

    def by_group(counters: Iterable[Counter[str]]) -> Counter[int]:
        totals: Counter[int] = Counter()
        for counter in counters:
            for word, count in counter.items():
                totals[_frequency_group(frequency[word])] += count
        return totals

    def f1(lines: Sequence[str]) -> dict[int, float]:
        """Return the F1 score of each group, from 0 to 100."""
        hypotheses = counted(lines)
        matches, outputs = by_group(map(and_, hypotheses, references)), by_group(hypotheses)
        return {group: 200 * matches[group] / (outputs[group] + totals[group]) for group in totals}

    references = counted(evaluation.references)
    totals = by_group(references)
    scores = [[f1(output.hypotheses) for output in system.outputs] for system in systems]
    return [
        Group(
            FREQUENCY_LABELS[group],
            totals[group],
            [mean(score[group] for score in of_outputs) for of_outputs in scores],
            [],
        )
        for group in sorted(totals)
    ]


def clearest_wins(
    evaluation: EvaluationSet, outputs: tuple[Output, Output], chrf: tuple[Sequence[float], Sequence[float]], count: int
) -> tuple[list[Example], list[Example]]:
    """Return the sentences with the largest difference in sentence chrF2.

    Args:
        chrf: The chrF2 of each sentence, for both outputs.
        count: The maximum number of sentences in each list.

    Returns:
        Those that the first output translates better, and those that the second does, the largest difference first.
    """
    differences = np.subtract(chrf[1], chrf[0])
    order = np.argsort(differences, kind="stable").tolist()

    def example(row: int) -> Example:
        return Example(
            row + 1,
            evaluation.sources[row] if evaluation.sources else "",
            evaluation.references[row],
            [output.hypotheses[row] for output in outputs],
            [scores[row] for scores in chrf],
        )

    return (
        [example(row) for row in order[:count] if differences[row] < 0],
        [example(row) for row in order[::-1][:count] if differences[row] > 0],
    )
