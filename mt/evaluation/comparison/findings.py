"""Collects everything that a comparison finds out about its systems."""

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
from mt.metrics.scoring import sentence_chrf
from mt.metrics.word_counts import read_word_counts
from mt.translation.trained_model import read_tokenizers

logger = logging.getLogger(__name__)

LEGIBLE_PIECES = 40
"""Maximum number of pieces in a sentence whose attention map can still be read."""
DRAWABLE_PIECES = 60
"""Maximum number of pieces in a sentence whose attention is drawn at all. The picture with every head's map takes a
third of a GB of memory at this length for six layers of eight heads; longer sentences would take too much."""


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
    scores: list[SystemScore]
    contrasts: list[Contrast]
    repeated_sources: int
    """Number of test sentences whose source (or reference, if the sources are not known) occurs more than once."""
    reached_bleu: float | None
    """The validation BLEU to which training time is measured: the configured one, or the highest that every run
    reached. None if it cannot be compared: the runs measured it on different pairs, or it stayed 0."""
    costs: list[Cost | None]
    """None for files."""
    by_length: list[Group]
    counted_in: str | None
    """The system whose training data's word counts the next two are based on; None if none was trained here."""
    by_rarity: list[Group]
    """BLEU of sentences, by their rarest word."""
    by_frequency: list[Group]
    """F1 of words."""
    same_pieces: bool
    """Whether all runs have the same target tokenizer, so that numbers of target tokens can be compared."""
    attention_rows: list[int]
    """Numbers (from 0) of the test sentences whose attention is shown."""
    studies: list[Study]
    """The attention of each system's first output."""


def compare_systems(evaluation: EvaluationSet, systems: list[System], config: CompareConfig) -> Findings:
    """Runs all tests and measurements on the systems, of which the first is the baseline."""
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
    if config.timed_sentences and any(system.can_translate for system in systems):
        logger.info("timing translation")
    reached = (config.valid_bleu or common_bleu(systems)) if same_validation(systems) else None
    costs = measure_costs(systems, sources, reached, config.timed_sentences, config.device)
    look = config.studied_sentences if any(system.can_translate for system in systems) else 0
    if look:
        logger.info("looking into attention")
    lengths = _lengths(evaluation, systems) if look else []
    attention_rows = _sentences_to_show(lengths, contrasts[0].chrf_differences)
    studied = evenly_spaced([row for row, count in enumerate(lengths) if count], look)
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
        len({read_tokenizers(run.folder).target.model for system in systems for run in system.runs}) <= 1,
        attention_rows,
        [study(system.first, evaluation, attention_rows, studied, config.device) for system in systems],
    )


def _word_counts(evaluation: EvaluationSet, systems: list[System]) -> tuple[str | None, Counter[str] | None]:
    """Returns the name of the first system that was trained here and the word counts of its training targets.

    The counts that training left in the run folder are read. A comparison never opens a corpus, because the config in a
    run folder from elsewhere could name any file as one.
    """
    for system in systems:
        if system.runs:
            found = read_word_counts(system.runs[0].folder, evaluation.target_language)
            if found is None:
                logger.warning("so there are no scores by how rare words are")
            return system.name, found
    return None, None


def _lengths(evaluation: EvaluationSet, systems: list[System]) -> list[int]:
    """Returns the length of each test sentence: the most pieces that any system's tokenizers make of its source or its
    reference, or 0 if some tokenizer makes none of one of them."""
    sources, references = evaluation.sources or [], evaluation.references
    fewest, most = [1] * len(sources), [0] * len(sources)
    for system in (one for one in systems if one.can_translate):
        tokenizers = read_tokenizers(system.first.origin)
        for tokenizer, lines in ((tokenizers.source, sources), (tokenizers.target, references)):
            encoded = tokenizer.encode([line if line.strip() else "" for line in lines])
            counts = [len(pieces) for pieces in encoded]
            fewest, most = list(map(min, fewest, counts)), list(map(max, most, counts))
    return [many if few else 0 for few, many in zip(fewest, most, strict=True)]


def _sentences_to_show(lengths: list[int], differences: list[float]) -> list[int]:
    """Returns the numbers of the test sentences whose attention is shown.

    Among the sentences with pieces on both sides whose maps can be read, these are one of median length, a long one,
    and the one on which the first two systems differ most. If all are too long to be read, it is the shortest one,
    unless that is too long to be drawn.
    """
    by_length = sorted((count, row) for row, count in enumerate(lengths) if count)
    legible = [row for count, row in by_length if count <= LEGIBLE_PIECES]
    if not legible:
        return [row for count, row in by_length[:1] if count <= DRAWABLE_PIECES]
    middle, long = (legible[int(len(legible) * share)] for share in (0.5, 0.95))
    most_different = max(legible, key=lambda row: abs(differences[row]))
    return list(dict.fromkeys([middle, long, most_different]))
