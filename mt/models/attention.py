"""Multi-head attention (Vaswani et al. 2017, section 3.2), single-head attention for recurrent decoders (Bahdanau et
al. 2015, Luong et al. 2015), masks, and recording of attention maps.

Shapes: B sentences, T queries, S keys, H heads, D width, d = D / H width of a head.
"""

import math
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.core.device import eager_on_cpu
from mt.models.layers import Dropout, Linear, initialize


def mask_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the attention bias of a mask: 0 where it is True, the lowest finite number where it is False.

    With -∞, the softmax of a query whose keys are all masked would be NaN.
    """
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, torch.finfo(dtype).min)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: nn.Module | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute softmax(QKᵀ / √d) V operation by operation, without a fused kernel.

    Args:
        query: (B, H, T, d).
        key, value: (B, H, S, d).
        mask: Broadcastable to (B, H, T, S), True where a query may attend to a key. A query whose keys are all masked
            gets a zero vector.
        dropout: Module that is applied to the weights.

    Returns:
        The context (B, H, T, d), the weights before dropout (B, H, T, S), and the masked scores before the softmax
        (B, H, T, S).
    """
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)  # (B, H, T, S)
    if mask is not None:
        # Adding a bias is several times faster than masked_fill.
        scores = scores.add_(mask_bias(mask, scores.dtype))
    weights = scores.softmax(dim=-1)
    if mask is not None:
        has_key = mask.any(dim=-1, keepdim=True)
        if not has_key.all():
            weights = weights * has_key
    used = weights if dropout is None else dropout(weights)
    return used.to(value.dtype) @ value, weights, scores


MASKED = -1e30
"""Attention scores at masked positions are below this."""
KeyValue = tuple[Tensor, ...]
"""Projected keys and values, each (N, H, S, d)."""


class AttentionMap(NamedTuple):
    """The recorded attention of one call of an attention module."""

    weights: Tensor
    """(B, H, T, S), before dropout."""
    scores: Tensor
    """(B, H, T, S), before the softmax. Masked scores are close to the lowest finite number."""

    @property
    def mask(self) -> Tensor:
        """The mask (B, H, T, S), true for the keys that a query may attend to."""
        return self.scores > MASKED


class RecordableAttention(nn.Module):
    """Base class of attention modules that ``record_attention`` can record."""

    recorder: "_Recorder | None" = None

    def active_recorder(self) -> "_Recorder | None":
        """Return the recorder if ``record_attention`` is active in this thread, otherwise None."""
        recorder = self.recorder
        return recorder if recorder is not None and recorder.thread == threading.get_ident() else None


class MultiHeadAttention(RecordableAttention):
    """Multi-head attention: Concat(head₁ … head_H) W^O with headᵢ = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V)."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.query = Linear(width, width)
        self.key = Linear(width, width)
        self.value = Linear(width, width)
        self.output = Linear(width, width)
        self.dropout = Dropout(dropout)
        initialize(self.query, self.key, self.value, self.output)

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, D) → (B, H, T, d)

    def keys_and_values(self, x: Tensor) -> KeyValue:
        """Project x (B, S, D) to keys and values, each (B, H, S, d), for ``forward``."""
        return self._split_heads(self.key(x)), self._split_heads(self.value(x))

    def forward(self, x: Tensor, key_value: KeyValue, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Attend from queries, projected from x, to keys. Return (B, T, D).

        Args:
            x: (B, T, D).
            key_value: Keys and values from ``keys_and_values``.
            mask: Broadcastable to (B, H, T, S), True where a query may attend to a key.
            causal: Whether query t attends only to keys 0 … t. ``mask`` must be None in this case.
        """
        query = self._split_heads(self.query(x))  # (B, H, T, d)
        key, value = key_value
        # On CPUs, the fused kernel's backward pass is slow on short sequences: training is 25 % faster without it.
        recorder = self.active_recorder()
        if recorder is not None or (self.training and eager_on_cpu(x)):
            if causal:
                length = x.shape[1]
                mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()  # (T, T)
            context, weights, scores = scaled_dot_product_attention(query, key, value, mask, self.dropout)
            if recorder is not None:
                recorder.record(weights, scores)
        else:
            probability = self.dropout.probability if self.training else 0.0
            context = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, dropout_p=probability, is_causal=causal
            )
        return self.output(context.transpose(1, 2).flatten(2))


