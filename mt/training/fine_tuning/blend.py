"""The weighted mean of a run's initial weights with its trained ones."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mt.storage.weights import copy_weights, weights_of


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
