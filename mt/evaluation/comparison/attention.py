"""Attention of trained models: maps of single sentences, and entropy."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mt.evaluation.systems import EvaluationSet, Output
from mt.models.attention import AttentionMap
from mt.translation.results import SentenceAttention
from mt.translation.translator import Translator

MASKED = -1e30
"""Scores below this belong to masked positions."""


@dataclass(frozen=True)
class AttentionEntropy:
    """The entropy of the heads of one layer's attention."""

    attention: str
    """Module name of the attention."""
    entropy: list[float]
    """Entropy in nats, for each head the mean over all queries. 0 means that all weight is on one piece."""
    share_of_possible: list[float]
    """The entropy as a share of the largest possible one, ln(number of pieces that the query may see), for each head
    the mean over all queries that may see more than one."""


@dataclass(frozen=True)
class Study:
    """The attention of one model on some sentences."""

    maps: list[SentenceAttention]
    """The attention on each shown sentence, computed with the reference as the target."""
    attention: list[AttentionEntropy]
    """One for each attention of the model."""


def study(
    output: Output, evaluation: EvaluationSet, shown: Sequence[int], studied: Sequence[int], device: str
) -> Study:
    """Record the attention of a model on test sentences.

    Args:
        shown: Numbers (from 0) of the test sentences for maps, none of them blank.
        studied: Numbers of the test sentences for the statistics, likewise.

    Returns:
        An empty study if ``output`` is a file, or if ``studied`` is empty.
    """
    sources, references = evaluation.sources, evaluation.references
    if not studied or output.model is None or sources is None:
        return Study([], [])
    translator = Translator.load(output.origin, device=device)
    maps = [translator.attention(sources[row], references[row]) for row in shown]
    return Study(
        maps, _entropies([translator.attention(sources[row], references[row], with_scores=True) for row in studied])
    )


def mean_cross_attention(attention: SentenceAttention) -> Tensor:
    """Return the mean (T, S) of all heads of all layers."""
    return torch.stack([heads.mean(dim=0) for heads in attention.cross()]).mean(dim=0)


def _entropy(weights: Tensor) -> Tensor:
    """Return the entropy (…) of weights (…, S) in nats."""
    return -torch.special.xlogy(weights, weights).sum(dim=-1)


def _entropies(attentions: Sequence[SentenceAttention]) -> list[AttentionEntropy]:
    result = []
    for name in attentions[0].maps:
        maps = [attention.maps[name] for attention in attentions]
        entropy = torch.cat([_entropy(each.weights[0].float()) for each in maps], dim=1)  # (H, all queries)
        maximum = torch.cat([_visible(each)[0].sum(dim=-1).float().log() for each in maps], dim=1)
        choice = maximum > 0  # a query that may see only one piece has no choice and is left out
        share = (entropy / maximum.clamp_min(1e-9)).where(choice, 0).sum(dim=1) / choice.sum(dim=1).clamp_min(1)
        result.append(AttentionEntropy(name, entropy.mean(dim=1).tolist(), share.tolist()))
    return result


def _visible(attention: AttentionMap) -> Tensor:
    """Return which keys each query may see: (1, H, T, S)."""
    assert attention.scores is not None
    return attention.scores > MASKED
