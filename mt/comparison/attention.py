"""How attention looks: maps of single sentences, how spread it is, and what the division by √d does to it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mt.comparison.systems import EvaluationSet, Output
from mt.config import ModelConfig, TransformerConfig
from mt.translation.translator import Attention, Translator

ALIGNED = 0.15
"""Least weight of a source piece that is shown in an alignment."""
SAMPLE = 20_000
"""Scores at most that a histogram is drawn from."""
RANKS = 8
"""Weights of a query that are told, the largest first."""
MASKED = -1e30
"""Scores below are of places that may not be seen."""


@dataclass(frozen=True)
class Spread:
    """How spread the heads of one layer's attention are."""

    attention: str
    """Module name."""
    entropy: list[float]
    """Nats, for each head the mean over all queries; 0: all weight on one piece."""
    share_of_possible: list[float]
    """The same as a share of the most that is possible, ln(pieces that may be seen)."""


@dataclass(frozen=True)
class Scaling:
    """The articles' experiment on the user's own model: softmax of q·k with and without the division by √d."""

    key_width: int
    raw_deviation: float
    """Standard deviation of q·k."""
    scaled_deviation: float
    raw_weights: list[float]
    """Of a softmax of q·k, the largest weight, the second largest …, each the mean over queries."""
    scaled_weights: list[float]
    raw_sample: list[float]
    scaled_sample: list[float]


@dataclass(frozen=True)
class Study:
    """What one model's attention does on some sentences."""

    maps: list[Attention]
    """One for each shown sentence, read back with the reference as translation."""
    alignments: list[str]
    """The model's own translation of each shown sentence, each piece with the source pieces it looked at."""
    spreads: list[Spread]
    scaling: Scaling | None
    """None for models whose attention divides nothing."""


def study(
    output: Output, evaluation: EvaluationSet, shown: Sequence[int], studied: Sequence[int], device: str
) -> Study:
    """Looks into a run's model at the test sentences with these numbers (from 0), none of them blank. Of a file nothing
    can be seen."""
    run, sources, references = output.run, evaluation.sources, evaluation.references
    if not studied or run is None or sources is None:
        return Study([], [], [], None)
    translator = Translator.load(run.folder, device=device)
    maps = [translator.attention(sources[row], references[row]) for row in shown]
    own = [translator.attention(sources[row], output.hypotheses[row]) for row in shown]
    seen = [translator.attention(sources[row], references[row], with_scores=True) for row in studied]
    key_width = _divided_by_root_of(run.config.model)
    scaling = None if key_width is None else _scaling(seen, key_width)
    return Study(maps, [alignment(one) for one in own], _spreads(seen), scaling)


def _divided_by_root_of(model: ModelConfig) -> int | None:
    """d, if the model's attention divides its products by √d."""
    if isinstance(model, TransformerConfig):
        return model.width // model.heads
    return model.width if model.attention == "dot" else None


def alignment(attention: Attention) -> str:
    """Each target piece with the source pieces it looked at, by the mean of all heads and layers."""
    weights = torch.stack([layer.mean(dim=0) for layer in attention.cross()]).mean(dim=0)  # (T, S)
    lines = []
    for piece, row in zip(attention.target_pieces, weights.tolist(), strict=True):
        ranked = sorted(zip(row, attention.source_pieces, strict=True), reverse=True)
        looked_at = [pair for pair in ranked[:3] if pair[0] >= ALIGNED] or ranked[:1]
        lines.append(f"{piece} ← " + ", ".join(f"{source} {weight:.2f}" for weight, source in looked_at))
    return "\n".join(lines)


def _entropy(weights: Tensor) -> Tensor:
    """(…, S) → (…), in nats"""
    return -torch.special.xlogy(weights, weights).sum(dim=-1)


def _spreads(seen: Sequence[Attention]) -> list[Spread]:
    spreads = []
    for name in seen[0].maps:
        entropies, most = [], []
        for one in seen:
            weights = one.maps[name].weights[0].float()  # (H, T, S)
            scores = one.maps[name].scores
            assert scores is not None
            visible = (scores[0] > MASKED).sum(dim=-1).float()  # (H, T)
            entropies.append(_entropy(weights))
            most.append(visible.log())
        entropy, possible = torch.cat(entropies, dim=1), torch.cat(most, dim=1)  # (H, all queries)
        choice = possible > 0  # who may see one piece only has no choice
        share = (entropy / possible.clamp_min(1e-9)).where(choice, 0).sum(dim=1) / choice.sum(dim=1).clamp_min(1)
        spreads.append(Spread(name, entropy.mean(dim=1).tolist(), share.tolist()))
    return spreads


def _scaling(seen: Sequence[Attention], key_width: int) -> Scaling:
    scaled: list[Tensor] = []
    raw_weights: list[Tensor] = []
    scaled_weights: list[Tensor] = []
    root = math.sqrt(key_width)
    for one in seen:
        for attention_map in one.maps.values():
            scores = attention_map.scores
            assert scores is not None
            visible = scores > MASKED
            raw = (scores * root).masked_fill(~visible, -math.inf)
            several = visible.sum(dim=-1) > 1
            raw_weights.append(_ranked(raw.softmax(dim=-1)[several]))
            scaled_weights.append(_ranked(attention_map.weights[several]))
            scaled.append(scores[visible])
    values = torch.cat(scaled)
    sample = values[:: math.ceil(len(values) / SAMPLE)]
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
    """(N, S) → the RANKS largest of each row, in order: (N, RANKS)"""
    largest = weights.float().topk(min(RANKS, weights.shape[-1]), dim=-1).values
    return nn.functional.pad(largest, (0, RANKS - largest.shape[-1]))
