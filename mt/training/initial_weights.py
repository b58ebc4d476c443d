"""The model that a run trains, with its weights before the first update or as the checkpoint has them."""

from dataclasses import dataclass
from pathlib import Path

import torch

from mt.config import TrainConfig
from mt.core.randomness import key
from mt.distributed.workers import Workers
from mt.models.build import build_model
from mt.models.seq2seq import Seq2Seq
from mt.storage.run_folder import WEIGHTS
from mt.storage.weights import checksum, load_weights, read_weights, weight_shapes, weights_of
from mt.training.blending import Blend
from mt.training.checkpoint import START, Checkpoint
from mt.training.initial_embeddings import initialise_by_co_occurrence
from mt.training.preparation import PreparedData
from mt.training.provenance import base_model
from mt.translation.trained_model import load_weights_from


@dataclass(frozen=True)
class InitialModel:
    """A model, on the CPU, and the weights that it began with."""

    model: Seq2Seq
    blend: Blend
    """Blends the initial weights into what is validated and delivered, if training.start_share asks for it."""
    checksum: str | None
    """Of the weights of training.init_from; None if they were drawn at random or come from a checkpoint."""
    base_model: str | None
    """The model of the hub that training.init_from goes back to."""


def initial_model(
    config: TrainConfig, data: PreparedData, workers: Workers, checkpoint: Checkpoint | None
) -> InitialModel:
    """Build the model and give it the weights of the checkpoint, of ``training.init_from``, or random ones.

    Raises:
        InputError: The weights are damaged or do not fit the model.
    """
    settings = config.training
    torch.manual_seed(key(config.seed, "weights"))
    model = build_model(config.model, data.tokenizers)
    start_checksum = origin = None
    if settings.init_from and not checkpoint:
        load_weights_from(Path(settings.init_from), model, config.model)
        start_checksum, origin = checksum(weights_of(model)), base_model(settings.init_from)
    elif settings.initial_embeddings == "co_occurrence" and not checkpoint:
        initialise_by_co_occurrence(model, data.train, data.tokenizers.joint, workers)
    start = weights_of(model)
    if settings.start_share and checkpoint:
        start = read_weights(config.folder / START, config.model, weight_shapes(model))
    blend = Blend(start, settings.start_share)
    if checkpoint:
        load_weights(model, config.model, checkpoint.folder / WEIGHTS)
    return InitialModel(model, blend, start_checksum, origin)
