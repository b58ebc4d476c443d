"""Where systems differ: by the length of the source, by the rarity of words, and sentence by sentence."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from mt.comparison.systems import EvaluationSet, Output, System
from mt.language import script_in, writes_spaces
from mt.scoring import bleu_interval, words

QUANTILES = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Where the test set is cut by length; the last group is small: the longest sentences tell most."""
INTERVAL_SAMPLES = 200
FEWEST = 10
"""Sentences in a group that an interval is given for."""
FREQUENCIES = (0, 1, 3, 10, 30, 100, 1000)
"""Least count of a word in the training data for each group (Neubig et al. 2019, compare-mt)."""


@dataclass(frozen=True)
class Group:
    """Part of the test set, or of its words, with a figure for each system."""

    label: str
    count: int
    scores: list[float]
    """Means over the seeds."""
    half_widths: list[float]
    """Of the 95 % intervals; empty where there are none, as for several seeds or very few sentences."""


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
    """BLEU of the sentences of similar source length (of similar reference length, where the sources are not known),
    counted in words, or in characters where a script has no spaces (Bahdanau et al. 2015, figure 2)."""
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
    """BLEU of the sentences whose reference's rarest word stands about as often in the training data."""
    references = words(evaluation.references, evaluation.target_language)
    group_of = [_frequency_group(min((frequency[word] for word in line), default=0)) for line in references]
    return [
        _bleu_of([row for row, other in enumerate(group_of) if other == number], label, systems, evaluation)
        for number, label in enumerate(_frequency_labels())
        if number in group_of
    ]


def _bleu_of(rows: Sequence[int], label: str, systems: Sequence[System], evaluation: EvaluationSet) -> Group:
    references, language = [evaluation.references[row] for row in rows], evaluation.target_language
    intervals = [
        [
            bleu_interval([output.hypotheses[row] for row in rows], references, language, INTERVAL_SAMPLES)
            for output in system.outputs
        ]
        for system in systems
    ]
    one_seed = all(len(seeds) == 1 for seeds in intervals)
    return Group(
        label,
        len(rows),
        [mean(interval.score for interval in seeds) for seeds in intervals],
        [(seeds[0].high - seeds[0].low) / 2 for seeds in intervals] if one_seed and len(rows) >= FEWEST else [],
    )


def _frequency_group(count: int) -> int:
    """Which of FREQUENCIES a word belongs to that stands so often in the training data."""
    return bisect_right(FREQUENCIES, count) - 1


def _frequency_labels() -> list[str]:
    ends = [*FREQUENCIES[1:], None]
    return [
        f"{low} and more" if end is None else f"{low}" if end == low + 1 else f"{low}–{end - 1}"
        for low, end in zip(FREQUENCIES, ends, strict=True)
    ]


def word_f1_by_frequency(systems: Sequence[System], evaluation: EvaluationSet, frequency: Counter[str]) -> list[Group]:
    """F1 of the reference's words, by how often they stand in the training data: how well rare words come out."""
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
    """For each group of words: how many are in both of a pair, in the hypotheses, in the references."""
    matched, said, wanted = ([0] * len(FREQUENCIES) for _ in range(3))
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        ours, theirs = Counter(hypothesis), Counter(reference)
        for counts, counter in ((matched, ours & theirs), (said, ours), (wanted, theirs)):
            for word, count in counter.items():
                counts[_frequency_group(frequency[word])] += count
    return matched, said, wanted


def _f1(matched: int, said: int, wanted: int) -> float:
    """From 0 to 100."""
    return 200 * matched / (said + wanted) if said + wanted else 0.0


def clearest_wins(
    evaluation: EvaluationSet, outputs: tuple[Output, Output], chrf: tuple[Sequence[float], Sequence[float]], count: int
) -> tuple[list[Example], list[Example]]:
    """The sentences that the first output, and that the second, translates better by most."""
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
