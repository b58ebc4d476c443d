"""Entropy and scaling against their definitions."""

import math

import pytest
import torch

from mt.config import RNNAttentionConfig, TransformerConfig
from mt.evaluation.comparison.attention import (
    MIN_ALIGNMENT_WEIGHT,
    RANKS,
    _divided_by_root_of,
    _entropies,
    _scaling,
    alignment,
)
from mt.models.attention import AttentionMap
from mt.translation.results import SentenceAttention

LOWEST = torch.finfo(torch.float32).min


def _attention(scores):
    """One head's attention from raw scores (T, S)."""
    weights = scores.softmax(dim=-1)
    maps = {"decoder.layers.0.cross_attention": AttentionMap(weights[None, None], scores[None, None])}
    return SentenceAttention([f"s{n}" for n in range(scores.shape[1])], [f"t{n}" for n in range(scores.shape[0])], maps)


def test_entropy_of_even_and_of_sharp_attention():
    even = _attention(torch.zeros(3, 4))
    (spread,) = _entropies([even, _attention(torch.zeros(1, 8))])
    assert spread.entropy == pytest.approx([(3 * math.log(4) + math.log(8)) / 4])
    assert spread.share_of_possible == pytest.approx([1])
    (spread,) = _entropies([_attention(torch.tensor([[100.0, 0.0, 0.0]]))])
    assert spread.entropy == pytest.approx([0], abs=1e-6)


def test_what_may_not_be_seen_does_not_count_as_possible():
    causal = torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), LOWEST)
    (spread,) = _entropies([_attention(causal)])
    assert spread.share_of_possible == pytest.approx([1])


def test_scaling_is_undone_and_compared():
    torch.manual_seed(0)
    scores = torch.randn(50, 20)
    found = _scaling([_attention(scores)], key_width=16)
    assert found.scaled_deviation == pytest.approx(1, rel=0.05)
    assert found.raw_deviation == pytest.approx(4 * found.scaled_deviation)
    ranked = scores.softmax(-1).sort(descending=True).values.mean(dim=0)[:RANKS]
    assert found.scaled_weights == pytest.approx(ranked.tolist())
    assert len(found.scaled_sample) == 1000
    assert found.raw_weights[0] == pytest.approx((4 * scores).softmax(-1).amax(-1).mean().item())
    few = _scaling([_attention(torch.zeros(5, 2))], key_width=16)
    assert few.raw_weights == few.scaled_weights == [0.5, 0.5] + [0.0] * (RANKS - 2)


def test_alignments_name_the_pieces_with_most_weight():
    text = alignment(_attention(torch.tensor([[3.0, 0.0, 2.5], [0.0, 5.0, 0.0], [0.0, 0.0, 0.0]]))).splitlines()
    assert text[0].startswith("t0 ← s0 0.6") and ", s2 0.3" in text[0] and "s1" not in text[0]
    assert text[1].startswith("t1 ← s1 0.9") and "," not in text[1]
    assert text[2].count("0.33") == 3 and MIN_ALIGNMENT_WEIGHT < 1 / 3


def test_of_very_many_scores_a_sample_is_drawn():
    found = _scaling([_attention(torch.randn(400, 200))], key_width=4)
    assert 15_000 < len(found.raw_sample) <= 20_000


def test_whose_products_are_divided_by_a_root():
    assert _divided_by_root_of(TransformerConfig(architecture="transformer", width=64, heads=4)) == 16
    assert _divided_by_root_of(RNNAttentionConfig(architecture="rnn_attention", width=64, attention="dot")) == 64
    assert _divided_by_root_of(RNNAttentionConfig(architecture="rnn_attention", width=64)) is None
