"""Dropout (Srivastava et al. 2014) that takes little time and memory on a CPU."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.core.device import eager_on_cpu


class Dropout(nn.Module):
    """Sets random elements to zero and scales up the rest, in training only.

    On a CPU, PyTorch draws the mask element by element in one thread: an eighth of a training step. This class draws
    random 64-bit words and uses a byte of them for each element, 30 times faster. The probability is rounded to a
    multiple of 1/256, and the scale is the exact inverse of the kept share. On other devices, and under torch.compile,
    this is PyTorch's own dropout.

    Masks come from torch's global generator; the trainer seeds it for every update.
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
        # The mask has x's type and not bool: two products of equal types are faster than one of mixed types.
        keep = torch.ge(_random_bytes(x), self.dropped_of_256, out=torch.empty(x.shape, dtype=x.dtype))
        return x * keep.mul_(self.scale)

    def extra_repr(self) -> str:
        return f"{self.probability}"


class ReluDropout(Dropout):
    """Applies ReLU, then dropout, to finite x. If there is no dropout, as in evaluation, x is overwritten.

    On a CPU, the lowest finite number is added to the dropped elements, so that ReLU sets them to zero. ReLU's
    derivative is zero for the same elements, so the backward pass needs no mask.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0 or not eager_on_cpu(x):
            return super().forward(x).relu_()
        drop = torch.lt(_random_bytes(x), self.dropped_of_256, out=torch.empty(x.shape, dtype=x.dtype))
        return torch.add(drop.mul_(torch.finfo(x.dtype).min), x, alpha=self.scale).relu_()


class SharedDropout(Dropout):
    """Dropout with one mask for all positions of a sentence: variational dropout (Gal & Ghahramani 2016) of a layer's
    inputs and outputs."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        if not self.training or self.probability == 0:
            return x
        return x * super().forward(torch.ones_like(x[:, :1]))


def _random_bytes(x: Tensor) -> Tensor:
    """Return one random byte for each element of x, in the shape of x."""
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.uint8)[: x.numel()].view(x.shape)