class SingleHeadAttention(RecordableAttention):
    """Base class of single-head attention for recurrent decoders. Queries and keys have A (``width``) features.

    ``forward`` projects the queries; the caller projects the keys with ``key``, once per sentence.
    """

    def __init__(self, query_width: int, key_width: int, width: int) -> None:
        super().__init__()
        self.query = Linear(query_width, width, bias=False)
        self.key = Linear(key_width, width, bias=False)
        for layer in (self.query, self.key):
            nn.init.xavier_uniform_(layer.weight)

    @abstractmethod
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Return the scores (B, K, S), before masking, of queries (B, K, Q) and projected keys (B, S, A)."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from K queries to the S positions of each sentence.

        Args:
            query: Queries (B, K, Q), not yet projected.
            keys: Keys (B, S, A), projected by ``key``.
            values: (B, S, F).
            bias: (B, 1, S), the ``mask_bias`` of the padding.

        Returns:
            The context (B, K, F), the weights (B, K, S) and the masked scores (B, K, S).
        """
        scores = self.scores(query, keys) + bias
        weights = scores.softmax(dim=-1)
        return weights.to(values.dtype) @ values, weights, scores


class AdditiveAttention(SingleHeadAttention):
    """Additive attention: score(q, k) = vᵀ tanh(W_q q + W_k k) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_width: int, key_width: int, width: int) -> None:
        super().__init__(query_width, key_width, width)
        self.score = nn.Parameter(torch.empty(width).uniform_(-(width**-0.5), width**-0.5))  # v

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return torch.tanh(self.query(query)[:, :, None] + keys[:, None]) @ self.score


class DotAttention(SingleHeadAttention):
    """Scaled dot-product attention: score(q, k) = (W_q q) · (W_k k) / √A, the general score of Luong et al. 2015
    (section 3.1) divided by √A."""

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return (self.query(query) / math.sqrt(keys.shape[-1])) @ keys.transpose(1, 2)


_RECORDING = threading.RLock()


class _LastMapRecorded(Exception):
    """Raised to leave the block of ``record_attention`` early."""


class _Recorder:
    """Collects the attention maps of one module, only from calls in the thread that created the recorder."""

    def __init__(self, is_last: bool) -> None:
        self.is_last = is_last
        self.thread = threading.get_ident()
        self.maps: list[AttentionMap] = []

    def record(self, weights: Tensor, scores: Tensor) -> None:
        self.maps.append(AttentionMap(weights.detach(), scores.detach()))
        if self.is_last:
            raise _LastMapRecorded


@contextmanager
def record_attention(model: nn.Module, last: str | None = None) -> Iterator[dict[str, list[AttentionMap]]]:
    """Context manager: record the weights and scores of every attention module of a model.

    Attention is computed without the fused kernel in the recording thread. Calls in other threads are not recorded.
    Only one thread records at a time; others wait.

    Args:
        model: The model.
        last: The name of an attention module. After its first map, the rest of the computation is skipped, and the
            block is left.

    Yields:
        Name of the attention module, such as ``decoder.layers.0.cross_attention`` → its maps so far, one for each call.
    """
    attentions = {name: part for name, part in model.named_modules() if isinstance(part, RecordableAttention)}
    with _RECORDING:
        recorders = {name: _Recorder(name == last) for name in attentions}
        for name, attention in attentions.items():
            attention.recorder = recorders[name]
        try:
            yield {name: recorder.maps for name, recorder in recorders.items()}
        except _LastMapRecorded:
            pass
        finally:
            for attention in attentions.values():
                attention.recorder = None
