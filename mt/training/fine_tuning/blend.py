"""The weighted mean of a run's initial weights with its trained ones."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mt.storage.weights import copy_weights, weights_of


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
