"""Linear layers, whose fp32 products take the library that multiplies faster on this processor.

PyTorch multiplies fp32 matrices on CPUs with MKL, which on AMD's makes no use of AVX-512. oneDNN, which comes with
PyTorch as well (and multiplies bf16 for it), does, and is twice as fast there.

Shapes: N rows, I input and O output features.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from mt.device import eager_on_cpu, mkl_is_slow

WORTH_ITS_CALL = 2**21
"""Multiplications from which on oneDNN is faster: its calls cost more."""
ROWS = 512
"""Of which a share of a weight's gradient is made at a time: they are copied for it."""


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        """x (…, I) → x Wᵀ + b (…, O)"""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (…, I), weight (O, I), bias (O) → x Wᵀ + b (…, O)"""
    if _is_for_onednn(x, x.numel() * len(weight)):
        return cast(Tensor, _ByOneDNN.apply(x.flatten(0, -2), weight, bias)).unflatten(0, x.shape[:-1])
    return functional.linear(x, weight, bias)


def weight_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    """By the weight (O, I) of a layer that made of x (N, I) what has this gradient (N, O)."""
    if not _is_for_onednn(x, x.numel() * gradient.shape[1]):
        return gradient.t() @ x
    first, *others = zip(gradient.split(ROWS), x.split(ROWS), strict=True)
    total = _outer_products(*first)
    for part in others:
        total += _outer_products(*part)
    return total


def _outer_products(gradient: Tensor, x: Tensor) -> Tensor:
    """gradientᵀ x, summed over the rows."""
    # The first factor is copied: rather the smaller one.
    if gradient.numel() <= x.numel():
        return _product(gradient.t(), x.t())
    return _product(x.t(), gradient.t()).t()


class _ByOneDNN(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """x (N, I)"""
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        return (
            _product(gradient, weight.t()) if for_x else None,
            weight_gradient(gradient, x) if for_weight else None,
            gradient.sum(dim=0) if for_bias else None,
        )


def _is_for_onednn(x: Tensor, multiplications: int) -> bool:
    in_fp32_on_cpu = eager_on_cpu(x) and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return in_fp32_on_cpu and x.ndim > 1 and multiplications >= WORTH_ITS_CALL and mkl_is_slow()


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if not weight.t().is_contiguous():
        weight = weight.contiguous()  # oneDNN itself would do that a number at a time
    # A private operator of PyTorch, whose compiler calls it.
    return cast(Tensor, torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], ""))
