"""Fast layers for CPUs: linear layers with oneDNN where it is faster than MKL, and dropout with fast random masks.

On CPUs, PyTorch multiplies fp32 matrices with MKL. On AMD processors, MKL does not use AVX-512. oneDNN, which also
comes with PyTorch, uses it and is twice as fast.

Shapes: N rows, I input and O output features.
"""

import threading
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from mt.core.device import eager_on_cpu, mkl_is_slow

MIN_ONEDNN_MULTIPLICATIONS = 2**21
"""Minimum number of multiplications for oneDNN. Smaller products are faster with MKL, which has less overhead per
call."""
CHUNK_ROWS = 512
"""Number of rows that are copied at a time to compute their contribution to a weight gradient."""


class Linear(nn.Linear):
    """``nn.Linear`` that computes with ``linear``."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b (…, O) for x (…, I)."""
        return linear(x, self.weight, self.bias)


def initialize(*layers: nn.Linear) -> None:
    """Draw the weights of layers after Glorot & Bengio (2010), and set their biases to zero."""
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x Wᵀ + b (…, O) for x (…, I), weight W (O, I) and bias b (O,). The function is differentiable."""
    if _uses_onednn(x, x.numel() * len(weight)):
        return cast(Tensor, _OneDNNLinear.apply(x.flatten(0, -2), weight, bias)).unflatten(0, x.shape[:-1])
    return functional.linear(x, weight, bias)


def add_weight_gradient(total: Tensor, gradient: Tensor, x: Tensor) -> Tensor:
    """Add the gradient of a linear layer's weight to ``total`` (O, I), in place. Return the sum.

    Args:
        total: The sum so far, in the type of the other tensors or in fp32.
        gradient: Gradient of the layer's output (N, O).
        x: The layer's input (N, I).
    """
    if _uses_onednn(x, x.numel() * gradient.shape[1]):
        for rows in zip(gradient.split(CHUNK_ROWS), x.split(CHUNK_ROWS), strict=True):
            total += _onednn_weight_gradient(*rows)
        return total
    return total.addmm_(gradient.t(), x) if total.dtype == x.dtype else total.add_(gradient.t() @ x)


def _onednn_weight_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    """Return gradientᵀ x (O, I)."""
    # oneDNN copies the first factor, so the smaller matrix is the first.
    if gradient.numel() <= x.numel():
        return _onednn_linear(gradient.t(), x.t())
    return _onednn_linear(x.t(), gradient.t()).t()


class _OneDNNLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return x Wᵀ + b (N, O) for x (N, I)."""
        ctx.save_for_backward(x, weight)
        return _onednn_linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        return (
            _onednn_linear(gradient, weight.t()) if for_x else None,
            add_weight_gradient(torch.zeros_like(weight), gradient, x) if for_weight else None,
            gradient.sum(dim=0) if for_bias else None,
        )


def _uses_onednn(x: Tensor, multiplications: int) -> bool:
    in_fp32_on_cpu = eager_on_cpu(x) and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return in_fp32_on_cpu and x.ndim > 1 and multiplications >= MIN_ONEDNN_MULTIPLICATIONS and mkl_is_slow()


def _onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if not weight.t().is_contiguous():
        weight = weight.contiguous()  # oneDNN would copy it number by number
    # A private operator of PyTorch, which torch.compile uses.
    return cast(Tensor, torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], ""))


class ThreadRandom(threading.local):
    """The generator with which a thread draws dropout masks."""

    generator: torch.Generator | None = None
    """None stands for torch's global generator, which the trainer seeds for every update."""


THREAD_RANDOM = ThreadRandom()


class Dropout(nn.Module):
    """Sets random elements to zero and scales up the others, in training only.

    On a CPU, PyTorch draws the mask element by element in one thread, which takes an eighth of a train step. This class
    draws random 64-bit words and uses one byte for each element, which is 30 times faster. The probability is rounded
    to a multiple of 1/256, and the scale is the exact inverse of the kept share. Masks come from the generator of the
    thread (``THREAD_RANDOM``). On other devices and under torch.compile, PyTorch's dropout is used.
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


class ReluDropout(Dropout):
    """ReLU followed by dropout, for finite inputs. Without dropout, as in evaluation, the input is overwritten.

    On a CPU, the lowest finite number is added to dropped elements, so that ReLU sets them and their derivatives to
    zero. Thus the backward pass needs no mask.
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
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64)
    words.random_(-(2**63), None, generator=THREAD_RANDOM.generator)
    return words.view(torch.uint8)[: x.numel()].view(x.shape)
