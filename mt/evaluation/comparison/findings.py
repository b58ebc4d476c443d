"""Computes all results of a comparison."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mt.config import CompareConfig
from mt.core.columns import evenly_spaced_rows
from mt.evaluation.comparison.attention import AttentionEntropy, Scaling, study
from mt.evaluation.comparison.conclusions import conclude
from mt.evaluation.comparison.conditions import conditions_of, differing, fine_tuning, settings_of
from mt.evaluation.comparison.cost import Cost, comparable_bleu, measure_costs
from mt.evaluation.comparison.differences import Example, Group, bleu_by_length, clearest_wins, word_f1_by_frequency
from mt.evaluation.comparison.verdict import Counts, SystemScore, Verdict, block_counts, judge, system_scores
from mt.evaluation.systems import EvaluationSet, System
from mt.metrics.chrf import Chrf
from mt.metrics.word_counts import read_word_counts
from mt.translation.results import SentenceAttention

logger = logging.getLogger(__name__)

MAX_MAP_BYTES = 150
"""Length in UTF-8 of a source or reference whose attention map is shown: about 40 subwords, which can still be read."""


@dataclass(frozen=True)
class SystemResults:
    """The results of one system."""

    name: str
    outputs: list[str]
    """The folders or files."""
    validations: list[list[dict]]
    """The lines of each run's metrics.jsonl on the validation set."""
    scores: dict[str, SystemScore]
    """By metric."""
    cost: Cost | None
    """None for files."""
    attention: list[AttentionEntropy]
    """Of the first output; empty for files."""
    scaling: Scaling | None
    """Of the first output; None for files, and for models without the division by √d."""


@dataclass(frozen=True)
class Contrast(Verdict):
    """The verdict on one system, and where it differs from the baseline."""

    words: str
    """The verdict as a text."""
    more_than_chance: dict[str, bool]
    """By metric."""
    chrf_differences: list[float]
    """The system's chrF2 minus the baseline's for each test sentence, of the first outputs, like the examples."""
    baseline_wins: list[Example]
    system_wins: list[Example]


@dataclass(frozen=True)
class Findings:
    """The results of a comparison, as they are written into its JSON file."""

    direction: str
    test_pairs: int
    test_pairs_with_a_repeated_source: int
    """Number of test sentences with a source (or reference, if the sources are unknown) that occurs more than once."""
    differing_settings: dict[str, list[str]]
    differing_conditions: dict[str, list[str]]
    fine_tuning: list[str]
    systems: list[SystemResults]
    """The baseline first."""
    verdicts: list[Contrast]
    """One for each system but the baseline."""
    reached_valid_bleu: float | None
    """The validation BLEU to which training time is measured."""
    length_of: str
    """The side that repetitions and lengths of sentences are about."""
    bleu_by_length: list[Group]
    word_f1_by_training_frequency: list[Group]
    """By the count in the training data of the first system that was trained here."""


def compare_systems(
    evaluation: EvaluationSet, systems: list[System], config: CompareConfig
) -> tuple[Findings, dict[int, list[SentenceAttention | None]]]:
    """Run all tests and measurements on the systems, the baseline first.

    Returns:
        The results, and the attention of each system on a few test sentences, by their number from 0.
    """
    logger.info("testing whether the difference is more than chance")
    counts = block_counts(evaluation, systems)
    verdicts = _contrasts(evaluation, systems, counts, config)
    logger.info("grouping by length and by how rare words are")
    frequency = _word_counts(evaluation, systems)
    sources = evaluation.sources or []
    if any(system.can_translate for system in systems):
        logger.info("measuring speed and attention")
    reached = comparable_bleu(systems, config.valid_bleu)
    costs = measure_costs(systems, sources, reached, config.timed_sentences, config.device)
    pairs = enumerate(zip(sources, evaluation.references, strict=False))
    complete = np.array([row for row, pair in pairs if all(map(str.strip, pair))], dtype=np.int64)
    studied = complete[evenly_spaced_rows(len(complete), config.studied_sentences)].tolist()
    shown = sentences_to_show(evaluation, verdicts[0].chrf_differences) if studied else []
    studies = [study(system.first, evaluation, shown, studied, config.device) for system in systems]
    repeats = Counter(evaluation.blocks().tolist()).values()
    results = [
        SystemResults(
            system.name,
            [str(output.origin) for output in system.outputs],
            [run.validations() for run in system.runs],
            system_scores(of_system),
            cost,
            studied.attention,
            studied.scaling,
        )
        for system, of_system, cost, studied in zip(systems, counts, costs, studies, strict=True)
    ]
    findings = Findings(
        evaluation.direction,
        len(evaluation.references),
        sum(count for count in repeats if count > 1),
        differing(systems, settings_of),
        differing(systems, conditions_of),
        fine_tuning(systems),
        results,
        verdicts,
        reached,
        "source" if evaluation.sources else "reference",
        bleu_by_length(systems, evaluation),
        [] if frequency is None else word_f1_by_frequency(systems, evaluation, frequency),
    )
    maps = {row: [each.maps[index] if each.maps else None for each in studies] for index, row in enumerate(shown)}
    return findings, maps


def _contrasts(
    evaluation: EvaluationSet, systems: Sequence[System], counts: Sequence[Counts], config: CompareConfig
) -> list[Contrast]:
    metric = Chrf(evaluation.target_language)
    chrf = [metric.segment_scores(system.first.hypotheses, evaluation.references) for system in systems]
    baseline, samples, trials = systems[0], config.bootstrap_samples, config.randomization_trials
    contrasts = []
    for number, system in enumerate(systems[1:], 1):
        verdict = judge(
            (baseline.name, system.name), (counts[0], counts[number]), samples, trials, contrasts=len(systems) - 1
        )
        both = chrf[0], chrf[number]
        shown = {paired.metric: verdict.is_shown(paired.metric) for paired in verdict.over_sentences}
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


def _word_counts(evaluation: EvaluationSet, systems: list[System]) -> Counter[str] | None:
    """Return the word counts of the training targets of the first system that was trained here.

    Training wrote the counts into the run folder. A comparison never opens a corpus, because the config in a run folder
    from elsewhere could name any file as one.
    """
    runs = [run for system in systems for run in system.runs]
    counts = read_word_counts(runs[0].folder, evaluation.target_language) if runs else None
    if runs and counts is None:
        logger.warning("so there are no scores by how rare words are")
    return counts


def sentences_to_show(evaluation: EvaluationSet, differences: Sequence[float]) -> list[int]:
    """Return the numbers of the test sentences whose attention is shown.

    Among the sentences with a legible map, these are one of median length, a long one, and the one on which the first
    two systems differ most.
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
