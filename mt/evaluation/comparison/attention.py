"""Studies the attention of trained models: maps of single sentences, entropy, and the effect of dividing by √d."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from mt.config import ModelConfig, RNNAttentionConfig
from mt.core.columns import evenly_spaced_rows
from mt.evaluation.systems import EvaluationSet, Output
from mt.translation.results import SentenceAttention
from mt.translation.translator import Translator

MAX_RANK = 8
"""Number of largest weights per query that ``Scaling`` holds."""
HISTOGRAM_BINS = 120
MAX_MAP_BYTES = 150
"""Maximum length of source and reference in UTF-8 for an attention map: about 40 subwords, which can still be read."""


@dataclass(frozen=True)
class AttentionEntropy:
    """The entropy of each head of one attention module."""

    attention: str
    """Name of the attention module in the model."""
    entropy: list[float]
    """For each head, the entropy in nats, averaged over all queries. 0 means that all weight is on one token."""
    share_of_possible: list[float]
    """For each head, the entropy as a share of its maximum, ln(number of visible keys): the mean over the queries with
    several visible keys."""


@dataclass(frozen=True)
class Scaling:
    """Attention with and without the division of the products q·k by √d (Vaswani et al. 2017, section 3.2.1)."""

    key_width: int
    """d, the length of a key vector."""
    product_deviation: float
    """Standard deviation of the products q·k over all visible keys."""
    score_deviation: float
    """Standard deviation of q·k / √d over all visible keys."""
    product_weights: list[float]
    """The MAX_RANK largest weights of softmax(q·k), the largest first, averaged over the queries with several visible
    keys."""
    score_weights: list[float]
    """The MAX_RANK largest weights of softmax(q·k / √d), averaged likewise."""
    score_edges: list[float]
    """The HISTOGRAM_BINS + 1 bin edges of a histogram of q·k / √d. Multiplied by √d, they are those of q·k."""
    score_counts: list[int]
    """The number of scores in each bin."""


@dataclass(frozen=True)
class Study:
    """The attention of one model on some test sentences."""

    maps: list[SentenceAttention]
    """The attention maps of each shown sentence, computed with teacher forcing on the reference."""
    attention: list[AttentionEntropy]
    """The entropy of each attention module, in the order of the layers."""
    scaling: Scaling | None
    """None if the model does not divide by √d."""


def sentences_to_show(evaluation: EvaluationSet, differences: Sequence[float]) -> list[int]:
    """Choose up to three test sentences for attention maps, and return their indices, from 0.

    Among the sentences that are short enough for a legible map, they are one of median length, a long one, and the one
    with the largest difference in chrF2.

    Args:
        differences: For each test sentence, the difference in chrF2 between the first two systems.
    """
    pairs = zip(evaluation.sources or [], evaluation.references, strict=True)
    lengths = [max(len(text.encode()) for text in pair) if all(map(str.strip, pair)) else 0 for pair in pairs]
    legible = sorted(
        (row for row, length in enumerate(lengths) if 0 < length <= MAX_MAP_BYTES), key=lengths.__getitem__
    )
    if not legible:
        return []
    median, long = (legible[int(len(legible) * share)] for share in (0.5, 0.95))
    most_different = max(legible, key=lambda row: abs(differences[row]))
    return list(dict.fromkeys([median, long, most_different]))


def studied_rows(sources: Sequence[str], references: Sequence[str], max_rows: int) -> list[int]:
    """Return evenly spaced rows of the test set in which neither side is blank."""
    pairs = enumerate(zip(sources, references, strict=False))
    complete = [row for row, pair in pairs if all(map(str.strip, pair))]
    return [complete[index] for index in evenly_spaced_rows(len(complete), max_rows)]


def study_attention(
    output: Output, evaluation: EvaluationSet, shown: Sequence[int], rows: Sequence[int], device: str
) -> Study:
    """Load the model of an output, and record its attention on test sentences.

    Args:
        shown: Indices (from 0) of the test sentences whose maps are returned. Neither source nor reference is blank.
        rows: Indices of the test sentences that the statistics are computed on, likewise not blank.

    Returns:
        An empty study if ``output`` is a file, or if ``rows`` is empty.
    """
    sources, references = evaluation.sources, evaluation.references
    if not rows or output.model is None or sources is None:
        return Study([], [], None)
    translator = Translator.load(output.origin, device=device, asked=output.asked)
    maps, attentions = (
        [translator.attention(sources[row], references[row]) for row in own_rows] for own_rows in (shown, rows)
    )
    key_width = None if output.is_foreign else scaled_key_width(output.model.model)
    return Study(maps, _entropies(attentions), None if key_width is None else _scaling(attentions, key_width))


def scaled_key_width(config: ModelConfig) -> int | None:
    """Return the key width d if the model divides q·k by √d, otherwise None."""
    if isinstance(config, RNNAttentionConfig):
        return config.width if config.attention == "dot" else None
    return config.width // config.heads


def _entropies(attentions: Sequence[SentenceAttention]) -> list[AttentionEntropy]:
    """Compute the entropy of each attention module over all queries of some sentences."""
    result = []
    for name in attentions[0].maps:
        maps = [attention.maps[name] for attention in attentions]
        weights = (attention_map.weights[0].float() for attention_map in maps)  # (H, T, S) of each sentence
        entropy = -torch.cat(
            [torch.special.xlogy(each, each).sum(dim=-1) for each in weights], dim=1
        )  # (H, all queries)
        maximum = torch.cat([attention_map.mask[0].sum(dim=-1).float().log() for attention_map in maps], dim=1)
        has_choice = maximum > 0  # a query with one visible key has no choice and does not count
        share = (entropy / maximum.clamp_min(1e-9)).where(has_choice, 0).sum(dim=1) / has_choice.sum(dim=1).clamp_min(1)
        result.append(AttentionEntropy(name, entropy.mean(dim=1).tolist(), share.tolist()))
    return result


def _scaling(attentions: Sequence[SentenceAttention], key_width: int) -> Scaling:
    """Compute the effect of dividing by √key_width over all attention modules and some sentences."""
    root = math.sqrt(key_width)
    scores: list[Tensor] = []
    product_weights: list[Tensor] = []
    score_weights: list[Tensor] = []
    for attention_map in chain.from_iterable(attention.maps.values() for attention in attentions):
        visible = attention_map.mask
        products = (attention_map.scores * root).masked_fill(~visible, -math.inf)
        has_choice = visible.sum(dim=-1) > 1
        product_weights.append(_largest(products.softmax(dim=-1)[has_choice]))
        score_weights.append(_largest(attention_map.weights[has_choice]))
        scores.append(attention_map.scores[visible].float().cpu())
    values = torch.cat(scores)
    counts, edges = torch.histogram(values, HISTOGRAM_BINS)
    return Scaling(
        key_width,
        (values * root).std().item(),
        values.std().item(),
        torch.cat(product_weights).mean(dim=0).tolist(),
        torch.cat(score_weights).mean(dim=0).tolist(),
        edges.tolist(),
        counts.long().tolist(),
    )


def _largest(weights: Tensor) -> Tensor:
    """Return the MAX_RANK largest weights of each row of (N, S), in falling order: (N, MAX_RANK), padded with zeros."""
    largest = weights.float().topk(min(MAX_RANK, weights.shape[-1]), dim=-1).values
    return nn.functional.pad(largest, (0, MAX_RANK - largest.shape[-1]))
