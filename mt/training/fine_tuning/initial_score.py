"""The score of the initial weights on the test set, which shows whether fine-tuning helped."""

import logging
from collections.abc import Sequence
from pathlib import Path

from mt.config import TrainConfig
from mt.core.errors import InputError
from mt.core.json_file import read_json
from mt.distributed.workers import Workers
from mt.metrics.bleu import Bleu
from mt.models.seq2seq import Seq2Seq
from mt.storage.run_folder import PROVENANCE, WEIGHTS
from mt.storage.weights import checksum, load_weights, weights_of
from mt.training.validation import translate_together
from mt.translation.trained_model import load_weights_from
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)


def initial_bleu(
    config: TrainConfig, translator: Translator, sources: list[str], references: Sequence[str], workers: Workers
) -> float | None:
    """Return BLEU of the weights of ``training.init_from`` on the test set.

    Args:
        config: The config of the run.
        translator: A translator with the final weights. Its weights are replaced meanwhile.
        sources: The sources of the test set.
        references: Its references.
        workers: All of them have to call this and translate a share.

    Returns:
        The score; None without ``training.init_from`` or, with a warning, if those weights are gone or have changed.
    """
    if config.training.init_from is None:
        return None
    model = translator.model
    assert isinstance(model, Seq2Seq)
    try:
        load_weights_from(Path(config.training.init_from), model, config.model)
        if checksum(weights_of(model)) != read_json(config.folder / PROVENANCE)["initial_weights"]:
            raise InputError(f"{config.training.init_from}: weights changed since this run began; restore them")
        hypotheses = translate_together(translator, sources, workers)
    except InputError as error:
        logger.warning("BLEU before fine-tuning cannot be measured without the initial weights: %s", error)
        return None
    finally:
        load_weights(model, config.model, config.folder / WEIGHTS)
    return Bleu(config.data.target_language).corpus_score(hypotheses, references, sources=sources)
