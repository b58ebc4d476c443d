"""Everything that a comparison finds out about its systems."""

import logging
from dataclasses import dataclass

from mt.comparison.attention import Study, study
from mt.comparison.cost import Cost, common_bleu, measure_costs, same_validation, spread
from mt.comparison.differences import (
    Example,
    Group,
    bleu_by_length,
    bleu_by_rarity,
    chrf_of_sentences,
    clearest_wins,
    word_f1_by_frequency,
)
from mt.comparison.systems import System
from mt.comparison.verdict import SystemScore, Verdict, judge, score_system
from mt.config import CompareConfig
from mt.data.tokenizer import TokenizerPair
from mt.word_counts import read_word_counts

logger = logging.getLogger(__name__)

LEGIBLE_PIECES = 40
"""Sentences with more make attention maps that nobody can read."""
DRAWABLE_PIECES = 60
"""The picture of every head's map of a longer sentence would take too much memory (of this length, for six layers of
eight heads, a third of a GB)."""


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
    """The validation BLEU to which time is measured: the given one, or the highest that every run reached; None if it
    cannot be compared."""
    costs: list[Cost]
    by_length: list[Group]
    by_rarity: list[Group]
    """Of sentences, by their rarest word; like ``by_frequency`` empty if the baseline's folder does not hold how often
    words stand in its training data."""
    by_frequency: list[Group]
    """Of words."""
    same_pieces: bool
    """Whether all target tokenizers are the same, so that numbers of target tokens mean the same."""
    shown: list[int]
    """The test sentences whose attention is shown, from 0."""
    studies: list[Study]


def compare_systems(systems: list[System], config: CompareConfig) -> Findings:
    baseline, *others = systems
    data = baseline.first.config.data
    tokenizers = {TokenizerPair.load(run.folder).target.model for system in systems for run in system.runs}
    same_pieces = len(tokenizers) == 1
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
    counts = read_word_counts(baseline.first.folder, data.target_language)
    by_rarity = [] if counts is None else bleu_by_rarity(systems, counts, data.target_language)
    by_frequency = [] if counts is None else word_f1_by_frequency(systems, counts, data.target_language)
    if config.timed_sentences:
        logger.info("timing translation")
    reached = (config.valid_bleu or common_bleu(systems)) if same_validation(systems) else None
    costs = measure_costs(systems, reached, config.timed_sentences, config.device)
    if config.studied_sentences:
        logger.info("looking into attention")
    lengths = _lengths(systems) if config.studied_sentences else []
    shown = _sentences_to_show(lengths, contrasts[0].chrf_differences)
    studied = spread([row for row, count in enumerate(lengths) if count], config.studied_sentences)
    studies = [study(system, shown, studied, config.device) for system in systems]
    scores = [score_system(system, data.target_language) for system in systems]
    return Findings(
        systems, scores, contrasts, reached, costs, by_length, by_rarity, by_frequency, same_pieces, shown, studies
    )


def _lengths(systems: list[System]) -> list[int]:
    """The most pieces that a system makes of each test sentence, on either side; 0 where one makes none of a side."""
    run = systems[0].first
    fewest, most = [1] * len(run.sources), [0] * len(run.sources)
    for system in systems:
        tokenizers = TokenizerPair.load(system.first.folder)
        for tokenizer, lines in ((tokenizers.source, run.sources), (tokenizers.target, run.references)):
            encoded = tokenizer.encode([line if line.strip() else "" for line in lines])
            counts = [len(pieces) for pieces in encoded]
            fewest, most = list(map(min, fewest, counts)), list(map(max, most, counts))
    return [many if few else 0 for few, many in zip(fewest, most, strict=True)]


def _sentences_to_show(lengths: list[int], differences: list[float]) -> list[int]:
    """Of the test sentences with words on both sides one of middle length, a long one, and the one on which the first
    two systems differ most; if all are too long to be read, the shortest, if that can be drawn."""
    by_length = sorted((count, row) for row, count in enumerate(lengths) if count)
    legible = [row for count, row in by_length if count <= LEGIBLE_PIECES]
    if not legible:
        return [row for count, row in by_length[:1] if count <= DRAWABLE_PIECES]
    middle, long = (legible[int(len(legible) * share)] for share in (0.5, 0.95))
    most_different = max(legible, key=lambda row: abs(differences[row]))
    return list(dict.fromkeys([middle, long, most_different]))
