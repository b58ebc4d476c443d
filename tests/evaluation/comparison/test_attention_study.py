"""Entropy against its definition."""

import math

import pytest
import torch

from mt.evaluation.comparison.attention import _entropies
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
