"""What training minimises: label-smoothed cross-entropy (Szegedy et al. 2016, section 7).

With p the model's distribution over V pieces and y the real next piece:
(1 - ε) · (-log p(y)) + ε · mean over all v of (-log p(v)), summed over the real target pieces.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mt.data.batching import Batch
from mt.data.tokenizer import PAD
from mt.model.seq2seq import Seq2Seq


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Projects features, and computes the loss and its gradients, a chunk of rows at a time.

    The logits of a whole batch (4096 × 8000 floats) are never held: on a CPU faulting in so much memory costs more than
    the arithmetic, on a GPU it would be the largest tensor of the step.
    """

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, gold: Tensor, smoothing: float) -> Tensor:
        """features (R, D), weight (V, D), gold (R,) → sum of the losses; see the module's docstring."""
        device = features.device.type
        precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        rows, vocabulary = len(features), len(weight)
        training = features.requires_grad
        features, matrix = features.to(precision), weight.to(precision)
        chunk = max(1, min(512 if device == "cpu" else 8192, rows))
        logits = features.new_empty(chunk, vocabulary)
        total = torch.zeros((), device=features.device)
        features_gradient = torch.empty_like(features) if training else features.new_empty(0)
        weight_gradient = torch.zeros_like(weight) if training else weight.new_empty(0)
        for first in range(0, rows, chunk):
            x, y = features[first : first + chunk], gold[first : first + chunk, None]
            z = torch.mm(x, matrix.t(), out=logits[: len(x)])
            log_p = z.log_softmax(dim=-1, dtype=torch.float32)  # (chunk, V)
            total -= (1 - smoothing) * log_p.gather(1, y).sum() + smoothing * log_p.mean(dim=-1).sum()
            if not training:
                continue
            # ∂loss/∂z = p - (1 - ε) · onehot(y) - ε/V
            gradient = log_p.exp_().sub_(smoothing / vocabulary)
            gradient = gradient.scatter_add_(1, y, gradient.new_full(y.shape, smoothing - 1)).to(precision)
            torch.mm(gradient, matrix, out=features_gradient[first : first + chunk])
            weight_gradient += gradient.t() @ x
        ctx.save_for_backward(features_gradient, weight_gradient)
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, Tensor, None, None]:
        features_gradient, weight_gradient = ctx.saved_tensors
        return features_gradient * scale, weight_gradient * scale, None, None


def smoothed_cross_entropy(features: Tensor, weight: Tensor, gold: Tensor, smoothing: float) -> Tensor:
    """The summed loss of predicting pieces ``gold`` (R,) from features (R, D) through the output matrix (V, D)."""
    return _SmoothedCrossEntropy.apply(features, weight, gold, smoothing)


class CrossEntropyObjective(nn.Module):
    """A model with the loss to train it by: one ``forward`` a batch, for data-parallel wrappers hook nothing else."""

    def __init__(self, model: Seq2Seq, label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, batch: Batch) -> Tensor:
        """The loss summed over the batch's real target pieces (``batch.target_tokens`` many)."""
        features = self.model.decode(self.model.encode(batch.source), batch.target_input)  # (B, T, D)
        real = (batch.target_output != PAD).flatten().nonzero().squeeze(1)  # (R,)
        return smoothed_cross_entropy(
            features.flatten(0, 1).index_select(0, real),
            self.model.output_weight,
            batch.target_output.flatten().index_select(0, real),
            self.label_smoothing if self.training else 0.0,
        )
