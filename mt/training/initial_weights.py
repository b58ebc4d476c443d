"""The model of a run, and the weights that it starts or resumes with."""

from pathlib import Path

import torch

from mt.config import TrainConfig
from mt.core.randomness import key
from mt.distributed.workers import Workers
from mt.models.build import build_model
from mt.models.seq2seq import Seq2Seq
from mt.storage.run_folder import WEIGHTS
from mt.storage.weights import checksum, load_weights, read_weights, weight_shapes, weights_of
from mt.training.checkpoint import START, Checkpoint
from mt.training.fine_tuning.blend import Blend
from mt.training.initial_embeddings import initialize_by_co_occurrence
from mt.training.preparation import PreparedData
from mt.translation.trained_model import load_weights_from


def initial_model(
    config: TrainConfig, data: PreparedData, workers: Workers, checkpoint: Checkpoint | None
) -> tuple[Seq2Seq, Blend, str | None]:
    """Build the model, with the weights of the checkpoint, else of ``training.init_from``, else random ones.

    Args:
        config: The config of the run.
        data: The data of the run, with the tokenizers.
        workers: All of them have to call this.
        checkpoint: The checkpoint to resume from; None for a new run.

    Returns:
        The model, on the CPU; the blend for ``training.start_share``; and the checksum of the weights of
        ``training.init_from``, or None if the weights came from elsewhere.

    Raises:
        InputError: The weights are damaged or do not fit the model.
    """
    settings = config.training
    torch.manual_seed(key(config.seed, "weights"))
    model = build_model(config.model, data.tokenizers)
    start_checksum = None
    if settings.init_from and not checkpoint:
        load_weights_from(Path(settings.init_from), model, config.model)
        start_checksum = checksum(weights_of(model))
    elif settings.initial_embeddings == "co_occurrence" and not checkpoint:
        initialize_by_co_occurrence(model, data.train, data.tokenizers.joint, workers)
    start = weights_of(model)
    if settings.start_share and checkpoint:
        start = read_weights(config.folder / START, config.model, weight_shapes(model))
    blend = Blend(start, settings.start_share)
    if checkpoint:
        load_weights(model, config.model, checkpoint.folder / WEIGHTS)
    return model, blend, start_checksum
