"""What fine-tuning gained, and what it forgot: BLEU with the weights that a run began with and with those that it
delivers, on its own test set and on that of the run that it began from."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from mt.config import TrainConfig
from mt.core.columns import evenly_spaced_rows
from mt.core.errors import InputError
from mt.core.json_file import is_number, read_json
from mt.core.randomness import generator
from mt.distributed.workers import Workers
from mt.metrics.scoring import corpus_metrics
from mt.metrics.significance import (
    SIGNIFICANCE_LEVEL,
    blocks_of,
    bootstrap_scores,
    middle_95,
    randomisation_test,
    sum_blocks,
)
from mt.models.seq2seq import Seq2Seq
from mt.storage.folders import read_description
from mt.storage.run_folder import PROVENANCE, RESULTS, WEIGHTS, read_scored
from mt.storage.weights import checksum, load_weights, weights_of
from mt.training.preparation import PreparedData
from mt.training.validation import translate_together
from mt.translation.trained_model import load_weights_from
from mt.translation.translator import Translator

FINE_TUNING = "fine_tuning"
"""Key of results.json: how BLEU changed on this run's test set and on that of the run that it began from."""
OWN, EARLIER = "by fine-tuning", "on the earlier test set"
MOST_SENTENCES = 2_000
"""How many sentences of a test set are translated with the weights that the run began with, at even distances."""
SAMPLES = 2_000
"""Test sets that are drawn for each interval."""
TRIALS = 10_000
"""Random exchanges of each randomisation test."""

logger = logging.getLogger(__name__)


class TestSet(NamedTuple):
    """Sentences and their references."""

    sources: list[str]
    references: list[str]


@dataclass(frozen=True)
class Change:
    """How BLEU on a test set changed by fine-tuning."""

    pairs: int
    """The number of sentences."""
    before: float
    """BLEU with the weights that the run began with."""
    after: float
    """BLEU with the weights that it delivers."""
    low: float
    """``low`` and ``high`` bound the 95 % interval of the difference (paired bootstrap, Koehn 2004)."""
    high: float
    p: float
    """Of a paired randomisation test (Riezler & Maxwell 2005)."""

    def __str__(self) -> str:
        return (
            f"{self.before:.2f} to {self.after:.2f} BLEU on {self.pairs:,} sentences, 95 % {self.low:+.1f} to "
            f"{self.high:+.1f}, p = {self.p:.3g}"
        )

    @property
    def is_more_than_chance(self) -> bool:
        return self.p < SIGNIFICANCE_LEVEL


def measure_changes(
    config: TrainConfig, data: PreparedData, translator: Translator, hypotheses: Sequence[str], workers: Workers
) -> dict[str, Change]:
    """Returns how BLEU changed on the run's own test set, and on that of the run that it began from, if there is one.

    Both are translated with today's text layer and settings, so that nothing but the weights differs.

    Args:
        config: The run's config.
        data: What the run was trained and is tested on.
        translator: Translates with the weights that the run delivers. It has them again afterwards.
        hypotheses: Its translations of the test set.
        workers: Share the work of translating.

    Returns:
        Nothing for a run that did not begin from another one, or if that one's weights are gone or others by now.
    """
    if config.training.init_from is None:
        return {}
    origin = Path(config.training.init_from)
    sets, after = {}, {}
    test = data.corpus.test
    rows = evenly_spaced_rows(len(test), MOST_SENTENCES).tolist()
    sets[OWN] = TestSet(test[rows]["source"], test[rows]["target"])
    after[OWN] = [hypotheses[row] for row in rows]
    if earlier := _test_set_of(origin, config):
        sets[EARLIER] = earlier
        after[EARLIER] = translate_together(translator, earlier.sources, workers)
    before = _translations_before(config, translator, sets, workers)
    return {
        name: _change(config, one.sources, one.references, before[name], after[name])
        for name, one in sets.items()
        if name in before
    }


def read_changes(run: Path, results: dict) -> dict[str, Change]:
    """Return what a run's results.json says of fine-tuning.

    Raises:
        InputError: It is damaged.
    """
    recorded = results.get(FINE_TUNING)
    names = {field.name for field in fields(Change)}
    if isinstance(recorded, dict) and all(
        isinstance(one, dict) and one.keys() == names and all(map(is_number, one.values())) for one in recorded.values()
    ):
        return {name: Change(**one) for name, one in recorded.items()}
    raise InputError(f"{run / RESULTS}: damaged or of another version: {FINE_TUNING}")


def advice_on_changes(changes: dict[str, Change]) -> Iterator[str]:
    """Yields advice for fine-tuning that gained nothing, or that forgot something."""
    own, earlier = changes.get(OWN), changes.get(EARLIER)
    if own and not (own.is_more_than_chance and own.after > own.before):
        yield (
            "fine-tuning did not make the model better on its own test set, as far as these sentences can tell: try "
            "another learning rate (training.optimizer.learning_rate), or more pairs"
        )
    if earlier and earlier.is_more_than_chance and earlier.after < earlier.before:
        yield (
            "fine-tuning forgot some of what the earlier run had learnt. If that matters, keep more of its weights "
            "(a larger training.start_share), or let more of the pairs be its own (a larger training.replay)"
        )


def _translations_before(
    config: TrainConfig, translator: Translator, sets: dict[str, TestSet], workers: Workers
) -> dict[str, list[str]]:
    """Returns the translations of each test set with the weights that the run began with; none if these are gone."""
    delivered = config.folder / WEIGHTS
    model = translator.model
    assert isinstance(model, Seq2Seq)
    try:
        load_weights_from(Path(str(config.training.init_from)), model, config.model)
        if checksum(weights_of(model)) != read_json(config.folder / PROVENANCE)["initial_weights"]:
            raise InputError("its weights are others than the run began with")
        return {name: translate_together(translator, one.sources, workers) for name, one in sets.items()}
    except InputError as error:
        logger.warning("what fine-tuning gained is not measured: %s", error)
        return {}
    finally:
        load_weights(model, config.model, delivered)


def _test_set_of(origin: Path, config: TrainConfig) -> TestSet | None:
    """Returns some of the test set of the run in a folder; None if there is none, as in a model that was copied without
    it, or if it is of another direction, which the new run is to unlearn."""
    try:
        theirs = read_description(origin)
        lines = read_scored(origin)
    except InputError:
        return None
    ours = config.data
    if (theirs.source_language, theirs.target_language) != (ours.source_language, ours.target_language):
        return None
    rows = evenly_spaced_rows(len(lines["source"]), MOST_SENTENCES)
    return TestSet(*([lines[name][row] for row in rows] for name in ("source", "reference")))


def _change(
    config: TrainConfig,
    sources: Sequence[str],
    references: Sequence[str],
    before: Sequence[str],
    after: Sequence[str],
) -> Change:
    metric = corpus_metrics(config.data.target_language)[0]
    blocks = blocks_of(sources)
    counts = [sum_blocks(metric.counts(one, references), blocks) for one in (before, after)]
    scores = [float(metric.score(one.sum(axis=0))) for one in counts]
    drawn = bootstrap_scores(counts, metric.score, SAMPLES, generator(config.seed, "bootstrap of fine-tuning"))
    random = generator(config.seed, "randomisation of fine-tuning")
    p = randomisation_test(counts[0], counts[1], metric.score, TRIALS, random).p
    low, high = middle_95(drawn[1] - drawn[0])
    return Change(len(sources), scores[0], scores[1], low, high, p)
