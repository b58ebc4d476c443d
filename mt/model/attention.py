"""Multi-head attention (Vaswani et al. 2017, section 3.2) and additive attention (Bahdanau et al. 2015), masks,
key/value cache, recording.

Shapes: B sentences, T queries, S keys, H heads, D width, d = D / H width of a head.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.data.tokenizer import PAD
from mt.device import eager_on_cpu
from mt.model.dropout import Dropout
from mt.model.linear import Linear


def padding_mask(pieces: Tensor) -> Tensor:
    """True where a key is a real piece: (B, S) → (B, 1, 1, S)."""
    return (pieces != PAD)[:, None, None, :]


def causal_mask(length: int, device: torch.device) -> Tensor:
    """True where a key stands no later than the query: (1, 1, T, T)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def mask_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to scores so that a softmax gives nothing where the mask is False: 0 and the lowest finite number,
    for -∞ would make NaN of a row that may see nothing."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, torch.finfo(dtype).min)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: nn.Module | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """softmax(QKᵀ / √d) V, written out.

    query (B, H, T, d), key and value (B, H, S, d), mask broadcastable to (B, H, T, S): True where attention may go.
    A query that may attend to nothing gets a zero vector. Returns the context (B, H, T, d), the weights and the masked
    scores before the softmax (both B, H, T, S).
    """
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)  # (B, H, T, S)
    if mask is not None:
        # A sum over the scores is a fraction of masked_fill's cost.
        scores = scores.add_(mask_bias(mask, scores.dtype))
    weights = scores.softmax(dim=-1)
    if mask is not None:
        sees_any = mask.any(dim=-1, keepdim=True)
        if not sees_any.all():
            weights = weights * sees_any
    used = weights if dropout is None else dropout(weights)
    return used.to(value.dtype) @ value, weights, scores


@dataclass(frozen=True)
class KeyValue:
    """Projected keys and values, each (N, H, S, d)."""

    key: Tensor
    value: Tensor

    def append(self, later: "KeyValue") -> "KeyValue":
        """One after the other along the positions."""
        return KeyValue(torch.cat([self.key, later.key], dim=2), torch.cat([self.value, later.value], dim=2))

    def select(self, rows: Tensor) -> "KeyValue":
        return KeyValue(self.key.index_select(0, rows), self.value.index_select(0, rows))


@dataclass(frozen=True)
class AttentionMap:
    """What one call of one attention saw: weights and, if asked for, the scores before the softmax (masked ones at
    about the lowest number); both (B, H, T, S)."""

    weights: Tensor
    scores: Tensor | None


class RecordableAttention(nn.Module):
    """Attention into which ``record_attention`` can look."""

    def __init__(self) -> None:
        super().__init__()
        self.recorder: _Recorder | None = None


class MultiHeadAttention(RecordableAttention):
    """Concat(head₁ … head_H) W^O with headᵢ = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V)."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.query = Linear(width, width)
        self.key = Linear(width, width)
        self.value = Linear(width, width)
        self.output = Linear(width, width)
        self.dropout = Dropout(dropout)
        for layer in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, D) → (B, H, T, d)

    def keys_and_values(self, x: Tensor) -> KeyValue:
        """(B, S, D) → what queries are compared with and what they get; computed once, used by many queries."""
        return KeyValue(self._split_heads(self.key(x)), self._split_heads(self.value(x)))

    def forward(self, x: Tensor, key_value: KeyValue, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Queries from x (B, T, D) look at S keys, as far as mask (broadcastable to B, H, T, S) allows; (B, T, D).

        With causal=True (and no mask), query t sees keys 0 … t.
        """
        query = self._split_heads(self.query(x))  # (B, H, T, d)
        # On CPUs the fused kernel's backward pass is slow on short sequences: the formula makes a step 25 % faster.
        explicit = self.recorder is not None or (self.training and eager_on_cpu(x))
        if explicit:
            if causal:
                mask = causal_mask(x.shape[1], x.device)
            context, weights, scores = scaled_dot_product_attention(
                query, key_value.key, key_value.value, mask, self.dropout
            )
            if self.recorder is not None:
                self.recorder.keep(weights, scores)
        else:
            probability = self.dropout.probability if self.training else 0.0
            context = functional.scaled_dot_product_attention(
                query, key_value.key, key_value.value, attn_mask=mask, dropout_p=probability, is_causal=causal
            )
        return self.output(context.transpose(1, 2).flatten(2))


class SingleHeadAttention(RecordableAttention):
    """What a recurrent decoder asks at every step; the keys are projected once a sentence, not once a step."""

    def __init__(self, query_width: int, key_width: int, width: int) -> None:
        super().__init__()
        self.query = Linear(query_width, width, bias=False)
        self.key = Linear(key_width, width, bias=False)
        for layer in (self.query, self.key):
            nn.init.xavier_uniform_(layer.weight)

    @abstractmethod
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """(B, K, Q) and projected keys (B, S, A) → (B, K, S)"""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """K queries (B, K, Q) to each sentence; projected keys (B, S, A), values (B, S, F), bias (B, 1, S) of
        ``mask_bias``. Returns the context (B, K, F), the weights and the masked scores (both B, K, S)."""
        scores = self.scores(query, keys) + bias
        weights = scores.softmax(dim=-1)
        return weights.to(values.dtype) @ values, weights, scores


class AdditiveAttention(SingleHeadAttention):
    """score(q, k) = vᵀ tanh(W_q q + W_k k) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_width: int, key_width: int, width: int) -> None:
        super().__init__(query_width, key_width, width)
        self.score = nn.Parameter(torch.empty(width).uniform_(-(width**-0.5), width**-0.5))  # v

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return torch.tanh(self.query(query)[:, :, None] + keys[:, None]) @ self.score


class DotAttention(SingleHeadAttention):
    """score(q, k) = (W_q q) · (W_k k) / √A: the general score of Luong et al. 2015 (section 3.1), scaled."""

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return (self.query(query) / math.sqrt(keys.shape[-1])) @ keys.transpose(1, 2)


class _Recorder:
    def __init__(self, with_scores: bool) -> None:
        self.with_scores = with_scores
        self.maps: list[AttentionMap] = []

    def keep(self, weights: Tensor, scores: Tensor) -> None:
        self.maps.append(AttentionMap(weights.detach(), scores.detach() if self.with_scores else None))


@contextmanager
def record_attention(model: nn.Module, with_scores: bool = False) -> Iterator[dict[str, list[AttentionMap]]]:
    """Inside it, every attention of the model keeps what it sees (and takes the explicit path to see it).

    Yields, for each attention by its module name (``decoder.layers.0.cross_attention``), one map a call.
    """
    attentions = {name: part for name, part in model.named_modules() if isinstance(part, RecordableAttention)}
    maps: dict[str, list[AttentionMap]] = {}
    for name, attention in attentions.items():
        attention.recorder = _Recorder(with_scores)
        maps[name] = attention.recorder.maps
    try:
        yield maps
    finally:
        for attention in attentions.values():
            attention.recorder = None
