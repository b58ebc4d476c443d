"""The losses that training minimises.

With p the model's distribution over V pieces and y the next piece of the reference, the label-smoothed cross-entropy
(Szegedy et al. 2016, section 7) is (1 - ε) · (-log p(y)) + ε · mean over all v of (-log p(v)), summed over the target
pieces, padding left out.
Consistency training predicts every piece twice, and adds α times the divergence of the two distributions to the loss.
SimCut (Gao et al. 2022) makes the second prediction with some embeddings set to zero, R-Drop (Liang et al. 2021) with
another dropout mask.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mt.config import TrainingConfig
from mt.data.batching import Batch
from mt.models.embedding import cut_embeddings
from mt.models.kernels.linear import linear, weight_gradient
from mt.models.seq2seq import Seq2Seq

Formula = Callable[[Sequence[Tensor], Tensor], tuple[Tensor, Callable[[], Sequence[Tensor]]]]
"""A loss as a function of log p (R, V) of each prediction and of the gold pieces (R, 1). Returns its sum over the rows,
and a function that returns its derivatives with respect to each prediction's logits (R, V) and may overwrite log p."""


CPU_ROWS = 512
"""Rows whose logits are held at a time on a CPU."""
GPU_ROWS = {1: 8192, 2: 2048}
"""The same on a GPU, by the number of predictions: with two, the intermediate results of the formula are about eight
times as large as the logits."""
CACHED_LOGITS = 2**17
"""Logits to which each CPU core applies the formula at a time: few enough for them, and what is computed from them, to
stay in its cache."""


