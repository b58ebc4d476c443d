"""Attention of trained models: maps of single sentences, entropy, and the effect of the division by √d."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mt.config import ModelConfig, TransformerConfig
from mt.evaluation.systems import EvaluationSet, Output
from mt.models.attention import AttentionMap
from mt.translation.results import SentenceAttention
from mt.translation.translator import Translator

MIN_ALIGNMENT_WEIGHT = 0.15
"""Weight from which a source piece is shown in an alignment."""
MAX_SAMPLE = 20_000
"""Scores that a histogram is drawn from."""
RANKS = 8
"""Number of weights per query that are reported, the largest first."""
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
class Scaling:
    """The articles' experiment on the user's own model: the softmax of q·k with and without the division by √d."""

    key_width: int
    raw_deviation: float
    """Standard deviation of q·k."""
    scaled_deviation: float
    """Standard deviation of q·k / √d."""
    raw_weights: list[float]
    """The largest weight of the softmax of q·k, the second largest, and so on: RANKS means over the queries that may
    see more than one piece."""
    scaled_weights: list[float]
    """The same for the softmax of q·k / √d."""
    raw_sample: list[float]
    """At most MAX_SAMPLE values of q·k, for a histogram."""
    scaled_sample: list[float]
    """The same values of q·k / √d."""


@dataclass(frozen=True)
class Study:
    """The attention of one model on some sentences."""

    maps: list[SentenceAttention]
    """The attention on each shown sentence, computed with the reference as the target."""
    alignments: list[str]
    """For each shown sentence, the pieces of the model's own translation with the most attended source pieces."""
    attention: list[AttentionEntropy]
    """One for each attention of the model."""
    scaling: Scaling | None
    """None for models whose attention does not divide by √d."""


def study(output: Output, evaluation: EvaluationSet, rows: Sequence[int], studied: Sequence[int], device: str) -> Study:
    """Record the attention of a model on test sentences.

    Args:
        rows: Numbers (from 0) of the test sentences for maps and alignments, none of them blank.
        studied: Numbers of the test sentences for the statistics, likewise.

    Returns:
        An empty study if ``output`` is a file, or if ``studied`` is empty.
    """
    model, sources, references = output.model, evaluation.sources, evaluation.references
    if not studied or model is None or sources is None:
        return Study([], [], [], None)
    translator = Translator.load(output.origin, device=device)
    maps = [translator.attention(sources[row], references[row]) for row in rows]
    own = [translator.attention(sources[row], output.hypotheses[row]) for row in rows]
    attentions = [translator.attention(sources[row], references[row], with_scores=True) for row in studied]
    key_width = _divided_by_root_of(model.model)
    scaling = None if key_width is None else _scaling(attentions, key_width)
    return Study(maps, [alignment(attention) for attention in own], _entropies(attentions), scaling)


def _divided_by_root_of(model: ModelConfig) -> int | None:
    """Return d if the model's attention divides its query-key products by √d, otherwise None."""
    if isinstance(model, TransformerConfig):
        return model.width // model.heads
    return model.width if model.attention == "dot" else None


def mean_cross_attention(attention: SentenceAttention) -> Tensor:
    """Return the mean (T, S) of all heads of all layers."""
    return torch.stack([heads.mean(dim=0) for heads in attention.cross()]).mean(dim=0)


def alignment(attention: SentenceAttention) -> str:
    """Return a line per target piece with its most attended source pieces, in the mean of all heads and layers."""
    lines = []
    for piece, row in zip(attention.target_pieces, mean_cross_attention(attention).tolist(), strict=True):
        ranked = sorted(zip(row, attention.source_pieces, strict=True), reverse=True)
        pairs = [pair for pair in ranked[:3] if pair[0] >= MIN_ALIGNMENT_WEIGHT] or ranked[:1]
        lines.append(f"{piece} ← " + ", ".join(f"{source} {weight:.2f}" for weight, source in pairs))
    return "\n".join(lines)


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


def _scaling(attentions: Sequence[SentenceAttention], key_width: int) -> Scaling:
    root = math.sqrt(key_width)
    scaled, raw_weights, scaled_weights = [], [], []
    for attention in (each for sentence in attentions for each in sentence.maps.values()):
        assert attention.scores is not None
        visible = _visible(attention)
        raw = (attention.scores * root).masked_fill(~visible, -math.inf)
        several = visible.sum(dim=-1) > 1
        raw_weights.append(_ranked(raw.softmax(dim=-1)[several]))
        scaled_weights.append(_ranked(attention.weights[several]))
        scaled.append(attention.scores[visible])
    values = torch.cat(scaled)
    sample = values[:: math.ceil(len(values) / MAX_SAMPLE)]
    return Scaling(
        key_width,
        (values * root).std().item(),
        values.std().item(),
        torch.cat(raw_weights).mean(dim=0).tolist(),
        torch.cat(scaled_weights).mean(dim=0).tolist(),
        (sample * root).tolist(),
        sample.tolist(),
    )


def _ranked(weights: Tensor) -> Tensor:
    """Return the RANKS largest weights of each row of (N, S), the largest first: (N, RANKS), padded with zeros."""
    largest = weights.float().topk(min(RANKS, weights.shape[-1]), dim=-1).values
    return nn.functional.pad(largest, (0, RANKS - largest.shape[-1]))
