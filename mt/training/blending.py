"""Weights between those that a run began with and those that it has learnt: most of what is new, little forgotten."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mt.storage.weights import copy_weights, weights_of


class Blend:
    """The weighted mean of the weights that a run began with and of others (WiSE-FT, Wortsman et al. 2022, section 3).

    Fine-tuning stays so close to its start that the models on the straight line between the two are good ones, too.
    Part of the way back, a model has regained much of what it had forgotten, and has lost little of what is new.

    Args:
        start: The weights that the run began with, by name. They are copied, and kept in the computer's memory even if
            the model is on a GPU.
        share: Their share of the mean, from 0 to 1. With 0 there is nothing to blend, and nothing is copied.
    """

    def __init__(self, start: Mapping[str, Tensor], share: float) -> None:
        self.share = share
        self.start = {name: weight.to("cpu", copy=True) for name, weight in start.items()} if share else {}
        self.set_aside: dict[str, Tensor] = {}
        """A model's own weights, while the blend stands in their place; also in the computer's memory."""

    def of(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns the blend of some weights by name. They may be on another device than those of the start."""
        if not self.share:
            return weights
        return {name: weight.lerp(self.start[name].to(weight.device), self.share) for name, weight in weights.items()}

    @contextmanager
    def inside(self, model: nn.Module) -> Iterator[None]:
        """Within this context, a model has the blend of its weights; afterwards its own again, to the bit. An exception
        ends the run, and leaves the model blended."""
        if not self.share:
            yield
            return
        self.set_aside = {name: weight.to("cpu", copy=True) for name, weight in weights_of(model).items()}
        with torch.no_grad():
            for name, weight in weights_of(model).items():
                weight.lerp_(self.start[name].to(weight.device), self.share)
        yield
        copy_weights(self.set_aside, model)
        self.set_aside = {}

    def own(self, model: nn.Module) -> dict[str, Tensor]:
        """Returns a model's own weights by name, also within ``inside``."""
        return self.set_aside or weights_of(model)