class _ProjectedLoss(torch.autograd.Function):
    """Projects features to logits, and computes the loss and its gradients, a chunk of rows at a time.

    The logits of a whole batch (4096 × 8000 floats) are never held: on a CPU, faulting in so much memory costs more
    than the arithmetic; on a GPU, they would be the largest tensor of the step.
    """

    @staticmethod
    def forward(
        ctx: Any, formula: Formula, weight: Tensor, bias: Tensor | None, gold: Tensor, *features: Tensor
    ) -> Tensor:
        """Returns the sum of the losses, given weight (V, D), bias (V,), gold (R,) and features (R, D) of each
        prediction."""
        device = weight.device.type
        precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        rows, vocabulary = len(gold), len(weight)
        training = any(x.requires_grad for x in features)
        matrix, vector = weight.to(precision), None if bias is None else bias.to(precision)
        features = tuple(x.to(precision) for x in features)
        chunk = min(max(1, rows), CPU_ROWS if device == "cpu" else GPU_ROWS[len(features)])
        cached = torch.get_num_threads() * max(16, CACHED_LOGITS // vocabulary) if device == "cpu" else chunk
        total = torch.zeros((), device=weight.device)
        gradients = [torch.empty_like(x) for x in features] if training else []
        weight_sum = torch.zeros_like(weight) if training else weight.new_empty(0)
        bias_sum = torch.zeros_like(bias) if training and bias is not None else None
        for first in range(0, rows, chunk):
            part = slice(first, first + chunk)
            total += _loss_of_chunk(
                formula, matrix, vector, gold[part], [x[part] for x in features], [x[part] for x in gradients],
                weight_sum, bias_sum, cached,
            )  # fmt: skip
        ctx.save_for_backward(weight_sum, bias_sum, *gradients)
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        weight_sum, bias_sum, *gradients = ctx.saved_tensors
        for_bias = None if bias_sum is None else bias_sum * scale
        return None, weight_sum * scale, for_bias, None, *(gradient * scale for gradient in gradients)


def _loss_of_chunk(
    formula: Formula, weight: Tensor, bias: Tensor | None, gold: Tensor, features: Sequence[Tensor],
    gradients: Sequence[Tensor], weight_sum: Tensor, bias_sum: Tensor | None, cached: int,
) -> Tensor:  # fmt: skip
    """Returns the loss of a chunk of rows, whose logits are freed before those of the next chunk are computed.

    Args:
        formula: The loss.
        weight: The output matrix (V, D).
        bias: The output bias (V,), if there is one.
        gold: The pieces to predict (R,).
        features: (R, D) of each prediction.
        gradients: Filled in with the gradients of the features; empty if no gradients are needed.
        weight_sum: The gradient of the weight is added to it.
        bias_sum: The gradient of the bias is added to it.
        cached: The rows to which the formula is applied at a time.
    """
    total = torch.zeros((), device=weight.device)
    logits = [linear(x, weight, bias) for x in features]
    for start in range(0, len(gold), cached):
        few = slice(start, start + cached)
        log_p = [z[few].log_softmax(dim=-1, dtype=torch.float32) for z in logits]
        loss, derivatives = formula(log_p, gold[few, None])
        total += loss
        if gradients:  # the derivatives overwrite the logits
            for z, derivative in zip(logits, derivatives(), strict=True):
                z[few] = derivative
    if gradients:
        for x, gradient, by_logits in zip(features, gradients, logits, strict=True):
            gradient.copy_(linear(by_logits, weight.t()))
            weight_sum += weight_gradient(by_logits, x)
            if bias_sum is not None:
                bias_sum += by_logits.sum(dim=0)
    return total


def _cross_entropy(log_p: Tensor, gold: Tensor, smoothing: float) -> Tensor:
    """Returns the sum of the losses, given log p (R, V) and gold (R, 1)."""
    return -((1 - smoothing) * log_p.gather(1, gold).sum() + smoothing * log_p.mean(dim=-1).sum())


def _by_logits(p: Tensor, gold: Tensor, smoothing: float) -> Tensor:
    """Returns ∂cross-entropy/∂logits = p - (1 - ε) · onehot(y) - ε/V. Overwrites p (R, V); gold is (R, 1)."""
    return p.sub_(smoothing / p.shape[1]).scatter_add_(1, gold, p.new_full(gold.shape, smoothing - 1))


def smoothed_cross_entropy(
    features: Tensor, weight: Tensor, gold: Tensor, smoothing: float, bias: Tensor | None = None
) -> Tensor:
    """Returns the summed loss of predicting pieces ``gold`` (R,) from features (R, D) by the output matrix (V, D), and
    the output bias (V,) if there is one."""

    def formula(log_p: Sequence[Tensor], gold: Tensor) -> tuple[Tensor, Callable[[], list[Tensor]]]:
        (a,) = log_p
        return _cross_entropy(a, gold, smoothing), lambda: [_by_logits(a.exp_(), gold, smoothing)]

    return _ProjectedLoss.apply(formula, weight, bias, gold, features)


def simcut(
    plain: Tensor, cut: Tensor, weight: Tensor, gold: Tensor, smoothing: float, alpha: float, bias: Tensor | None = None
) -> Tensor:
    """Returns the cross-entropy of the plain prediction + α · KL(plain ‖ cut), summed over the rows (Gao et al. 2022,
    equation 4). Gradients flow through both predictions.

    Args:
        plain: Features (R, D) of the prediction without cut embeddings.
        cut: Features (R, D) of the prediction with cut embeddings.
        weight: The output matrix (V, D).
        gold: The pieces to predict (R,).
        smoothing: ε.
        alpha: α.
        bias: The output bias (V,), if there is one.
    """

    def formula(log_p: Sequence[Tensor], gold: Tensor) -> tuple[Tensor, Callable[[], list[Tensor]]]:
        a, b = log_p
        difference, p, q = a - b, a.exp(), b.exp()
        divergence = (p * difference).sum(dim=-1, keepdim=True)  # (R, 1)

        def derivatives() -> list[Tensor]:
            # ∂KL/∂logits: p · (log p - log q - KL) for the plain prediction, q - p for the cut one
            by_plain = difference.sub_(divergence).mul_(p).mul_(alpha).add_(p)
            return [_by_logits(by_plain, gold, smoothing), q.sub_(p).mul_(alpha)]

        return _cross_entropy(a, gold, smoothing) + alpha * divergence.sum(), derivatives

    return _ProjectedLoss.apply(formula, weight, bias, gold, plain, cut)


def r_drop(
    one: Tensor, other: Tensor, weight: Tensor, gold: Tensor, smoothing: float, alpha: float, bias: Tensor | None = None
) -> Tensor:
    """Returns the mean cross-entropy of both predictions + α/4 · (KL(one ‖ other) + KL(other ‖ one)), summed over the
    rows. That is half of equation 4 of Liang et al. 2021, so that a piece counts once.

    Args:
        one: Features (R, D) of the first prediction.
        other: Features (R, D) of the second prediction.
        weight: The output matrix (V, D).
        gold: The pieces to predict (R,).
        smoothing: ε.
        alpha: α.
        bias: The output bias (V,), if there is one.
    """

    def formula(log_p: Sequence[Tensor], gold: Tensor) -> tuple[Tensor, Callable[[], list[Tensor]]]:
        a, b = log_p
        difference, p, q = a - b, a.exp(), b.exp()
        of_one = (p * difference).sum(dim=-1, keepdim=True)  # KL(one ‖ other), (R, 1)
        of_other = -(q * difference).sum(dim=-1, keepdim=True)

        def derivatives() -> list[Tensor]:
            by_one = (difference - of_one).mul_(p).add_(p).sub_(q).mul_(alpha / 4)
            by_other = difference.neg_().sub_(of_other).mul_(q).add_(q).sub_(p).mul_(alpha / 4)
            by_one.add_(_by_logits(p, gold, smoothing), alpha=0.5)
            by_other.add_(_by_logits(q, gold, smoothing), alpha=0.5)
            return [by_one, by_other]

        likelihoods = (_cross_entropy(a, gold, smoothing) + _cross_entropy(b, gold, smoothing)) / 2
        return likelihoods + alpha / 4 * (of_one.sum() + of_other.sum()), derivatives

    return _ProjectedLoss.apply(formula, weight, bias, gold, one, other)


class Objective(nn.Module):
    """A model together with the loss that it is trained with. It computes the loss of a batch in one ``forward``,
    because data-parallel wrappers hook nothing else."""

    def __init__(self, model: Seq2Seq, settings: TrainingConfig) -> None:
        super().__init__()
        self.model = model
        self.settings = settings
        self._training_features = torch.compile(self._features, dynamic=True) if settings.compile else self._features

    def forward(self, batch: Batch) -> Tensor:
        """Returns the loss, summed over the batch's target pieces (``batch.target_tokens`` of them, without padding).

        In evaluation mode it is the cross-entropy alone, without smoothing.
        """
        settings = self.settings
        gold = batch.target_output.flatten().index_select(0, batch.target_positions)  # (R,)
        weight, bias = self.model.output_weight, self.model.output_bias
        if self.training and settings.objective == "r_drop":
            # Both predictions in one pass, which is faster than two: every row has a dropout mask of its own.
            one, other = self._training_features(batch.twice()).chunk(2)
            return r_drop(one, other, weight, gold, settings.label_smoothing, settings.consistency, bias)
        if not self.training:
            return smoothed_cross_entropy(self._features(batch), weight, gold, 0.0, bias)
        features = self._training_features(batch)
        if settings.objective == "cross_entropy":
            return smoothed_cross_entropy(features, weight, gold, settings.label_smoothing, bias)
        with cut_embeddings(self.model, settings.cutoff):
            cut = self._training_features(batch)
        return simcut(features, cut, weight, gold, settings.label_smoothing, settings.consistency, bias)

    def _features(self, batch: Batch) -> Tensor:
        """Returns the features (R, D) from which the target pieces are predicted, without padding."""
        features = self.model.decode(self.model.encode(batch.source), batch.target_input)  # (B, T, D)
        return features.flatten(0, 1).index_select(0, batch.target_positions)
