"""Where systems differ: by source length, by the rarity of words, and in single sentences."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
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

    Length is counted in words, or in characters where the script has no spaces. Where the sources are not known, the
    length of the reference is taken.
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
    edges = sorted({int(np.quantile(lengths, share)) for share in QUANTILES})
    group_of = np.array([bisect_right(edges, length - 1) for length in lengths])
    groups = []
    for number in sorted(set(group_of.tolist())):
        rows = np.flatnonzero(group_of == number)
        shortest, longest = lengths[rows].min(), lengths[rows].max()
        label = f"{shortest}–{longest}" if shortest < longest else f"{shortest}"
        groups.append(_bleu_of(rows.tolist(), label, systems, evaluation))
    return groups


def bleu_by_rarity(systems: Sequence[System], evaluation: EvaluationSet, frequency: Counter[str]) -> list[Group]:
    """Return BLEU of groups of sentences by the training frequency of the reference's rarest word."""
    references = words(evaluation.references, evaluation.target_language)
    group_of = [_frequency_group(min((frequency[word] for word in line), default=0)) for line in references]
    return [
        _bleu_of([row for row, other in enumerate(group_of) if other == number], label, systems, evaluation)
        for number, label in enumerate(_frequency_labels())
        if number in group_of
    ]


def _bleu_of(rows: Sequence[int], label: str, systems: Sequence[System], evaluation: EvaluationSet) -> Group:
    references = [evaluation.references[row] for row in rows]
    metric = Bleu.of_group(references, evaluation.target_language)
    counts = [
        [metric.statistics([output.hypotheses[row] for row in rows], references) for output in system.outputs]
        for system in systems
    ]
    half_widths = []
    if len(rows) >= MIN_INTERVAL_SENTENCES and all(len(outputs) == 1 for outputs in counts):
        random = generator(SEED, "bootstrap of a group")
        samples = bootstrap_scores([outputs[0] for outputs in counts], metric.score, INTERVAL_SAMPLES, random)
        half_widths = [(high - low) / 2 for low, high in map(middle_95, samples)]
    scores = [mean(float(metric.score(output.sum(axis=0))) for output in outputs) for outputs in counts]
    return Group(label, len(rows), scores, half_widths)


def _frequency_group(count: int) -> int:
    """Return the index in FREQUENCIES of the group for a word with this count in the training data."""
    return bisect_right(FREQUENCIES, count) - 1


def _frequency_labels() -> list[str]:
    ends = [*FREQUENCIES[1:], None]
    return [
        f"{low} and more" if end is None else f"{low}" if end == low + 1 else f"{low}–{end - 1}"
        for low, end in zip(FREQUENCIES, ends, strict=True)
    ]


def word_f1_by_frequency(systems: Sequence[System], evaluation: EvaluationSet, frequency: Counter[str]) -> list[Group]:
    """Return the F1 of groups of words by their count in the training data."""
    language = evaluation.target_language
    references = list(words(evaluation.references, language))
    counted = [
        [_f1_counts(list(words(output.hypotheses, language)), references, frequency) for output in system.outputs]
        for system in systems
    ]
    groups = []
    for number, label in enumerate(_frequency_labels()):
        total = sum(_frequency_group(frequency[word]) == number for line in references for word in line)
        if not total:
            continue
        scores = [mean(_f1(*(counts[number] for counts in seed)) for seed in seeds) for seeds in counted]
        groups.append(Group(label, total, scores, []))
    return groups


def _f1_counts(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], frequency: Counter[str]
) -> tuple[list[int], list[int], list[int]]:
    """Return for each group of words the number of matches, of words in the hypotheses, and in the references."""
    matches, outputs, targets = ([0] * len(FREQUENCIES) for _ in range(3))
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        output, target = Counter(hypothesis), Counter(reference)
        for counts, counter in ((matches, output & target), (outputs, output), (targets, target)):
            for word, count in counter.items():
                counts[_frequency_group(frequency[word])] += count
    return matches, outputs, targets


def _f1(matches: int, outputs: int, targets: int) -> float:
    """Return the F1 score from 0 to 100."""
    return 200 * matches / (outputs + targets) if outputs + targets else 0.0


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
    first, second = chrf
    order = sorted(range(len(first)), key=lambda row: second[row] - first[row])

    def example(row: int) -> Example:
        return Example(
            row + 1,
            evaluation.sources[row] if evaluation.sources else "",
            evaluation.references[row],
            [output.hypotheses[row] for output in outputs],
            [each[row] for each in chrf],
        )

    return (
        [example(row) for row in order[:count] if second[row] < first[row]],
        [example(row) for row in order[::-1][:count] if second[row] > first[row]],
    )
