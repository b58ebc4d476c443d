"""Attention within the sentences of packed rows, which stand one after another without padding.

Shapes: N query rows and M key rows (tokens of all sentences), H heads, d width of a head, B sentences. The offsets of
a side are an int32 tensor (B + 1,): sentence b has the rows offsets[b] … offsets[b + 1] - 1. Every row belongs to a
sentence; a sentence may be empty.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from mt.core.device import has_triton


@torch.library.custom_op("mt::packed_attention", mutates_args=())
def packed_attention(
    query: Tensor, key_value: Tensor, query_offsets: Tensor, key_offsets: Tensor, longest: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """Compute softmax(QKᵀ / √d) V for each sentence by itself (Vaswani et al. 2017, section 3.2.1).

    One operator for torch.compile, which does not look inside. It is differentiable.

    Args:
        query: (N, H, d).
        key_value: (M, 2, H, d), keys and values. Both may be parts of wider rows.
        query_offsets, key_offsets: The offsets of the queries and of the keys (B + 1,).
        longest: The maximum number of queries or keys of a sentence.
        causal: Whether a query attends to no later key of its sentence.

    Returns:
        The context (N, H, d), and the base-2 logarithm of the sum of the exponentials of each query's scores (H, N).
    """
    if has_triton(query.device):
        from mt.models.kernels import triton_kernels

        return triton_kernels.attention(query, key_value, query_offsets, key_offsets, longest, causal)
    out, lse = query.new_zeros(query.shape), query.new_zeros(query.shape[1], len(query), dtype=torch.float32)
    for rows, columns in _sentences(query_offsets, key_offsets):
        scores = _scores(query[rows], key_value[columns, 0], causal)
        out[rows] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), key_value[columns, 1].float()).to(out.dtype)
        lse[:, rows] = scores.logsumexp(-1) * math.log2(math.e)
    return out, lse


@torch.library.custom_op("mt::packed_attention_gradients", mutates_args=())
def packed_attention_gradients(
    gradient: Tensor, query: Tensor, key_value: Tensor, out: Tensor, lse: Tensor,
    query_offsets: Tensor, key_offsets: Tensor, longest: int, causal: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of ``packed_attention``: those of its queries (N, H, d) and of keys and values (M, 2, H, d).

    Args:
        gradient: The gradient of the context (N, H, d).
        query, key_value, query_offsets, key_offsets, longest, causal: The arguments of ``packed_attention``.
        out, lse: What it returned.
    """
    if has_triton(query.device):
        from mt.models.kernels import triton_kernels

        return triton_kernels.attention_gradients(
            gradient, query, key_value, out, lse, query_offsets, key_offsets, longest, causal
        )
    dq, d_key_value = query.new_zeros(query.shape), key_value.new_zeros(key_value.shape)
    for rows, columns in _sentences(query_offsets, key_offsets):
        q, g = query[rows].float(), gradient[rows].float()
        k, v = key_value[columns].float().unbind(1)
        p = (_scores(q, k, causal) - lse[:, rows, None] * math.log(2)).exp()
        delta = (g * out[rows].float()).sum(-1).t()[:, :, None]
        ds = p * (torch.einsum("qhd,khd->hqk", g, v) - delta) / math.sqrt(q.shape[2])
        dq[rows] = torch.einsum("hqk,khd->qhd", ds, k).to(dq.dtype)
        d_key_value[columns, 0] = torch.einsum("hqk,qhd->khd", ds, q).to(dq.dtype)
        d_key_value[columns, 1] = torch.einsum("hqk,qhd->khd", p, g).to(dq.dtype)
    return dq, d_key_value


def _sentences(query_offsets: Tensor, key_offsets: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield the rows of the queries and of the keys of each sentence that has both."""
    queries, keys = query_offsets.tolist(), key_offsets.tolist()
    for first, last, first_key, last_key in zip(queries, queries[1:], keys, keys[1:], strict=False):
        if last > first and last_key > first_key:
            yield slice(first, last), slice(first_key, last_key)


def _scores(query: Tensor, key: Tensor, causal: bool) -> Tensor:
    """Return the masked scores (H, T, S) of a sentence's queries (T, H, d) and keys (S, H, d), in fp32."""
    scores = torch.einsum("qhd,khd->hqk", query.float(), key.float()) / math.sqrt(query.shape[2])
    if causal:
        later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
        scores.masked_fill_(later, float("-inf"))
    return scores


@packed_attention.register_fake
def _(query: Tensor, key_value: Tensor, query_offsets: Tensor, key_offsets: Tensor, longest: int, causal: bool) -> Any:
    rows, heads, _ = query.shape
    return query.new_empty(query.shape), query.new_empty(heads, rows, dtype=torch.float32)


@packed_attention_gradients.register_fake
def _(gradient: Tensor, query: Tensor, key_value: Tensor, *others: object) -> Any:
    return query.new_empty(query.shape), key_value.new_empty(key_value.shape)


def _save(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    query, key_value, query_offsets, key_offsets, ctx.longest, ctx.causal = inputs
    ctx.set_materialize_grads(False)  # the second output has no gradient
    ctx.save_for_backward(query, key_value, *output, query_offsets, key_offsets)


def _backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    gradients = packed_attention_gradients(gradient, *ctx.saved_tensors, ctx.longest, ctx.causal)
    return *gradients, None, None, None, None


packed_attention.register_autograd(_backward, setup_context=_save)
