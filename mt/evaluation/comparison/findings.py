"""Computes all results of a comparison."""

import logging
from collections import Counter
from dataclasses import dataclass

from mt.config import CompareConfig
from mt.evaluation.comparison.attention import Study, study
from mt.evaluation.comparison.conclusions import Conclusions, conclude
from mt.evaluation.comparison.cost import Cost, common_bleu, measure_costs, same_validation
from mt.evaluation.comparison.differences import (
    Example,
    Group,
    bleu_by_length,
    bleu_by_rarity,
    clearest_wins,
    word_f1_by_frequency,
)
from mt.evaluation.comparison.verdict import Counts, SystemScore, Verdict, judge
from mt.evaluation.systems import EvaluationSet, System, evenly_spaced
from mt.metrics.chrf import Chrf
from mt.metrics.word_counts import read_word_counts
from mt.translation.trained_model import read_tokenizers

logger = logging.getLogger(__name__)

MAX_LEGIBLE_PIECES = 40
"""Length of a sentence whose attention map can still be read."""
MAX_DRAWN_PIECES = 60
"""Length of a sentence whose attention is drawn at all. For six layers of eight heads, the picture with every head's
map then takes a third of a GB of memory."""


@dataclass(frozen=True)
class Contrast:
    """One system compared with the baseline."""

    verdict: Verdict
    conclusions: Conclusions
    chrf_differences: list[float]
    """The system's chrF2 minus the baseline's for each test sentence, of the first outputs, like the examples."""
    baseline_wins: list[Example]
    system_wins: list[Example]


@dataclass(frozen=True)
class Findings:
    """The results of a comparison. The first of ``systems`` is the baseline; each of the others has a contrast."""

    evaluation: EvaluationSet
    systems: list[System]
    scores: list[dict[str, SystemScore]]
    """The scores of each system by metric."""
    contrasts: list[Contrast]
    repeated_sources: int
    """Number of test sentences with a source (or reference, if the sources are unknown) that occurs more than once."""
    reached_bleu: float | None
    """The validation BLEU to which training time is measured: the configured one, or the highest that every run
    reached. None if the runs measured it on different pairs, or if it stayed 0."""
    costs: list[Cost | None]
    """None for files."""
    bleu_by_length: list[Group]
    counted_in: str | None
    """The system whose training data's word counts the next two are based on; None if none was trained here."""
    bleu_by_rarest_word: list[Group]
    word_f1_by_training_frequency: list[Group]
    same_pieces: bool
    """Whether all runs have the same target tokenizer, so that numbers of target tokens can be compared."""
    attention_rows: list[int]
    """Numbers (from 0) of the test sentences whose attention is shown."""
    studies: list[Study]
    """The attention of each system's first output."""

    @property
    def measured_side(self) -> str:
        """The side that repetitions and lengths of sentences are about."""
        return "source" if self.evaluation.sources else "reference"


def compare_systems(evaluation: EvaluationSet, systems: list[System], config: CompareConfig) -> Findings:
    """Run all tests and measurements on the systems, the baseline first."""
    logger.info("testing whether the difference is more than chance")
    counts = Counts(evaluation, systems)
    contrasts = _contrasts(evaluation, systems, counts, config)
    logger.info("grouping by length and by how rare words are")
    counted_in, frequency = _word_counts(evaluation, systems)
    can_translate = any(system.can_translate for system in systems)
    if config.timed_sentences and can_translate:
        logger.info("timing translation")
    reached = (config.valid_bleu or common_bleu(systems)) if same_validation(systems) else None
    costs = measure_costs(systems, evaluation.sources or [], reached, config.timed_sentences, config.device)
    studied_sentences = config.studied_sentences if can_translate else 0
    if studied_sentences:
        logger.info("looking into attention")
    lengths = _lengths(evaluation, systems) if studied_sentences else []
    attention_rows = _sentences_to_show(lengths, contrasts[0].chrf_differences)
    studied = evenly_spaced([row for row, count in enumerate(lengths) if count], studied_sentences)
    return Findings(
        evaluation,
        systems,
        [counts.scores(system) for system in systems],
        contrasts,
        sum(count for count in Counter(counts.blocks.tolist()).values() if count > 1),
        reached,
        costs,
        bleu_by_length(systems, evaluation),
        counted_in,
        [] if frequency is None else bleu_by_rarity(systems, evaluation, frequency),
        [] if frequency is None else word_f1_by_frequency(systems, evaluation, frequency),
        len({read_tokenizers(run.folder).target.model for system in systems for run in system.runs}) <= 1,
        attention_rows,
        [study(system.first, evaluation, attention_rows, studied, config.device) for system in systems],
    )


def _contrasts(
    evaluation: EvaluationSet, systems: list[System], counts: Counts, config: CompareConfig
) -> list[Contrast]:
    metric = Chrf(evaluation.target_language)
    chrf = [metric.segment_scores(system.first.hypotheses, evaluation.references) for system in systems]
    baseline, *others = systems
    contrasts = []
    for system, scores in zip(others, chrf[1:], strict=True):
        verdict = judge(baseline, system, counts, config.bootstrap_samples, config.randomization_trials, len(others))
        differences = [second - first for first, second in zip(chrf[0], scores, strict=True)]
        wins = clearest_wins(evaluation, (baseline.first, system.first), (chrf[0], scores), config.examples)
        contrasts.append(Contrast(verdict, conclude(verdict, baseline, system), differences, *wins))
    return contrasts


def _word_counts(evaluation: EvaluationSet, systems: list[System]) -> tuple[str | None, Counter[str] | None]:
    """Return the name of the first system that was trained here and the word counts of its training targets.

    Training wrote the counts into the run folder. A comparison never opens a corpus, because the config in a run folder
    from elsewhere could name any file as one.
    """
    for system in systems:
        if system.runs:
            counts = read_word_counts(system.runs[0].folder, evaluation.target_language)
            if counts is None:
                logger.warning("so there are no scores by how rare words are")
            return system.name, counts
    return None, None


def _lengths(evaluation: EvaluationSet, systems: list[System]) -> list[int]:
    """Return the length of each test sentence: the largest number of pieces of its source or its reference with any
    system's tokenizers, or 0 if one of these numbers is 0."""
    sources, references = evaluation.sources or [], evaluation.references
    counts = []
    for system in systems:
        if system.can_translate:
            tokenizers = read_tokenizers(system.first.origin)
            for tokenizer, lines in ((tokenizers.source, sources), (tokenizers.target, references)):
                encoded = tokenizer.encode([line if line.strip() else "" for line in lines])
                counts.append([len(pieces) for pieces in encoded])
    return [max(lengths) if min(lengths) else 0 for lengths in zip(*counts, strict=True)]


def _sentences_to_show(lengths: list[int], differences: list[float]) -> list[int]:
    """Return the numbers of the test sentences whose attention is shown.

    Among the sentences with pieces on both sides and a legible map, these are one of median length, a long one, and the
    one on which the first two systems differ most. If all are too long to be read, it is the shortest one, unless that
    is too long to be drawn.
    """
    by_length = sorted((count, row) for row, count in enumerate(lengths) if count)
    legible = [row for count, row in by_length if count <= MAX_LEGIBLE_PIECES]
    if not legible:
        return [row for count, row in by_length[:1] if count <= MAX_DRAWN_PIECES]
    median, long = (legible[int(len(legible) * share)] for share in (0.5, 0.95))
    most_different = max(legible, key=lambda row: abs(differences[row]))
    return list(dict.fromkeys([median, long, most_different]))
