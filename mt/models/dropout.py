"""Dropout (Srivastava et al. 2014) with fast masks on a CPU."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.core.device import eager_on_cpu


class Dropout(nn.Module):
    """Sets random elements to zero and scales up the rest, in training only.

    On a CPU, PyTorch draws the mask element by element in one thread, which takes an eighth of a training step. This
    class draws random 64-bit words and uses one byte for each element, which is 30 times faster. The probability is
    rounded to a multiple of 1/256, and the scale is the exact inverse of the kept share. On other devices and under
    torch.compile, PyTorch's own dropout is used.

    Masks come from torch's global generator, which the trainer seeds for every update.
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
    """ReLU followed by dropout, of finite inputs. Without dropout, as in evaluation, the input is overwritten.

    On a CPU, the lowest finite number is added to the elements to drop, so that ReLU sets them to zero. The derivative
    of ReLU is zero for them, too, so the backward pass needs no mask.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0 or not eager_on_cpu(x):
            return super().forward(x).relu_()
        drop = torch.lt(_random_bytes(x), self.dropped_of_256, out=torch.empty(x.shape, dtype=x.dtype))
        return torch.add(drop.mul_(torch.finfo(x.dtype).min), x, alpha=self.scale).relu_()


class SharedDropout(Dropout):
    """Variational dropout (Gal & Ghahramani 2016): all positions of a sentence share one mask of the D features."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        if not self.training or self.probability == 0:
            return x
        return x * super().forward(torch.ones_like(x[:, :1]))


def _random_bytes(x: Tensor) -> Tensor:
    """Return a random byte for each element of x, in the shape of x, as a uint8 tensor on the CPU."""
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.uint8)[: x.numel()].view(x.shape)
