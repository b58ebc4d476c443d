"""The model of a run, the weights that it starts or resumes with, and their weighted mean with the trained ones."""

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
from mt.training.initial_embeddings import initialize_by_co_occurrence
from mt.training.preparation import PreparedData
from mt.translation.trained_model import load_weights_from


class Blend:
    """The initial weights of a run, to average with its trained ones (WiSE-FT, Wortsman et al. 2022, section 3).

    Fine-tuning changes the weights so little that their mean with the initial ones is a good model, too. The trainer
    holds one.

    Args:
        start: The initial weights by name. They are copied to main memory.
        share: Weight of the initial model in the mean (0–1), ``training.start_share``. With 0, nothing is copied or
            averaged.
    """

    def __init__(self, start: Mapping[str, Tensor], share: float) -> None:
        self.share = share
        self.start = {name: weight.to("cpu", copy=True) for name, weight in start.items()} if share else {}
        self._unblended: dict[str, Tensor] = {}
        """The trained weights by name, in main memory, while ``applied_to`` has replaced them in the model; else
        empty."""

    def blended(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the mean of the given weights and the initial ones by name, on the device of the given ones."""
        if not self.share:
            return weights
        return {name: weight.lerp(self.start[name].to(weight.device), self.share) for name, weight in weights.items()}

    @contextmanager
    def applied_to(self, model: nn.Module) -> Iterator[None]:
        """Context manager: average the weights of a model with the initial ones, and restore them exactly on exit.

        After an exception they are not restored.
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
        """Return the trained weights of a model by name, even within ``applied_to``, which replaces them in the
        model."""
        return self._unblended or weights_of(model)


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
