"""The output projection and the loss in one operation, computed for a chunk of rows at a time.

The logits of a whole batch (4096 × 8000 floats) are never in memory. On a CPU, page faults for so much memory cost more
than the arithmetic. On a GPU, the logits would be the largest tensor of an update.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mt.core.device import has_triton
from mt.models.kernels.linear import linear, weight_gradient
from mt.text.subwords.tokenizer import PAD
from mt.training.losses import CrossEntropy, Loss

CPU_ROWS = 512
"""Rows of a chunk on a CPU."""
GPU_ROWS = {1: 8192, 2: 2048}
"""Rows of a chunk on a GPU, by the number of predictions. With two, the intermediate results of the loss are about
eight times as large as the logits."""
CACHED_LOGITS = 2**17
"""Logits to which each CPU core applies the loss at a time: few enough to stay in its cache, with intermediate
results."""


class OutputLayer(NamedTuple):
    """The weight (V, D) of an output layer and its bias (V,), which is None if there is none; or the gradients of
    both."""

    weight: Tensor
    bias: Tensor | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> "OutputLayer":
        """Apply a function to the weight and to the bias, if there is one."""
        return OutputLayer(function(self.weight), None if self.bias is None else function(self.bias))


def projected_loss(loss: Loss, output: OutputLayer, gold: Tensor, *features: Tensor) -> Tensor:
    """Return the loss of an output layer's predictions, summed over R rows.

    Args:
        loss: The loss function.
        output: The output layer.
        gold: The ids of the subwords to predict (R,). A row with PAD has no loss.
        features: Decoder features (R, D), one tensor for each prediction that ``loss`` takes.
    """
    return _ProjectedLoss.apply(loss, output.weight, output.bias, gold, *features)


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: Loss, weight: Tensor, bias: Tensor | None, gold: Tensor, *features: Tensor) -> Tensor:
        device = weight.device.type
        precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        training = any(x.requires_grad for x in features)
        layer = OutputLayer(weight, bias)
        output = layer.map(lambda x: x.to(precision))
        features = tuple(x.to(precision) for x in features)
        gradients = [torch.empty_like(x) for x in features] if training else []
        sums = layer.map(lambda x: torch.zeros_like(x, dtype=torch.float32)) if training else None
        rows = CPU_ROWS if device == "cpu" else GPU_ROWS[len(features)]
        total = torch.zeros((), device=weight.device)
        for chunk in (slice(first, first + rows) for first in range(0, len(gold), rows)):
            parts, part_gradients = [x[chunk] for x in features], [x[chunk] for x in gradients]
            total += _chunk_loss(loss, output, gold[chunk], parts, part_gradients, sums)
        if sums:
            ctx.save_for_backward(*sums, *gradients)
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        weight, bias, *gradients = ctx.saved_tensors
        sums = OutputLayer(weight, bias).map(lambda x: x * scale)
        return None, *sums, None, *(x * scale for x in gradients)


def _chunk_loss(
    loss: Loss,
    output: OutputLayer,
    gold: Tensor,
    features: Sequence[Tensor],
    gradients: Sequence[Tensor],
    sums: OutputLayer | None,
) -> Tensor:
    """Return the loss of a chunk of R rows, and compute its gradients.

    Args:
        loss: The loss function.
        output: The output layer.
        gold: The ids of the subwords to predict (R,).
        features: (R, D) of each prediction.
        gradients: (R, D) of each prediction, filled with the gradients of the features; empty in evaluation mode.
        sums: Sums to which the gradients of the output layer are added; None in evaluation mode.
    """
    logits = [linear(x, *output) for x in features]
    if isinstance(loss, CrossEntropy) and has_triton(gold.device):
        from mt.models.kernels.triton_kernels import cross_entropy

        total = cross_entropy(logits[0], gold, loss.smoothing).sum()
    else:
        total = _apply(loss, logits, gold, differentiate=sums is not None)
    if sums:  # then ``logits`` holds the derivatives
        for x, gradient, derivative in zip(features, gradients, logits, strict=True):
            gradient.copy_(linear(derivative, output.weight.t()))
            sums.weight.add_(weight_gradient(derivative, x))
            if sums.bias is not None:
                sums.bias.add_(derivative.sum(dim=0))
    return total


def _apply(loss: Loss, logits: Sequence[Tensor], gold: Tensor, differentiate: bool) -> Tensor:
    """Return the sum of the losses of R rows. With ``differentiate``, overwrite the logits with its derivatives.

    Args:
        loss: The loss function.
        logits: (R, V) of each prediction.
        gold: The ids of the subwords to predict (R,).
        differentiate: Whether the derivatives are needed.
    """
    total = torch.zeros((), device=gold.device)
    counts = (gold != PAD).unsqueeze(1).float()  # (R, 1)
    cached = _cached_rows(logits[0].shape[1]) if gold.device.type == "cpu" else max(1, len(gold))
    for rows in (slice(first, first + cached) for first in range(0, len(gold), cached)):
        values, derivatives = loss([z[rows].log_softmax(dim=-1, dtype=torch.float32) for z in logits], gold[rows, None])
        total += (values * counts[rows]).sum()
        if differentiate:
            for z, derivative in zip(logits, derivatives(), strict=True):
                torch.mul(derivative, counts[rows], out=z[rows])
    return total


def _cached_rows(vocabulary_size: int) -> int:
    return torch.get_num_threads() * max(16, CACHED_LOGITS // vocabulary_size)
