"""Computes all results of a comparison, and writes its verdict in words: scores, costs, differences and attention."""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mt.config import CompareConfig
from mt.core.columns import evenly_spaced_rows
from mt.evaluation.comparison.attention import AttentionEntropy, Scaling, study_attention
from mt.evaluation.comparison.conditions import conditions_of, differing, find_cautions, fine_tuning, settings_of
from mt.evaluation.comparison.cost import Cost, comparable_bleu, measure_costs
from mt.evaluation.comparison.differences import Example, Group, bleu_by_length, clearest_wins
from mt.evaluation.comparison.segment_scores import SegmentScores, find_score_cautions
from mt.evaluation.comparison.verdict import Counts, SystemScore, Verdict, block_counts, judge, system_scores
from mt.evaluation.reports import FILTERS
from mt.evaluation.systems import EvaluationSet, System
from mt.metrics.sacrebleu import Chrf
from mt.metrics.significance import MIN_DIFFERING_BLOCKS, SIGNIFICANCE_LEVEL, TIE
from mt.reporting.pages import template_environment
from mt.translation.results import SentenceAttention

logger = logging.getLogger(__name__)

MAX_MAP_BYTES = 150
"""Maximum length of source and reference in UTF-8 for an attention map: about 40 subwords, which can still be read."""


def conclude(verdict: Verdict, baseline: System, system: System) -> str:
    """Return the text of a verdict: the better system or "No winner", the difference in BLEU with its p-values, and the
    differences in other metrics that are ``in_verdict``."""
    bleu, *others = (paired for paired in verdict.over_sentences if paired.metric in verdict.corrected_p)
    first, second = (sorted(output.hypotheses for output in side.outputs) for side in (baseline, system))
    values = {
        "verdict": verdict,
        "bleu": bleu,
        "others": others,
        "baseline": baseline,
        "system": system,
        "identical": first == second and not any(paired.differing_blocks for paired in verdict.over_sentences),
        "level": SIGNIFICANCE_LEVEL,
        "min_blocks": MIN_DIFFERING_BLOCKS,
        "tie": TIE,
    }
    environment = template_environment(Path(__file__).parent, FILTERS, autoescape=False)
    text = environment.get_template("conclusions.jinja").render(values)
    return re.sub(r"\s*\n\s*", " ", text.strip())


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
    """Sentences on reasons to doubt the scores, from ``find_cautions``."""
    differing_settings: dict[str, list[str]]
    """Key of a setting → its value in each system with a model."""
    differing_conditions: dict[str, list[str]]
    """Version, machine, data set or the like → its value in each system with a model."""
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
    cautions = [*find_cautions(evaluation, systems), *find_score_cautions(evaluation, systems, given)]
    for caution in cautions:
        logger.warning("%s", caution)
    logger.info("testing the differences for significance")
    counts = block_counts(evaluation, systems, given)
    verdicts = _contrasts(evaluation, systems, counts, config)
    sources = evaluation.sources or []
    if any(system.can_translate for system in systems):
        logger.info("measuring translation speed and attention")
    reached = comparable_bleu(systems, config.valid_bleu)
    costs = measure_costs(systems, sources, reached, config.timed_sentences, config.device)
    rows = _studied_rows(sources, evaluation.references, config.studied_sentences)
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
        cautions=cautions,
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


def _studied_rows(sources: Sequence[str], references: Sequence[str], max_rows: int) -> list[int]:
    """Return evenly spaced rows of the test set in which neither side is blank."""
    pairs = enumerate(zip(sources, references, strict=False))
    complete = np.array([row for row, pair in pairs if all(map(str.strip, pair))], dtype=np.int64)
    return complete[evenly_spaced_rows(len(complete), max_rows)].tolist()


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
        shown = {metric: verdict.is_shown(metric) for metric in verdict.corrected_p}
        differences = np.subtract(both[1], both[0]).tolist()
        baseline_wins, system_wins = clearest_wins(evaluation, (baseline.first, system.first), both, config.examples)
        contrasts.append(
            Contrast(
                **vars(verdict),
                words=conclude(verdict, baseline, system),
                more_than_chance=shown,
                chrf_differences=differences,
                baseline_wins=baseline_wins,
                system_wins=system_wins,
            )
        )
    return contrasts


def sentences_to_show(evaluation: EvaluationSet, differences: Sequence[float]) -> list[int]:
    """Choose up to three test sentences for attention maps, and return their indices, from 0.

    Among the sentences that are short enough for a legible map, they are one of median length, a long one, and the one
    with the largest difference in chrF2.

    Args:
        differences: For each test sentence, the difference in chrF2 between the first two systems.
    """
    pairs = zip(evaluation.sources or [], evaluation.references, strict=True)
    lengths = [max(len(text.encode()) for text in pair) if all(map(str.strip, pair)) else 0 for pair in pairs]
    legible = sorted(
        (row for row, length in enumerate(lengths) if 0 < length <= MAX_MAP_BYTES), key=lengths.__getitem__
    )
    if not legible:
        return []
    median, long = (legible[int(len(legible) * share)] for share in (0.5, 0.95))
    most_different = max(legible, key=lambda row: abs(differences[row]))
    return list(dict.fromkeys([median, long, most_different]))
