"""The change of BLEU by fine-tuning, on the test set of the run and on that of its base run."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import NamedTuple

from mt.config import TrainConfig
from mt.core.columns import evenly_spaced_rows
from mt.core.errors import InputError, damaged_file, wrong_keys
from mt.core.json_file import is_number, read_json
from mt.core.randomness import generator
from mt.distributed.workers import Workers
from mt.metrics.bleu import Bleu
from mt.metrics.significance import (
    BOOTSTRAP_SAMPLES,
    SIGNIFICANCE_LEVEL,
    block_numbers,
    paired_intervals,
    randomization_test,
    sum_blocks,
)
from mt.models.seq2seq import Seq2Seq
from mt.storage.folders import read_description
from mt.storage.run_folder import PROVENANCE, RESTORE_OR_SCORE_AGAIN, RESULTS, WEIGHTS, read_scored
from mt.storage.weights import checksum, load_weights, weights_of
from mt.training.preparation import PreparedData
from mt.training.validation import translate_together
from mt.translation.trained_model import load_weights_from
from mt.translation.translator import Translator

FINE_TUNING = "fine_tuning"
"""Key of results.json, whose value maps OWN and EARLIER to their changes."""
OWN, EARLIER = "by fine-tuning", "on the earlier test set"
"""Keys of the test sets: that of the run, and that of its base run. The table of results shows them."""
MAX_TEST_SENTENCES = 2_000
"""Sentences of a test set that are compared. They are evenly spaced."""
RANDOM_EXCHANGES = 10_000

logger = logging.getLogger(__name__)


class TestSet(NamedTuple):
    """The lines of a test set, or an evenly spaced part of them."""

    sources: list[str]
    references: list[str]


@dataclass(frozen=True)
class BleuChange:
    """The change of BLEU on one test set by fine-tuning. results.json holds it."""

    pairs: int
    """The number of sentences compared."""
    before: float
    """BLEU with the initial weights."""
    after: float
    """BLEU with the final weights."""
    low: float
    """Lower bound of the 95 % confidence interval of ``after - before`` (paired bootstrap, Koehn 2004)."""
    high: float
    """Upper bound of that interval."""
    p: float
    """p-value of a paired randomisation test (Riezler & Maxwell 2005)."""

    def __str__(self) -> str:
        return (
            f"{self.before:.2f} to {self.after:.2f} BLEU on {self.pairs:,} sentences, 95 % {self.low:+.1f} to "
            f"{self.high:+.1f}, p = {self.p:.3g}"
        )

    @property
    def is_significant(self) -> bool:
        return self.p < SIGNIFICANCE_LEVEL


def measure_changes(
    config: TrainConfig, data: PreparedData, translator: Translator, hypotheses: Sequence[str], workers: Workers
) -> dict[str, BleuChange]:
    """Measure the change of BLEU on the run's own test set, and on that of its base run if it has one.

    Initial and final weights translate with the same text layer and settings. If the base run's weights are gone or
    have changed, log a warning.

    Args:
        config: The config of the run.
        data: The data of the run, with its test set.
        translator: A translator with the final weights. Its weights are replaced meanwhile.
        hypotheses: Translations of the run's test set with the final weights.
        workers: All of them have to call this and translate a share.

    Returns:
        The change for OWN, and for EARLIER if there is such a test set. Empty without ``training.init_from``, or if
        nothing could be measured.
    """
    if config.training.init_from is None:
        return {}
    test = data.corpus.test
    rows = evenly_spaced_rows(len(test), MAX_TEST_SENTENCES).tolist()
    test_sets = {OWN: TestSet(test[rows]["source"], test[rows]["target"])}
    after = {OWN: [hypotheses[row] for row in rows]}
    if earlier := _test_set_of(Path(config.training.init_from), config):
        test_sets[EARLIER] = earlier
        after[EARLIER] = translate_together(translator, earlier.sources, workers)
    before = _translate_with_initial_weights(config, translator, test_sets, workers)
    return {name: _measure_change(config, test_sets[name], before[name], after[name]) for name in before}


def read_changes(run: Path, results: dict) -> dict[str, BleuChange]:
    """Return the recorded changes of BLEU by OWN and EARLIER.

    Args:
        run: The run folder, for messages.
        results: The content of its results.json.

    Raises:
        InputError: results.json is damaged.
    """
    try:
        changes = {str(name): BleuChange(**values) for name, values in results[FINE_TUNING].items()}
        if all(is_number(value) for change in changes.values() for value in astuple(change)):
            return changes
    except (AttributeError, KeyError, TypeError):
        pass
    raise damaged_file(run / RESULTS, wrong_keys([FINE_TUNING]), RESTORE_OR_SCORE_AGAIN)


def advice_on_changes(changes: dict[str, BleuChange]) -> Iterator[str]:
    """Yield advice if fine-tuning gained nothing on the run's test set, or lost on that of the base run."""
    own, earlier = changes.get(OWN), changes.get(EARLIER)
    if own and not (own.is_significant and own.after > own.before):
        yield (
            "fine-tuning did not improve BLEU significantly on the run's own test set: try another "
            "training.optimizer.learning_rate, or more training pairs"
        )
    if earlier and earlier.is_significant and earlier.after < earlier.before:
        yield (
            "fine-tuning forgot: BLEU fell on the test set of the base run. If that matters, keep more of the "
            "initial weights (a larger training.start_share), or replay more of its pairs (a larger training.replay)"
        )


