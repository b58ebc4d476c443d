"""Shows where systems differ: by sentence length, and in single sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from mt.core.language import script_in, writes_spaces
from mt.core.randomness import generator
from mt.evaluation.comparison.verdict import SEED
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.metrics.sacrebleu import Bleu
from mt.metrics.significance import bootstrap_scores, middle_95

QUANTILES = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Quantiles of sentence length that separate the groups. The last group is small because the longest sentences differ
most."""
INTERVAL_SAMPLES = 200
"""Bootstrap samples for the interval of a group."""
MIN_INTERVAL_SENTENCES = 10
"""Minimum number of sentences in a group with intervals."""


@dataclass(frozen=True)
class Group:
    """A group of test sentences of similar length, with the BLEU of each system."""

    label: str
    """The lengths, such as ``5–9``."""
    count: int
    """The number of sentences."""
    scores: list[float]
    """The score of each system, averaged over its outputs."""
    half_widths: list[float]
    """Half the width of each system's 95 % interval. Empty for fewer than MIN_INTERVAL_SENTENCES sentences, and if a
    system has several outputs."""


@dataclass(frozen=True)
class Example:
    """A test sentence that two systems translate differently well."""

    number: int
    """Line number in the test set, from 1."""
    source: str
    """Empty if the sources are unknown."""
    reference: str
    """Several references are separated by ``|``."""
    hypotheses: list[str]
    """The translations of the baseline and of the system."""
    chrf: list[float]
    """The sentence chrF2 of these two."""


def bleu_by_length(systems: Sequence[System], evaluation: EvaluationSet) -> list[Group]:
    """Return the BLEU of each system on groups of sentences with similar source length, the shortest first.

    This is figure 2 of Bahdanau et al. (2015). Length is counted in words or, in languages without spaces, in
    characters. If the sources are unknown, the length of the reference is used.
    """
    lines, language = evaluation.sources, evaluation.source_language
    if lines is None:
        lines, language = evaluation.references, evaluation.target_language
    if language is None:
        script = script_in("".join(lines), None)
        has_spaces = script is None or all(map(writes_spaces, script.languages))
    else:
        has_spaces = writes_spaces(language)
    lengths = np.array([len(line.split()) if has_spaces else len(line) for line in lines])
    groups = np.searchsorted(sorted({int(np.quantile(lengths, share)) for share in QUANTILES}), lengths)
    return [
        _bleu_of(np.flatnonzero(groups == group).tolist(), lengths, systems, evaluation) for group in np.unique(groups)
    ]


def _bleu_of(rows: Sequence[int], lengths: np.ndarray, systems: Sequence[System], evaluation: EvaluationSet) -> Group:
    """Return the BLEU of each system on some test sentences.

    Args:
        rows: The indices of the sentences, from 0.
        lengths: The length of each sentence of the test set.
    """
    shortest, longest = lengths[rows].min(), lengths[rows].max()
    label = f"{shortest}–{longest}" if shortest < longest else f"{shortest}"
    references = [[lines[row] for row in rows] for lines in evaluation.all_references]
    metric = Bleu.of_group(references[0], evaluation.target_language)
    counts = [
        [metric.statistics([output.hypotheses[row] for row in rows], *references) for output in system.outputs]
        for system in systems
    ]
    half_widths = []
    if len(rows) >= MIN_INTERVAL_SENTENCES and all(system.is_single for system in systems):
        random = generator(SEED, "bootstrap of a group")
        samples = bootstrap_scores([outputs[0] for outputs in counts], metric.score, INTERVAL_SAMPLES, random)
        half_widths = [(high - low) / 2 for low, high in map(middle_95, samples)]
    scores = [mean(float(metric.score(output.sum(axis=0))) for output in outputs) for outputs in counts]
    return Group(label, len(rows), scores, half_widths)


def clearest_wins(
    evaluation: EvaluationSet, outputs: tuple[Output, Output], chrf: tuple[Sequence[float], Sequence[float]], count: int
) -> tuple[list[Example], list[Example]]:
    """Return the test sentences with the largest differences in chrF2 between two outputs.

    Args:
        outputs: An output of the baseline, and one of the system.
        chrf: The chrF2 of each test sentence, for the first and for the second output.
        count: The maximum number of sentences in each list.

    Returns:
        The sentences that the baseline translates better, and those that the system translates better. Both lists begin
        with the largest difference.
    """
    differences = np.subtract(chrf[1], chrf[0])
    order = np.argsort(differences, kind="stable").tolist()

    def examples(rows: Sequence[int]) -> list[Example]:
        sources = evaluation.sources or [""] * len(differences)
        return [
            Example(
                row + 1,
                sources[row],
                " | ".join(lines[row] for lines in evaluation.all_references),
                [output.hypotheses[row] for output in outputs],
                [scores[row] for scores in chrf],
            )
            for row in rows
        ]

    return (
        examples([row for row in order[:count] if differences[row] < 0]),
        examples([row for row in order[::-1][:count] if differences[row] > 0]),
    )
