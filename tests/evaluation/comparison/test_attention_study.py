"""Entropy and scaling against their definitions."""

import math

import pytest
import torch

from mt.config import RNNAttentionConfig, TransformerConfig
from mt.evaluation.comparison.attention import MAX_RANK, _entropies, _scaling, scaled_key_width
from mt.models.attention import AttentionMap
from mt.translation.results import SentenceAttention

LOWEST = torch.finfo(torch.float32).min


def _attention(scores):
    """One head's attention from raw scores (T, S)."""
    weights = scores.softmax(dim=-1)
    maps = {"decoder.layers.0.cross_attention": AttentionMap(weights[None, None], scores[None, None])}
    return SentenceAttention([f"s{n}" for n in range(scores.shape[1])], [f"t{n}" for n in range(scores.shape[0])], maps)


def test_entropies_of_even_and_sharp_attention():
    even = _attention(torch.zeros(3, 4))
    (spread,) = _entropies([even, _attention(torch.zeros(1, 8))])
    assert spread.entropy == pytest.approx([(3 * math.log(4) + math.log(8)) / 4])
    assert spread.share_of_possible == pytest.approx([1])
    (spread,) = _entropies([_attention(torch.tensor([[100.0, 0.0, 0.0]]))])
    assert spread.entropy == pytest.approx([0], abs=1e-6)


def test_scaling_compares_weights_with_and_without_division():
    torch.manual_seed(0)
    scores = torch.randn(50, 20)
    study = _scaling([_attention(scores)], key_width=16)
    assert study.score_deviation == pytest.approx(1, rel=0.05)
    assert study.product_deviation == pytest.approx(4 * study.score_deviation)
    ranked = scores.softmax(-1).sort(descending=True).values.mean(dim=0)[:MAX_RANK]
    assert study.score_weights == pytest.approx(ranked.tolist())
    assert study.product_weights[0] == pytest.approx((4 * scores).softmax(-1).amax(-1).mean().item())
    assert sum(study.score_counts) == 1000 and study.score_edges[0] == pytest.approx(scores.min().item())
    few = _scaling([_attention(torch.zeros(5, 2))], key_width=16)
    assert few.product_weights == few.score_weights == [0.5, 0.5] + [0.0] * (MAX_RANK - 2)


def test_entropies_and_scaling_ignore_masked_scores():
    causal = _attention(torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), LOWEST))
    (spread,) = _entropies([causal])
    assert spread.share_of_possible == pytest.approx([1])
    study = _scaling([causal], key_width=4)
    assert sum(study.score_counts) == 10 and study.score_deviation == 0


def test_scaled_key_width():
    assert scaled_key_width(TransformerConfig(architecture="transformer", width=64, heads=4)) == 16
    assert scaled_key_width(RNNAttentionConfig(architecture="rnn_attention", width=64, attention="dot")) == 64
    assert scaled_key_width(RNNAttentionConfig(architecture="rnn_attention", width=64)) is None
