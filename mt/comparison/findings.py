"""Everything that a comparison finds out about its systems."""

import logging
from collections import Counter
from dataclasses import dataclass

from mt.comparison.attention import Study, study
from mt.comparison.conclusions import Conclusions, conclude
from mt.comparison.cost import Cost, common_bleu, measure_costs, same_validation, spread
from mt.comparison.differences import (
    Example,
    Group,
    bleu_by_length,
    bleu_by_rarity,
    clearest_wins,
    word_f1_by_frequency,
)
from mt.comparison.systems import EvaluationSet, System
from mt.comparison.verdict import Counts, SystemScore, Verdict, judge
from mt.config import CompareConfig
from mt.data.tokenizer import TokenizerPair
from mt.scoring import sentence_chrf
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
    conclusions: Conclusions
    chrf_differences: list[float]
    """The system's chrF2 minus the baseline's for each test sentence; of the first runs, like the examples."""
    baseline_wins: list[Example]
    system_wins: list[Example]


@dataclass(frozen=True)
class Findings:
    """The baseline is the first of ``systems``; ``contrasts`` has one for each of the others."""

    evaluation: EvaluationSet
    systems: list[System]
    scores: list[SystemScore]
    contrasts: list[Contrast]
    repeated_sources: int
    """Sentences of the test set whose source stands in it more than once."""
    reached_bleu: float | None
    """The validation BLEU to which time is measured: the given one, or the highest that every run reached; None if it
    cannot be compared."""
    costs: list[Cost | None]
    """None for files."""
    by_length: list[Group]
    counted_in: str | None
    """The system in whose training data words were counted for the two below; None where they were not."""
    by_rarity: list[Group]
    """Of sentences, by their rarest word."""
    by_frequency: list[Group]
    """Of words."""
    same_pieces: bool
    """Whether all target tokenizers are the same, so that numbers of target tokens mean the same."""
    shown: list[int]
    """The test sentences whose attention is shown, from 0."""
    studies: list[Study]


def compare_systems(evaluation: EvaluationSet, systems: list[System], config: CompareConfig) -> Findings:
    baseline, *others = systems
    logger.info("testing whether the difference is more than chance")
    counts = Counts(evaluation, systems)
    verdicts = [
        judge(baseline, system, counts, config.bootstrap_samples, config.randomization_trials, len(others))
        for system in others
    ]
    chrf = [sentence_chrf(system.first.hypotheses, evaluation.references) for system in systems]
    contrasts = []
    for verdict, system, theirs in zip(verdicts, others, chrf[1:], strict=True):
        differences = [second - first for first, second in zip(chrf[0], theirs, strict=True)]
        wins = clearest_wins(evaluation, (baseline.first, system.first), (chrf[0], theirs), config.examples)
        contrasts.append(Contrast(verdict, conclude(verdict, baseline, system), differences, *wins))
    logger.info("grouping by length and by how rare words are")
    by_length = bleu_by_length(systems, evaluation)
    counted_in, frequency = _word_counts(evaluation, systems)
    by_rarity = [] if frequency is None else bleu_by_rarity(systems, evaluation, frequency)
    by_frequency = [] if frequency is None else word_f1_by_frequency(systems, evaluation, frequency)
    sources = evaluation.sources or []
    if config.timed_sentences and any(system.runs for system in systems):
        logger.info("timing translation")
    reached = (config.valid_bleu or common_bleu(systems)) if same_validation(systems) else None
    costs = measure_costs(systems, sources, reached, config.timed_sentences, config.device)
    look = config.studied_sentences if any(system.runs for system in systems) else 0
    if look:
        logger.info("looking into attention")
    lengths = _lengths(evaluation, systems) if look else []
    shown = _sentences_to_show(lengths, contrasts[0].chrf_differences)
    studied = spread([row for row, count in enumerate(lengths) if count], look)
    return Findings(
        evaluation,
        systems,
        [counts.scores(system) for system in systems],
        contrasts,
        sum(count for count in Counter(counts.blocks.tolist()).values() if count > 1),
        reached,
        costs,
        by_length,
        counted_in,
        by_rarity,
        by_frequency,
        len({TokenizerPair.load(run.folder).target.model for system in systems for run in system.runs}) <= 1,
        shown,
        [study(system.first, evaluation, shown, studied, config.device) for system in systems],
    )


def _word_counts(evaluation: EvaluationSet, systems: list[System]) -> tuple[str | None, Counter[str] | None]:
    """How often each word stands in the training targets of the first system that was trained here, and its name. What
    training has counted is read from the run folder: a comparison never reads a corpus, which a run folder from
    elsewhere could name as it likes."""
    for system in systems:
        if system.runs:
            found = read_word_counts(system.runs[0].folder, evaluation.target_language)
            if found is None:
                logger.warning("so there are no scores by how rare words are")
            return system.name, found
    return None, None


def _lengths(evaluation: EvaluationSet, systems: list[System]) -> list[int]:
    """The most pieces that a system makes of each test sentence, on either side; 0 where one makes none of a side."""
    sources, references = evaluation.sources or [], evaluation.references
    fewest, most = [1] * len(sources), [0] * len(sources)
    for run in [system.runs[0] for system in systems if system.runs]:
        tokenizers = TokenizerPair.load(run.folder)
        for tokenizer, lines in ((tokenizers.source, sources), (tokenizers.target, references)):
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