def _translate_with_initial_weights(
    config: TrainConfig, translator: Translator, test_sets: dict[str, TestSet], workers: Workers
) -> dict[str, list[str]]:
    """Translate test sets with the initial weights, then load the final weights again.

    Returns:
        The translations of each test set by its key; empty, with a warning, if the initial weights are gone or changed.
    """
    model = translator.model
    assert isinstance(model, Seq2Seq)
    try:
        load_weights_from(Path(str(config.training.init_from)), model, config.model)
        if checksum(weights_of(model)) != read_json(config.folder / PROVENANCE)["initial_weights"]:
            raise InputError(f"{config.training.init_from}: weights changed since this run began; restore them")
        return {name: translate_together(translator, test_set.sources, workers) for name, test_set in test_sets.items()}
    except InputError as error:
        logger.warning("the change of BLEU by fine-tuning cannot be measured without the initial weights: %s", error)
        return {}
    finally:
        load_weights(model, config.model, config.folder / WEIGHTS)


def _test_set_of(base: Path, config: TrainConfig) -> TestSet | None:
    """Return up to MAX_TEST_SENTENCES lines of a base run's test set.

    None if the base has no test set, as a model folder, or if it translates between other languages.
    """
    try:
        description, lines = read_description(base), read_scored(base)
    except InputError:
        return None
    if (description.source_language, description.target_language) != (
        config.data.source_language,
        config.data.target_language,
    ):
        return None
    rows = evenly_spaced_rows(len(lines["source"]), MAX_TEST_SENTENCES)
    return TestSet(*([lines[name][row] for row in rows] for name in ("source", "reference")))


def _measure_change(config: TrainConfig, test_set: TestSet, before: Sequence[str], after: Sequence[str]) -> BleuChange:
    """Compare the translations of a test set by the initial weights with those by the final weights."""
    metric, blocks = Bleu(config.data.target_language), block_numbers(test_set.sources)
    first, second = (
        sum_blocks(metric.statistics(hypotheses, test_set.references), blocks) for hypotheses in (before, after)
    )
    random = generator(config.seed, "bootstrap of fine-tuning")
    scores = paired_intervals(first, second, metric.score, BOOTSTRAP_SAMPLES, random)
    random = generator(config.seed, "randomisation of fine-tuning")
    p = randomization_test(first, second, metric.score, RANDOM_EXCHANGES, random).p
    return BleuChange(len(before), scores[0].score, scores[1].score, scores[2].low, scores[2].high, p)
