"""Dropout that costs little on a CPU, in time and in memory (Srivastava et al. 2014)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.device import eager_on_cpu


class Dropout(nn.Module):
    """Sets elements to zero with a probability and scales the rest, in training only.

    PyTorch draws a CPU mask element by element in one thread, which costs an eighth of a training step. Random 64-bit
    words cut into bytes cost a thirtieth of that; the probability is then rounded to a multiple of 1/256, and the scale
    is the exact inverse of what is kept. On other devices this is PyTorch's own dropout.

    Masks come from torch's global generator, which the trainer seeds anew for every update.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self.dropped_of_256 = min(255, round(probability * 256))
        self.scale = 256 / (256 - self.dropped_of_256)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0:
            return x
        if not eager_on_cpu(x):
            return functional.dropout(x, self.probability)
        # Zeros and ones of x's own type, not bool: two such products are faster than one of mixed types.
        keep = torch.ge(_random_bytes(x), self.dropped_of_256, out=torch.empty(x.shape, dtype=x.dtype))
        return x * keep.mul_(self.scale)

    def extra_repr(self) -> str:
        return f"{self.probability}"


class ReluDropout(Dropout):
    """max(0, x) of finite x, then dropout. Overwrites x where nothing is dropped.

    On a CPU what is to be dropped is lowered so far that the ReLU makes zeros of it: its derivative then drops the same
    elements, and no mask is kept for the backward pass.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0 or not eager_on_cpu(x):
            return super().forward(x).relu_()
        drop = torch.lt(_random_bytes(x), self.dropped_of_256, out=torch.empty(x.shape, dtype=x.dtype))
        return torch.add(drop.mul_(torch.finfo(x.dtype).min), x, alpha=self.scale).relu_()


class SharedDropout(Dropout):
    """One mask for all positions of a sentence (variational dropout, Gal & Ghahramani 2016, of what goes into and comes
    out of a layer)."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)"""
        if not self.training or self.probability == 0:
            return x
        return x * super().forward(torch.ones_like(x[:, :1]))


def _random_bytes(x: Tensor) -> Tensor:
    """One for each element of x, of its shape."""
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.uint8)[: x.numel()].view(x.shape)
