"""Attention within the sentences of packed rows, which stand one after another without padding.

Shapes: N query rows and M key rows (tokens of all sentences), H heads, d width of a head, B sentences. The offsets of
a side are an int32 tensor (B + 1,): sentence b has the rows offsets[b] … offsets[b + 1] - 1. Every row belongs to a
sentence; a sentence may be empty.
"""

import math
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
    if not has_triton(query.device):
        scores, p = _probabilities(query, key_value[:, 0], query_offsets, key_offsets, causal)
        out = torch.einsum("hqk,khd->qhd", p, key_value[:, 1].float())
        return out.to(query.dtype).contiguous(), scores.logsumexp(-1) * math.log2(math.e)
    from mt.models.kernels import triton_kernels

    out, lse = query.new_empty(query.shape), query.new_empty(query.shape[1], len(query), dtype=torch.float32)
    key, value = key_value.unbind(1)
    tensors, strides = (query, key, value, out, lse), (query.stride(0), key.stride(0))
    triton_kernels.launch(triton_kernels.attention, tensors, (query_offsets, key_offsets), strides, longest, causal)
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
    if not has_triton(query.device):
        _, p = _probabilities(query, key_value[:, 0], query_offsets, key_offsets, causal)
        q, k, v, g = (x.float() for x in (query, *key_value.unbind(1), gradient))
        dp = torch.einsum("qhd,khd->hqk", g, v)
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / math.sqrt(q.shape[2])
        d_key_value = torch.stack([torch.einsum("hqk,qhd->khd", *pair) for pair in ((ds, q), (p, g))], dim=1)
        return torch.einsum("hqk,khd->qhd", ds, k).to(query.dtype).contiguous(), d_key_value.to(query.dtype)
    from mt.models.kernels import triton_kernels

    dq, d_key_value = query.new_empty(query.shape), key_value.new_empty(key_value.shape)
    (key, value), (dk, dv) = key_value.unbind(1), d_key_value.unbind(1)
    tensors = query, key, value, out, gradient.contiguous(), lse, dq, dk, dv
    strides = query.stride(0), key.stride(0), dk.stride(0)
    triton_kernels.launch(
        triton_kernels.attention_gradients, tensors, (query_offsets, key_offsets), strides, longest, causal
    )
    return dq, d_key_value


def _probabilities(
    query: Tensor, key: Tensor, query_offsets: Tensor, key_offsets: Tensor, causal: bool
) -> tuple[Tensor, Tensor]:
    """Return the scores of all queries and keys (H, N, M), very low for those of different sentences, and their
    softmax, without a kernel for short sentences."""
    sides = ((query, query_offsets), (key, key_offsets))
    sentences = [torch.bucketize(torch.arange(len(x), dtype=torch.int32), ends[1:], right=True) for x, ends in sides]
    visible = sentences[0][:, None] == sentences[1]
    if causal:
        visible = visible.tril()  # the sentences of queries and of keys are the same
    scores = torch.einsum("qhd,khd->hqk", query.float(), key.float()) / math.sqrt(query.shape[2])
    scores = scores.masked_fill(~visible, -1e30)
    return scores, scores.softmax(-1) * visible


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
