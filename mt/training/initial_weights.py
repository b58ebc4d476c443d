"""The model that a run trains, its initial weights, and their weighted mean with the trained ones."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from mt.config import TrainConfig
from mt.core.randomness import key
from mt.distributed.workers import Workers
from mt.models.build import build_model
from mt.models.seq2seq import Seq2Seq
from mt.storage.run_folder import WEIGHTS
from mt.storage.weights import checksum, copy_weights, load_weights, read_weights, weight_shapes, weights_of
from mt.training.checkpoint import START, Checkpoint
from mt.training.initial_embeddings import initialise_by_co_occurrence
from mt.training.preparation import PreparedData
from mt.translation.trained_model import load_weights_from


class Blend:
    """Averages a run's initial weights with others (WiSE-FT, Wortsman et al. 2022, section 3).

    Fine-tuning stays so close to its start that the models on the straight line between the two are good ones, too.

    Args:
        start: The initial weights by name. They are copied to main memory.
        share: Their share of the mean, from 0 to 1. With 0, nothing is copied or blended.
    """

    def __init__(self, start: Mapping[str, Tensor], share: float) -> None:
        self.share = share
        self.start = {name: weight.to("cpu", copy=True) for name, weight in start.items()} if share else {}
        self._unblended: dict[str, Tensor] = {}
        """A model's own weights while it has blended ones, in main memory."""

    def blended(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return weights, on any device, averaged with the initial ones."""
        if not self.share:
            return weights
        return {name: weight.lerp(self.start[name].to(weight.device), self.share) for name, weight in weights.items()}

    @contextmanager
    def applied_to(self, model: nn.Module) -> Iterator[None]:
        """Context manager: average the model's weights with the initial ones, and restore its own exactly at the end.

        After an exception the weights stay averaged, because callers then end the run.
        """
        if not self.share:
            yield
            return
        self._unblended = {name: weight.to("cpu", copy=True) for name, weight in weights_of(model).items()}
        with torch.no_grad():
            for name, weight in weights_of(model).items():
                weight.lerp_(self.start[name].to(weight.device), self.share)
        yield
        copy_weights(self._unblended, model)
        self._unblended = {}

    def unblended(self, model: nn.Module) -> dict[str, Tensor]:
        """Return a model's own weights by name, also within ``applied_to``."""
        return self._unblended or weights_of(model)


def initial_model(
    config: TrainConfig, data: PreparedData, workers: Workers, checkpoint: Checkpoint | None
) -> tuple[Seq2Seq, Blend, str | None]:
    """Build the model and give it the weights of the checkpoint, of ``training.init_from``, or random ones.

    Returns:
        The model, on the CPU; what blends the weights that the run began with into those that are validated and
        delivered; and the checksum of the weights of ``training.init_from``, None if they came from elsewhere.

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
        initialise_by_co_occurrence(model, data.train, data.tokenizers.joint, workers)
    start = weights_of(model)
    if settings.start_share and checkpoint:
        start = read_weights(config.folder / START, config.model, weight_shapes(model))
    blend = Blend(start, settings.start_share)
    if checkpoint:
        load_weights(model, config.model, checkpoint.folder / WEIGHTS)
    return model, blend, start_checksum
