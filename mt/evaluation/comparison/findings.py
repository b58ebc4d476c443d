"""Computes all results of a comparison, and writes its verdict in words: scores, costs, differences and attention."""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from mt.config import CompareConfig
from mt.core.language import script_in, writes_spaces
from mt.core.randomness import generator
from mt.evaluation.comparison.attention import (
    AttentionEntropy,
    Scaling,
    sentences_to_show,
    studied_rows,
    study_attention,
)
from mt.evaluation.comparison.conditions import conditions_of, differing, find_warnings, fine_tuning, settings_of
from mt.evaluation.comparison.verdict import (
    SEED,
    Counts,
    SegmentScores,
    SystemScore,
    Verdict,
    block_counts,
    find_score_warnings,
    judge,
    system_scores,
)
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.evaluation.translation import Cost, comparable_bleu, measure_costs
from mt.metrics.metric import Bleu, Chrf
from mt.metrics.significance import MIN_DIFFERING_BLOCKS, SIGNIFICANCE_LEVEL, TIE, bootstrap_scores, middle_95
from mt.reporting.pages import template_environment
from mt.translation.results import SentenceAttention

logger = logging.getLogger(__name__)

QUANTILES = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Quantiles of sentence length that separate the groups. The last group is small because the longest sentences differ
most."""
INTERVAL_SAMPLES = 200
"""Bootstrap samples for the interval of a group."""
MIN_GROUP_SENTENCES = 10
"""Minimum number of sentences in a group. A smaller one is merged with its neighbor. The only group of a smaller test
set has no intervals."""


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
    """Half the width of each system's 95 % interval. Empty for fewer than MIN_GROUP_SENTENCES sentences, and if a
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
    bounds: list[int] = []
    for bound in sorted({int(np.quantile(lengths, share)) for share in QUANTILES}):
        if np.bincount(np.searchsorted([*bounds, bound], lengths)).min() >= MIN_GROUP_SENTENCES:
            bounds.append(bound)
    groups = np.searchsorted(bounds, lengths)
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
    if len(rows) >= MIN_GROUP_SENTENCES and all(system.is_single for system in systems):
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


def conclude(verdict: Verdict, baseline: System, system: System) -> str:
    """Return the text of a verdict. The first line is the conclusion. The second line has the p-values, the differences
    in the other metrics that are ``in_verdict``, and the systems and sentences for which the conclusion holds."""
    values = {
        "verdict": verdict,
        "baseline": baseline,
        "system": system,
        "level": SIGNIFICANCE_LEVEL,
        "min_blocks": MIN_DIFFERING_BLOCKS,
        "tie": TIE,
    }
    environment = template_environment(Path(__file__).parent, autoescape=False)
    template: Any = environment.get_template("conclusions.jinja").make_module(values)
    lines = (re.sub(r"\s*\n\s*", " ", macro().strip()) for macro in (template.headline, template.details))
    return "\n".join(filter(None, lines))


@dataclass(frozen=True)
class SystemResults:
    """The results of one compared system, except for the verdict. ``ComparisonFindings.systems`` holds one for each
    system."""

    name: str
    outputs: list[str]
    """The folder or file of each output."""
    validations: list[list[dict]]
    """For each run, the records of metrics.jsonl that hold validation scores."""
    scores: dict[str, SystemScore]
    """Metric → score."""
    cost: Cost | None
    """None for files."""
    attention: list[AttentionEntropy]
    """The attention entropy of the first output; empty for files."""
    scaling: Scaling | None
    """The effect of dividing by √d in the first output; None for files, and for models that do not divide."""


@dataclass(frozen=True)
class Contrast(Verdict):
    """The verdict on one system against the baseline, with the sentences that differ most in chrF2."""

    words: str
    """The verdict as a text, by ``conclude``."""
    more_than_chance: dict[str, bool]
    """Metric that is ``in_verdict`` → whether the tests show a difference."""
    chrf_differences: list[float]
    """For each test sentence, the chrF2 of the system's first output minus that of the baseline's first output."""
    baseline_wins: list[Example]
    """Sentences that the baseline's first output translates better, the largest difference first."""
    system_wins: list[Example]
    """Sentences that the system's first output translates better, the largest difference first."""


