"""The training objective: the loss, fused with the output projection, and its data parallelism.

With p the model's distribution over V subwords and y the next subword of the reference, the label-smoothed
cross-entropy (Szegedy et al. 2016, section 7) is (1 - ε) · (-log p(y)) + ε · mean over all v of (-log p(v)).
Consistency training predicts every subword twice, and adds α times the divergence of the two predicted distributions.
For the second prediction, SimCut (Gao et al. 2022) sets some embeddings to zero, and R-Drop (Liang et al. 2021) draws
another dropout mask.

The output projection and the loss are one operation, computed for a chunk of rows at a time. The logits of a whole
batch (4096 × 8000 floats) are never in memory. On a CPU, page faults for so much memory cost more than the arithmetic.
On a GPU, the logits would be the largest tensor of an update.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mt.config import TrainingConfig
from mt.data.batching.batch import Batch, collate
from mt.distributed.replication import replicate, shard
from mt.distributed.workers import Workers
from mt.models.embedding import cut_embeddings
from mt.models.layers import add_weight_gradient, linear
from mt.models.seq2seq import Seq2Seq
from mt.tokenizer.tokenizer import EOS, PAD

LossAndGradients = tuple[Tensor, Callable[[], list[Tensor]]]
"""The losses of R rows (R, 1), and a function that returns the gradient (R, V) of the logits of each prediction. The
function may overwrite the log-probabilities, so call it only once."""
Loss = Callable[[Sequence[Tensor], Tensor], LossAndGradients]
"""A loss function. Arguments: log-probabilities (R, V) of each prediction, and the label ids (R, 1)."""

CPU_ROWS = 512
"""Rows of a chunk on a CPU."""
GPU_ROWS = 2048
"""Rows of a chunk on a GPU. The intermediate results of the loss are four to eight times as large as the logits in
bf16."""
CACHED_LOGITS = 2**18
"""Logits to which each CPU core applies the loss at a time: few enough to stay in its cache, with intermediate
results."""


def cross_entropy(smoothing: float) -> Loss:
    """Return the loss function for one prediction: cross-entropy with label smoothing."""

    def loss(log_p: Sequence[Tensor], labels: Tensor) -> LossAndGradients:
        (a,) = log_p
        return _cross_entropy(a, labels, smoothing), lambda: [_cross_entropy_gradient(a.exp_(), labels, smoothing)]

    return loss


def simcut(smoothing: float, alpha: float) -> Loss:
    """Return the loss function for a plain prediction and one with cut embeddings (Gao et al. 2022, equation 4).

    It is the cross-entropy of the plain prediction + α · KL(plain ‖ cut). Gradients flow through both predictions.
    """

    def loss(log_p: Sequence[Tensor], labels: Tensor) -> LossAndGradients:
        a, b = log_p
        difference, p, q = a - b, a.exp(), b.exp()
        divergence = (p * difference).sum(dim=-1, keepdim=True)  # (R, 1)

        def gradients() -> list[Tensor]:
            # ∂KL/∂logits: p · (log p - log q - KL) for the plain prediction, q - p for the cut one
            plain = difference.sub_(divergence).mul_(p).mul_(alpha).add_(p)
            return [_cross_entropy_gradient(plain, labels, smoothing), q.sub_(p).mul_(alpha)]

        return _cross_entropy(a, labels, smoothing) + alpha * divergence, gradients

    return loss


def r_drop(smoothing: float, alpha: float) -> Loss:
    """Return the loss function for two predictions with different dropout masks (Liang et al. 2021).

    It is the mean cross-entropy of the two + α/4 · (KL(first ‖ second) + KL(second ‖ first)), half of equation 4, so
    that each subword counts once.
    """

    def loss(log_p: Sequence[Tensor], labels: Tensor) -> LossAndGradients:
        a, b = log_p
        difference, p, q = a - b, a.exp(), b.exp()
        kl_ab = (p * difference).sum(dim=-1, keepdim=True)  # (R, 1)
        kl_ba = -(q * difference).sum(dim=-1, keepdim=True)

        def gradients() -> list[Tensor]:
            first = (difference - kl_ab).mul_(p).add_(p).sub_(q).mul_(alpha / 4)
            second = difference.neg_().sub_(kl_ba).mul_(q).add_(q).sub_(p).mul_(alpha / 4)
            first.add_(_cross_entropy_gradient(p, labels, smoothing), alpha=0.5)
            second.add_(_cross_entropy_gradient(q, labels, smoothing), alpha=0.5)
            return [first, second]

        likelihoods = (_cross_entropy(a, labels, smoothing) + _cross_entropy(b, labels, smoothing)) / 2
        return likelihoods + alpha / 4 * (kl_ab + kl_ba), gradients

    return loss


def _cross_entropy(log_p: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return the label-smoothed cross-entropy of each row (R, 1), given log p (R, V) and labels (R, 1)."""
    return -((1 - smoothing) * log_p.gather(1, labels) + smoothing * log_p.mean(dim=-1, keepdim=True))


