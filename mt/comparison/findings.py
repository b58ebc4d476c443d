"""Everything that a comparison finds out about its systems."""

import logging
from dataclasses import dataclass

from mt.comparison.attention import Study, study
from mt.comparison.cost import Cost, common_bleu, measure_costs, spread
from mt.comparison.differences import (
    Example,
    Group,
    bleu_by_length,
    chrf_of_sentences,
    clearest_wins,
    word_f1_by_frequency,
)
from mt.comparison.systems import Run, System
from mt.comparison.verdict import SystemScore, Verdict, judge, score_system
from mt.config import CompareConfig
from mt.data.corpus import load_corpus
from mt.data.tokenizer import TokenizerPair
from mt.errors import InputError

logger = logging.getLogger(__name__)

LEGIBLE_PIECES = 40
"""Sentences with more make attention maps that nobody can read."""


@dataclass(frozen=True)
class Contrast:
    """A system beside the baseline."""

    verdict: Verdict
    chrf_differences: list[float]
    """The system's chrF2 minus the baseline's for each test sentence; of the first runs, like the examples."""
    baseline_wins: list[Example]
    system_wins: list[Example]


@dataclass(frozen=True)
class Findings:
    """The baseline is the first of ``systems``; ``contrasts`` has one for each of the others."""

    systems: list[System]
    scores: list[SystemScore]
    contrasts: list[Contrast]
    reached_bleu: float | None
    """The highest validation BLEU that every run reached, if it can be compared."""
    costs: list[Cost]
    by_length: list[Group]
    by_frequency: list[Group]
    """Empty where the training data are gone."""
    shown: list[int]
    """The test sentences whose attention is shown, from 0."""
    studies: list[Study]


def compare_systems(systems: list[System], config: CompareConfig) -> Findings:
    baseline, *others = systems
    data = baseline.first.config.data
    logger.info("testing whether the difference is more than chance")
    verdicts = [
        judge(
            baseline, system, data.target_language, config.bootstrap_samples, config.randomization_trials, len(others)
        )
        for system in others
    ]
    chrf = [chrf_of_sentences(system.first) for system in systems]
    contrasts = []
    for verdict, system, theirs in zip(verdicts, others, chrf[1:], strict=True):
        differences = [second - first for first, second in zip(chrf[0], theirs, strict=True)]
        wins = clearest_wins(baseline.first, system.first, (chrf[0], theirs), config.examples)
        contrasts.append(Contrast(verdict, differences, *wins))
    logger.info("grouping by length and by how rare words are")
    by_length = bleu_by_length(systems, data.source_language, data.target_language)
    by_frequency = _by_frequency(systems, data.target_language)
    if config.timed_sentences:
        logger.info("timing translation")
    reached = common_bleu(systems)
    costs = measure_costs(systems, reached, config.timed_sentences, config.device)
    if config.studied_sentences:
        logger.info("looking into attention")
    shown = _sentences_to_show(systems, contrasts) if config.studied_sentences else []
    studied = spread(_not_blank(baseline.first), config.studied_sentences) if config.studied_sentences else []
    studies = [study(system, shown, studied, config.device) for system in systems]
    scores = [score_system(system, data.target_language) for system in systems]
    return Findings(systems, scores, contrasts, reached, costs, by_length, by_frequency, shown, studies)


def _by_frequency(systems: list[System], target_language: str) -> list[Group]:
    """Nothing, and a warning, where the training data can no longer be read."""
    try:
        training = load_corpus(systems[0].first.config.data).train
    except InputError as error:
        logger.warning("no scores by word frequency, for the training data cannot be read: %s", error)
        return []
    return word_f1_by_frequency(systems, training["target"], target_language)


def _not_blank(run: Run) -> list[int]:
    """The test sentences that have words on both sides, from 0."""
    pairs = zip(run.sources, run.references, strict=True)
    return [row for row, (source, reference) in enumerate(pairs) if source.strip() and reference.strip()]


def _sentences_to_show(systems: list[System], contrasts: list[Contrast]) -> list[int]:
    """One of middle length, a long one, and the one on which the first two systems differ most; if all are too long to
    be read, the shortest."""
    run, differences = systems[0].first, contrasts[0].chrf_differences
    rows = _not_blank(run)
    pieces = [0] * len(rows)
    for system in systems:
        tokenizers = TokenizerPair.load(system.first.folder)
        for tokenizer, lines in ((tokenizers.source, run.sources), (tokenizers.target, run.references)):
            encoded = tokenizer.encode([lines[row] for row in rows])
            pieces = [max(most, len(ids)) for most, ids in zip(pieces, encoded, strict=True)]
    by_length = sorted(zip(pieces, rows, strict=True))
    legible = [row for count, row in by_length if count <= LEGIBLE_PIECES]
    if not legible:
        return [row for _, row in by_length[:1]]
    middle, long = (legible[int(len(legible) * share)] for share in (0.5, 0.95))
    most_different = max(legible, key=lambda row: abs(differences[row]))
    return list(dict.fromkeys([middle, long, most_different]))