@dataclass(frozen=True)
class ComparisonFindings:
    """All results of a comparison. comparison.json has the same fields."""

    direction: str
    """The languages, such as ``en→fr``."""
    test_pairs: int
    test_pairs_with_a_repeated_source: int
    """The number of test sentences whose source (or reference, if the sources are unknown) occurs more than once."""
    cautions: list[str]
    """Sentences on reasons to doubt the scores, from ``find_warnings``."""
    differing_settings: dict[str, list[str]]
    """Key of a setting → its value in each system with a model."""
    differing_conditions: dict[str, list[str]]
    """Version, machine, dataset or the like → its value in each system with a model."""
    fine_tuning: list[str]
    """Sentences on runs that continue the training of a compared model."""
    systems: list[SystemResults]
    """The results of each system, the baseline first."""
    verdicts: list[Contrast]
    """The verdict on each system except the baseline."""
    reached_valid_bleu: float | None
    """The validation BLEU that the costs are measured up to (see ``comparable_bleu``); None if there is none."""
    length_of: str
    """The side whose lengths and repetitions are counted: "source" or, if the sources are unknown, "reference"."""
    bleu_by_length: list[Group]


def compare_systems(
    evaluation: EvaluationSet, systems: list[System], config: CompareConfig, given: Sequence[SegmentScores] = ()
) -> tuple[ComparisonFindings, dict[int, list[SentenceAttention | None]]]:
    """Run all tests and measurements on systems that have translated the test set. The baseline is the first system.

    Args:
        given: Scores of further metrics.

    Returns:
        The results, and attention maps: index (from 0) of a test sentence → its map in each system, None for files.
    """
    warnings = [*find_warnings(evaluation, systems), *find_score_warnings(evaluation, systems, given)]
    for warning in warnings:
        logger.warning("%s", warning)
    logger.info("testing the differences for significance")
    counts = block_counts(evaluation, systems, given)
    verdicts = _contrasts(evaluation, systems, counts, config)
    sources = evaluation.sources or []
    if any(system.can_translate for system in systems):
        logger.info("measuring translation speed and attention")
    reached = comparable_bleu(systems, config.valid_bleu)
    costs = measure_costs(systems, sources, reached, config.timed_sentences, config.device)
    rows = studied_rows(sources, evaluation.references, config.studied_sentences)
    shown = sentences_to_show(evaluation, verdicts[0].chrf_differences) if rows else []
    studies = [study_attention(system.first, evaluation, shown, rows, config.device) for system in systems]
    block_sizes = Counter(evaluation.blocks().tolist()).values()
    results = [
        SystemResults(
            name=system.name,
            outputs=[str(output.origin) for output in system.outputs],
            validations=[run.validations for run in system.runs],
            scores=system_scores(system_counts),
            cost=cost,
            attention=study.attention,
            scaling=study.scaling,
        )
        for system, system_counts, cost, study in zip(systems, counts, costs, studies, strict=True)
    ]
    findings = ComparisonFindings(
        direction=evaluation.direction,
        test_pairs=len(evaluation.references),
        test_pairs_with_a_repeated_source=sum(size for size in block_sizes if size > 1),
        cautions=warnings,
        differing_settings=differing(systems, settings_of),
        differing_conditions=differing(systems, conditions_of),
        fine_tuning=fine_tuning(systems),
        systems=results,
        verdicts=verdicts,
        reached_valid_bleu=reached,
        length_of="source" if evaluation.sources else "reference",
        bleu_by_length=bleu_by_length(systems, evaluation),
    )
    maps = {row: [study.maps[index] if study.maps else None for study in studies] for index, row in enumerate(shown)}
    return findings, maps


def _contrasts(
    evaluation: EvaluationSet, systems: Sequence[System], counts: Sequence[Counts], config: CompareConfig
) -> list[Contrast]:
    """Return the verdict on each system except the baseline, ``systems[0]``, given the counts of all systems."""
    metric = Chrf(evaluation.target_language)
    chrf = [metric.segment_scores(system.first.hypotheses, *evaluation.all_references) for system in systems]
    baseline, samples, trials = systems[0], config.bootstrap_samples, config.randomization_trials
    contrasts = []
    verdicts = judge([system.name for system in systems], counts, samples, trials)
    for system, verdict, system_chrf in zip(systems[1:], verdicts, chrf[1:], strict=True):
        both = chrf[0], system_chrf
        baseline_wins, system_wins = clearest_wins(evaluation, (baseline.first, system.first), both, config.examples)
        contrasts.append(
            Contrast(
                **vars(verdict),
                words=conclude(verdict, baseline, system),
                more_than_chance={metric: verdict.is_significant(metric) for metric in verdict.corrected_p},
                chrf_differences=np.subtract(system_chrf, chrf[0]).tolist(),
                baseline_wins=baseline_wins,
                system_wins=system_wins,
            )
        )
    return contrasts
