"""Attention against its definition, against PyTorch's, and what its masks must guarantee."""

import itertools

import pytest
import torch
from torch.nn import functional

from mt.models.attention import (
    AdditiveAttention,
    DotAttention,
    MultiHeadAttention,
    record_attention,
    scaled_dot_product_attention,
)
from tests.models.pairs import copy_attention


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def _queries_keys_values(sentences=3, heads=2, targets=5, sources=7, width=4):
    return (
        torch.randn(sentences, heads, targets, width),
        torch.randn(sentences, heads, sources, width),
        torch.randn(sentences, heads, sources, width),
    )


@pytest.mark.parametrize("kind", [AdditiveAttention, DotAttention])
def test_single_head_scores_equal_formula(kind):
    attention = kind(3, 5, 4)
    queries, features = torch.randn(2, 3, 3), torch.randn(2, 7, 5)
    scores = attention.scores(queries, attention.key(features))
    for b, k, s in itertools.product(range(2), range(3), range(7)):
        q, key = attention.query.weight @ queries[b, k], attention.key.weight @ features[b, s]
        expected = attention.score @ torch.tanh(q + key) if kind is AdditiveAttention else q @ key / 2
        assert torch.isclose(scores[b, k, s], expected, atol=1e-6)


def test_scaled_dot_product_attention_equals_fused_kernel():
    query, key, value = _queries_keys_values()
    mask = torch.rand(3, 1, 5, 7) < 0.6
    mask[1, :, 2] = False  # fully masked
    mask[2] = False
    explicit, weights, _ = scaled_dot_product_attention(query, key, value, mask)
    fused = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert torch.allclose(explicit, fused, atol=1e-6)
    assert explicit[2].abs().max() == 0
    assert weights[1, :, 2].abs().max() == 0


@pytest.mark.parametrize("training", [True, False])
def test_multi_head_attention_equals_pytorch(training):
    ours = MultiHeadAttention(width=12, heads=3).train(training)
    theirs = torch.nn.MultiheadAttention(12, 3, batch_first=True).train(training)
    copy_attention(ours, theirs)
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    mask = real[:, None, None]
    expected, expected_weights = theirs(x, memory, memory, key_padding_mask=~real, average_attn_weights=False)
    assert torch.allclose(ours(x, ours.keys_and_values(memory), mask), expected, atol=1e-6)
    with record_attention(ours) as maps:
        assert torch.allclose(ours(x, ours.keys_and_values(memory), mask), expected, atol=1e-6)
    (seen,) = maps[""]
    assert torch.allclose(seen.weights, expected_weights, atol=1e-6)
    assert torch.allclose(seen.scores.softmax(dim=-1), expected_weights, atol=1e-6)


def test_record_attention_ends_with_its_context():
    attention = MultiHeadAttention(width=8, heads=2)
    x = torch.randn(1, 3, 8)
    with record_attention(attention) as maps:
        pass
    attention(x, attention.keys_and_values(x))
    assert maps == {"": []}