def _cross_entropy_gradient(p: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Overwrite p (R, V) with ∂cross-entropy/∂logits = p - (1 - ε) · onehot(labels) - ε/V. Return it. ``labels`` is (R,
    1)."""
    return p.sub_(smoothing / p.shape[1]).scatter_add_(1, labels, p.new_full(labels.shape, smoothing - 1))


class OutputLayer(NamedTuple):
    """The weight (V, D) of an output layer and its bias (V,), which is None if there is none; or the gradients of
    both."""

    weight: Tensor
    bias: Tensor | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> "OutputLayer":
        """Apply a function to the weight and to the bias, if there is one."""
        return OutputLayer(function(self.weight), None if self.bias is None else function(self.bias))


def projected_loss(loss: Loss, output: OutputLayer, labels: Tensor, *features: Tensor) -> Tensor:
    """Return the loss of an output layer's predictions, summed over R rows.

    Args:
        loss: The loss function.
        output: The output layer.
        labels: The ids of the subwords to predict (R,). A row with PAD has no loss.
        features: Decoder features (R, D), one tensor for each prediction that ``loss`` takes.
    """
    if not torch.is_grad_enabled():
        output = output.map(Tensor.detach)
    return _ProjectedLoss.apply(loss, output.weight, output.bias, labels, *features)


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: Loss, weight: Tensor, bias: Tensor | None, labels: Tensor, *features: Tensor) -> Tensor:
        device = weight.device.type
        precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        layer = OutputLayer(weight, bias)
        output = layer.map(lambda x: x.to(precision))
        features = tuple(x.to(precision) for x in features)
        # The output layer, or the layers before it, may be frozen.
        gradients = [torch.empty_like(x) for x in features] if any(ctx.needs_input_grad) else []
        trains_output = any(ctx.needs_input_grad[1:3])
        sums = layer.map(lambda x: torch.zeros_like(x, dtype=torch.float32)) if trains_output else None
        rows = CPU_ROWS if device == "cpu" else GPU_ROWS
        total = torch.zeros((), device=weight.device)
        for chunk in (slice(first, first + rows) for first in range(0, len(labels), rows)):
            parts, part_gradients = [x[chunk] for x in features], [x[chunk] for x in gradients]
            total += _chunk_loss(loss, output, labels[chunk], parts, part_gradients, sums)
        ctx.save_for_backward(*(sums or (None, None)), *gradients)
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        weight, bias, *gradients = (None if x is None else x * scale for x in ctx.saved_tensors)
        return None, weight, bias, None, *gradients


def _chunk_loss(
    loss: Loss,
    output: OutputLayer,
    labels: Tensor,
    features: Sequence[Tensor],
    gradients: Sequence[Tensor],
    sums: OutputLayer | None,
) -> Tensor:
    """Return the loss of a chunk of R rows, and compute its gradients.

    Args:
        loss: The loss function.
        output: The output layer.
        labels: The ids of the subwords to predict (R,).
        features: (R, D) of each prediction.
        gradients: (R, D) of each prediction, filled with the gradients of the features; empty in evaluation mode.
        sums: Sums to which the gradients of the output layer are added; None if they are not needed.
    """
    logits = [linear(x, *output) for x in features]  # (R, V)
    total = torch.zeros((), device=labels.device)
    counts = (labels != PAD).unsqueeze(1).float()  # (R, 1)
    cached = max(1, len(labels))
    if labels.device.type == "cpu":
        cached = torch.get_num_threads() * max(16, CACHED_LOGITS // logits[0].shape[1])
    for rows in (slice(first, first + cached) for first in range(0, len(labels), cached)):
        values, derivatives = loss(
            [z[rows].log_softmax(dim=-1, dtype=torch.float32) for z in logits], labels[rows, None]
        )
        total += (values * counts[rows]).sum()
        if gradients:
            for z, derivative in zip(logits, derivatives(), strict=True):
                torch.mul(derivative, counts[rows], out=z[rows])
    if gradients:  # ``logits`` now holds the derivatives
        for x, gradient, derivative in zip(features, gradients, logits, strict=True):
            gradient.copy_(linear(derivative, output.weight.t()))
            if sums:
                add_weight_gradient(sums.weight, derivative, x)
            if sums and sums.bias is not None:
                sums.bias.add_(derivative.sum(dim=0))
    return total


class Objective(nn.Module):
    """A model and its training loss as one module. The trainer holds one.

    ``forward`` returns the loss of a batch, because data-parallel wrappers hook only ``forward``.
    """

    def __init__(self, model: Seq2Seq, settings: TrainingConfig) -> None:
        super().__init__()
        self.model = model
        self.settings = settings
        self._training_features = torch.compile(self._features, dynamic=True) if settings.compile else self._features

    def forward(self, batch: Batch) -> Tensor:
        """Return the loss of a batch, summed over its target tokens without padding (``batch.target_tokens``).

        In evaluation mode, the loss is the cross-entropy without label smoothing.
        """
        features = self._training_features if self.training else self._features
        labels = batch.target_output.flatten().index_select(0, batch.target_positions)  # (R,)
        output = OutputLayer(self.model.output_weight, self.model.output_bias)
        # Every row has its own dropout mask, so one pass over the doubled batch suffices, and is faster than two.
        return self.loss(lambda: features(batch), lambda: features(batch.repeated_twice()).chunk(2), labels, output)

    def loss(
        self,
        predict: Callable[[], Tensor],
        predict_twice: Callable[[], Sequence[Tensor]],
        labels: Tensor,
        output: OutputLayer,
    ) -> Tensor:
        """Return the loss, summed over R target tokens.

        Args:
            predict: Computes decoder features (R, D).
            predict_twice: Computes them twice, with different dropout masks.
            labels: The ids of the subwords to predict (R,). A row with PAD has no loss.
            output: The output layer.
        """
        settings = self.settings
        smoothing, alpha = settings.label_smoothing, settings.consistency
        if not self.training:
            loss, features = cross_entropy(0.0), [predict()]
        elif settings.objective == "r_drop":
            loss, features = r_drop(smoothing, alpha), [*predict_twice()]
        elif settings.objective == "simcut":
            loss, features = simcut(smoothing, alpha), [predict()]
            with cut_embeddings(self.model, settings.cutoff):
                features.append(predict())
        else:
            loss, features = cross_entropy(smoothing), [predict()]
        return projected_loss(loss, output, labels, *features)

    def _features(self, batch: Batch) -> Tensor:
        """Return the decoder features (R, D) of the R target tokens that are not padding."""
        features = self.model.decode(self.model.encode(batch.source), batch.target_input)  # (B, T, D)
        return features.flatten(0, 1).index_select(0, batch.target_positions)


def data_parallel(objective: Objective, workers: Workers, precision: torch.dtype) -> nn.Module:
    """Wrap an objective for data-parallel training: sharded (FSDP2) with ``training.shard``, else replicated (DDP).

    Args:
        objective: The objective of this worker, on its device.
        workers: All of them have to call this.
        precision: The number format of the forward pass.
    """
    if objective.settings.shard:
        return shard(objective, objective.model.blocks, workers)
    example = collate([[EOS] * 2] * 2, [[EOS] * 2] * 2).to(workers.device)
    return replicate(objective, example, workers, precision)
