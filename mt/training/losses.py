"""The losses of training, as functions of log-probabilities, with their derivatives.

With p the model's distribution over V subwords and y the next subword of the reference, the label-smoothed
cross-entropy (Szegedy et al. 2016, section 7) is (1 - ε) · (-log p(y)) + ε · mean over all v of (-log p(v)).
Consistency training predicts every subword twice, and adds α times the divergence of the two predicted distributions.
For the second prediction, SimCut (Gao et al. 2022) sets some embeddings to zero, and R-Drop (Liang et al. 2021) draws
another dropout mask.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

LossAndGradients = tuple[Tensor, Callable[[], list[Tensor]]]
"""The losses of R rows (R, 1), and a function that returns their derivatives (R, V) with respect to the logits of each
prediction. The function may overwrite the log-probabilities, so call it once."""
Loss = Callable[[Sequence[Tensor], Tensor], LossAndGradients]
"""A loss function. Arguments: log-probabilities (R, V) of each prediction, and the ids of the gold subwords (R, 1)."""


@dataclass(frozen=True)
class CrossEntropy:
    """The loss function for one prediction: cross-entropy with label smoothing."""

    smoothing: float
    """ε of label smoothing."""

    def __call__(self, log_p: Sequence[Tensor], gold: Tensor) -> LossAndGradients:
        (a,), smoothing = log_p, self.smoothing
        return _cross_entropy(a, gold, smoothing), lambda: [_cross_entropy_gradient(a.exp_(), gold, smoothing)]


def simcut(smoothing: float, alpha: float) -> Loss:
    """Return the loss function for a plain prediction and one with cut embeddings (Gao et al. 2022, equation 4).

    It is the cross-entropy of the plain prediction + α · KL(plain ‖ cut). Gradients flow through both predictions.
    """

    def loss(log_p: Sequence[Tensor], gold: Tensor) -> LossAndGradients:
        a, b = log_p
        difference, p, q = a - b, a.exp(), b.exp()
        divergence = (p * difference).sum(dim=-1, keepdim=True)  # (R, 1)

        def gradients() -> list[Tensor]:
            # ∂KL/∂logits: p · (log p - log q - KL) for the plain prediction, q - p for the cut one
            plain = difference.sub_(divergence).mul_(p).mul_(alpha).add_(p)
            return [_cross_entropy_gradient(plain, gold, smoothing), q.sub_(p).mul_(alpha)]

        return _cross_entropy(a, gold, smoothing) + alpha * divergence, gradients

    return loss


def r_drop(smoothing: float, alpha: float) -> Loss:
    """Return the loss function for two predictions with different dropout masks (Liang et al. 2021).

    It is the mean cross-entropy of the two + α/4 · (KL(first ‖ second) + KL(second ‖ first)), half of equation 4, so
    that each subword counts once.
    """

    def loss(log_p: Sequence[Tensor], gold: Tensor) -> LossAndGradients:
        a, b = log_p
        difference, p, q = a - b, a.exp(), b.exp()
        kl_ab = (p * difference).sum(dim=-1, keepdim=True)  # (R, 1)
        kl_ba = -(q * difference).sum(dim=-1, keepdim=True)

        def gradients() -> list[Tensor]:
            first = (difference - kl_ab).mul_(p).add_(p).sub_(q).mul_(alpha / 4)
            second = difference.neg_().sub_(kl_ba).mul_(q).add_(q).sub_(p).mul_(alpha / 4)
            first.add_(_cross_entropy_gradient(p, gold, smoothing), alpha=0.5)
            second.add_(_cross_entropy_gradient(q, gold, smoothing), alpha=0.5)
            return [first, second]

        likelihoods = (_cross_entropy(a, gold, smoothing) + _cross_entropy(b, gold, smoothing)) / 2
        return likelihoods + alpha / 4 * (kl_ab + kl_ba), gradients

    return loss


def _cross_entropy(log_p: Tensor, gold: Tensor, smoothing: float) -> Tensor:
    """Return the label-smoothed cross-entropy of each row (R, 1), given log p (R, V) and gold subwords (R, 1)."""
    return -((1 - smoothing) * log_p.gather(1, gold) + smoothing * log_p.mean(dim=-1, keepdim=True))


def _cross_entropy_gradient(p: Tensor, gold: Tensor, smoothing: float) -> Tensor:
    """Overwrite p (R, V) with ∂cross-entropy/∂logits = p - (1 - ε) · onehot(gold) - ε/V. Return it. ``gold`` is (R,
    1)."""
    return p.sub_(smoothing / p.shape[1]).scatter_add_(1, gold, p.new_full(gold.shape, smoothing - 1))
