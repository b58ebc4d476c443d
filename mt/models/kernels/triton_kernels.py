"""Triton kernels for packed rows on a GPU: attention within short sentences, and the label-smoothed cross-entropy.

Flash Attention computes tiles of 128 × 128 scores, of which a sentence of 27 tokens uses a twentieth. These kernels
compute tiles of BLOCK × BLOCK, and no two programs write the same element, so results are the same each time.

Importing this module needs Triton, which comes with PyTorch's CUDA builds. Shapes and offsets: see
``mt.models.kernels.packed_attention``.
"""
# mypy: disable-error-code="no-untyped-def"

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 32
"""Queries, and keys, of a tile."""
WARPS = 2
MAX_LOSS_BLOCK = 4096
"""Logits of a row that a program holds at a time."""


@triton.jit
def _scores(q, k, m, n, queries, keys, scale, CAUSAL: tl.constexpr):
    """Return scaled scores of a tile and which of them count: rows m of the queries, columns n of the keys."""
    visible = (m < queries)[:, None] & (n < keys)[None, :]
    if CAUSAL:
        visible = visible & (n[None, :] <= m[:, None])
    return tl.dot(q, tl.trans(k)) * scale, visible


@triton.jit
def _attention(
    Q, K, V, OUT, LSE, Q_OFFSETS, K_OFFSETS, q_stride, k_stride, rows, scale,
    D: tl.constexpr, D_PADDED: tl.constexpr, B: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Compute softmax(QKᵀ) V for B queries of a head of a sentence. ``scale`` is log₂e / √d."""
    sentence, head, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    q_start = tl.load(Q_OFFSETS + sentence)
    queries = tl.load(Q_OFFSETS + sentence + 1) - q_start
    if block * B < queries:
        k_start = tl.load(K_OFFSETS + sentence)
        keys = tl.load(K_OFFSETS + sentence + 1) - k_start
        d = tl.arange(0, D_PADDED)
        m = block * B + tl.arange(0, B)
        q_mask = (m < queries)[:, None] & (d < D)[None, :]
        q = tl.load(Q + (q_start + m)[:, None] * q_stride + head * D + d[None, :], mask=q_mask, other=0.0)
        highest = tl.full([B], -1e30, tl.float32)
        total = tl.zeros([B], tl.float32)
        out = tl.zeros([B, D_PADDED], tl.float32)
        end = keys
        if CAUSAL:
            end = tl.minimum(keys, (block + 1) * B)
        for first in range(0, end, B):
            n = first + tl.arange(0, B)
            k_mask = (n < keys)[:, None] & (d < D)[None, :]
            position = (k_start + n)[:, None] * k_stride + head * D + d[None, :]
            k = tl.load(K + position, mask=k_mask, other=0.0)
            v = tl.load(V + position, mask=k_mask, other=0.0)
            s, visible = _scores(q, k, m, n, queries, keys, scale, CAUSAL)
            s = tl.where(visible, s, -1e30)
            new_highest = tl.maximum(highest, tl.max(s, 1))
            p = tl.where(visible, tl.exp2(s - new_highest[:, None]), 0.0)
            correction = tl.exp2(highest - new_highest)
            total = total * correction + tl.sum(p, 1)
            out = out * correction[:, None] + tl.dot(p.to(v.dtype), v)
            highest = new_highest
        total = tl.where(total == 0.0, 1.0, total)
        out_position = (q_start + m)[:, None] * (tl.num_programs(1) * D) + head * D + d[None, :]
        tl.store(OUT + out_position, (out / total[:, None]).to(OUT.dtype.element_ty), mask=q_mask)
        tl.store(LSE + head * rows + q_start + m, highest + tl.log2(total), mask=m < queries)


@triton.jit
def _tile_gradient(
    q, k, v, OUT, GRADIENT, LSE, m, n, q_start, queries, keys, rows, head, heads, scale,
    D: tl.constexpr, D_PADDED: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Return the probabilities of a tile, the derivatives of its scores without their scale, and the output's gradient
    (B, d)."""
    d = tl.arange(0, D_PADDED)
    q_mask = (m < queries)[:, None] & (d < D)[None, :]
    position = (q_start + m)[:, None] * (heads * D) + head * D + d[None, :]
    out = tl.load(OUT + position, mask=q_mask, other=0.0)
    gradient = tl.load(GRADIENT + position, mask=q_mask, other=0.0)
    lse = tl.load(LSE + head * rows + q_start + m, mask=m < queries, other=0.0)
    s, visible = _scores(q, k, m, n, queries, keys, scale, CAUSAL)
    p = tl.where(visible, tl.exp2(s - lse[:, None]), 0.0)
    delta = tl.sum(out.to(tl.float32) * gradient.to(tl.float32), 1)
    return p, p * (tl.dot(gradient, tl.trans(v)) - delta[:, None]), gradient


@triton.jit
def _attention_gradient_of_keys(
    Q, K, V, OUT, GRADIENT, LSE, DK, DV, Q_OFFSETS, K_OFFSETS, q_stride, k_stride, dk_stride, rows, scale,
    D: tl.constexpr, D_PADDED: tl.constexpr, B: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of B keys and values of a head of a sentence."""
    sentence, head, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    k_start = tl.load(K_OFFSETS + sentence)
    keys = tl.load(K_OFFSETS + sentence + 1) - k_start
    if block * B < keys:
        q_start = tl.load(Q_OFFSETS + sentence)
        queries = tl.load(Q_OFFSETS + sentence + 1) - q_start
        d = tl.arange(0, D_PADDED)
        n = block * B + tl.arange(0, B)
        k_mask = (n < keys)[:, None] & (d < D)[None, :]
        position = (k_start + n)[:, None] * k_stride + head * D + d[None, :]
        k = tl.load(K + position, mask=k_mask, other=0.0)
        v = tl.load(V + position, mask=k_mask, other=0.0)
        dk = tl.zeros([B, D_PADDED], tl.float32)
        dv = tl.zeros([B, D_PADDED], tl.float32)
        start = 0
        if CAUSAL:
            start = block * B
        for first in range(start, queries, B):
            m = first + tl.arange(0, B)
            q_mask = (m < queries)[:, None] & (d < D)[None, :]
            q = tl.load(Q + (q_start + m)[:, None] * q_stride + head * D + d[None, :], mask=q_mask, other=0.0)
            p, ds, gradient = _tile_gradient(
                q, k, v, OUT, GRADIENT, LSE, m, n, q_start, queries, keys, rows, head, tl.num_programs(1), scale,
                D, D_PADDED, CAUSAL,
            )  # fmt: skip
            dv += tl.dot(tl.trans(p.to(gradient.dtype)), gradient)
            dk += tl.dot(tl.trans(ds.to(q.dtype)), q)
        to = (k_start + n)[:, None] * dk_stride + head * D + d[None, :]
        tl.store(DK + to, (dk * (scale * 0.6931471805599453)).to(DK.dtype.element_ty), mask=k_mask)
        tl.store(DV + to, dv.to(DV.dtype.element_ty), mask=k_mask)


@triton.jit
def _attention_gradient_of_queries(
    Q, K, V, OUT, GRADIENT, LSE, DQ, Q_OFFSETS, K_OFFSETS, q_stride, k_stride, rows, scale,
    D: tl.constexpr, D_PADDED: tl.constexpr, B: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of B queries of a head of a sentence."""
    sentence, head, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    q_start = tl.load(Q_OFFSETS + sentence)
    queries = tl.load(Q_OFFSETS + sentence + 1) - q_start
    if block * B < queries:
        k_start = tl.load(K_OFFSETS + sentence)
        keys = tl.load(K_OFFSETS + sentence + 1) - k_start
        d = tl.arange(0, D_PADDED)
        m = block * B + tl.arange(0, B)
        q_mask = (m < queries)[:, None] & (d < D)[None, :]
        q = tl.load(Q + (q_start + m)[:, None] * q_stride + head * D + d[None, :], mask=q_mask, other=0.0)
        dq = tl.zeros([B, D_PADDED], tl.float32)
        end = keys
        if CAUSAL:
            end = tl.minimum(keys, (block + 1) * B)
        for first in range(0, end, B):
            n = first + tl.arange(0, B)
            k_mask = (n < keys)[:, None] & (d < D)[None, :]
            position = (k_start + n)[:, None] * k_stride + head * D + d[None, :]
            k = tl.load(K + position, mask=k_mask, other=0.0)
            v = tl.load(V + position, mask=k_mask, other=0.0)
            _, ds, _ = _tile_gradient(
                q, k, v, OUT, GRADIENT, LSE, m, n, q_start, queries, keys, rows, head, tl.num_programs(1), scale,
                D, D_PADDED, CAUSAL,
            )  # fmt: skip
            dq += tl.dot(ds.to(q.dtype), k)
        to = (q_start + m)[:, None] * (tl.num_programs(1) * D) + head * D + d[None, :]
        tl.store(DQ + to, (dq * (scale * 0.6931471805599453)).to(DQ.dtype.element_ty), mask=q_mask)


def attention(
    query: Tensor, key_value: Tensor, query_offsets: Tensor, key_offsets: Tensor, longest: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """Compute ``packed_attention`` by a kernel."""
    rows, heads, width = query.shape
    out, lse = query.new_empty(query.shape), query.new_empty(heads, rows, dtype=torch.float32)
    key, value = key_value.unbind(1)
    _attention[_grid(query_offsets, heads, longest)](
        query, key, value, out, lse, query_offsets, key_offsets, query.stride(0), key.stride(0), rows, _scale(width),
        **_constants(width, causal),
    )  # fmt: skip
    return out, lse


def attention_gradients(
    gradient: Tensor, query: Tensor, key_value: Tensor, out: Tensor, lse: Tensor,
    query_offsets: Tensor, key_offsets: Tensor, longest: int, causal: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute ``packed_attention_gradients`` by two kernels."""
    rows, heads, width = query.shape
    gradient = gradient.contiguous()
    dq, d_key_value = query.new_empty(query.shape), key_value.new_empty(key_value.shape)
    (key, value), (dk, dv) = key_value.unbind(1), d_key_value.unbind(1)
    grid, constants = _grid(query_offsets, heads, longest), _constants(width, causal)
    given = query, key, value, out, gradient, lse
    strides = query.stride(0), key.stride(0)
    _attention_gradient_of_keys[grid](
        *given, dk, dv, query_offsets, key_offsets, *strides, dk.stride(0), rows, _scale(width), **constants
    )
    _attention_gradient_of_queries[grid](
        *given, dq, query_offsets, key_offsets, *strides, rows, _scale(width), **constants
    )
    return dq, d_key_value


def _grid(offsets: Tensor, heads: int, longest: int) -> tuple[int, int, int]:
    return len(offsets) - 1, heads, triton.cdiv(longest, BLOCK)


def _scale(width: int) -> float:
    return math.log2(math.e) / math.sqrt(width)


def _constants(width: int, causal: bool) -> dict[str, int | bool]:
    padded = max(16, triton.next_power_of_2(width))
    return {"D": width, "D_PADDED": padded, "B": BLOCK, "CAUSAL": causal, "num_warps": WARPS, "num_stages": 1}


@triton.jit
def _cross_entropy(LOGITS, GOLD, LOSS, smoothing, columns, stride, B: tl.constexpr):
    """Compute the loss of one row of logits and overwrite them with its gradient. ``B`` must not exceed the columns.
    There is no loss if the gold subword is PAD, 0."""
    row = tl.program_id(0).to(tl.int64)
    logits = LOGITS + row * stride
    gold = tl.load(GOLD + row)
    weight = tl.where(gold == 0, 0.0, 1.0)
    at_gold = tl.load(logits + gold).to(tl.float32)
    c = tl.arange(0, B)
    highest = tl.load(logits + c).to(tl.float32)
    exponentials = tl.full([B], 1.0, tl.float32)
    total = highest
    for first in range(B, columns, B):
        inside = first + c < columns
        x = tl.load(logits + first + c, mask=inside, other=float("-inf")).to(tl.float32)
        new_highest = tl.maximum(highest, x)
        exponentials = exponentials * tl.exp(highest - new_highest) + tl.exp(x - new_highest)
        total += tl.where(inside, x, 0.0)
        highest = new_highest
    top = tl.max(highest, 0)
    lse = top + tl.log(tl.sum(exponentials * tl.exp(highest - top), 0))
    tl.store(LOSS + row, weight * (lse - (1 - smoothing) * at_gold - smoothing * (tl.sum(total, 0) / columns)))
    for first in range(0, columns, B):
        inside = first + c < columns
        x = tl.load(logits + first + c, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.exp(x - lse) - smoothing / columns - tl.where(first + c == gold, 1 - smoothing, 0.0)
        tl.store(logits + first + c, (gradient * weight).to(LOGITS.dtype.element_ty), mask=inside)


def cross_entropy(logits: Tensor, gold: Tensor, smoothing: float) -> Tensor:
    """Return the label-smoothed cross-entropy (R, 1) of R rows of logits (R, V), which are overwritten with its
    derivatives.

    Args:
        logits: (R, V).
        gold: The ids of the gold subwords (R,).
        smoothing: ε of label smoothing.
    """
    losses = torch.empty(len(logits), 1, device=logits.device)
    vocabulary = logits.shape[1]
    block = min(MAX_LOSS_BLOCK, 1 << (vocabulary.bit_length() - 1))
    warps = 8 if block >= 2048 else 4
    _cross_entropy[(len(logits),)](
        logits, gold, losses, smoothing, vocabulary, logits.stride(0), B=block, num_warps=warps
    )
    return losses
