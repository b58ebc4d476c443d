"""Triton kernels for packed rows on a GPU: attention within short sentences.

Flash Attention computes tiles of 128 × 128 scores, of which a sentence of 27 tokens uses a twentieth. These kernels
compute tiles of BLOCK × BLOCK, and no two programs write the same element, so results are the same each time.

Importing this module needs Triton, which comes with PyTorch's CUDA builds. Shapes and offsets: see
``mt.models.packed_transformer``.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# mypy: disable-error-code="no-untyped-def"


BLOCK = 32
"""Number of queries, and of keys, in a tile."""
WARPS = 2


@triton.jit
def _sentence(OFFSETS):
    """Return the first row, as int64 because rows are multiplied by strides, and the number of rows of this program's
    sentence."""
    start = tl.load(OFFSETS + tl.program_id(0))
    return start.to(tl.int64), tl.load(OFFSETS + tl.program_id(0) + 1) - start


@triton.jit
def _load(X, start, rows, count, stride, D: tl.constexpr, P: tl.constexpr):
    """Return rows of a sentence, as a tile (B, P) of this program's head. Rows beyond ``count`` are zero."""
    d = tl.arange(0, P)
    mask = (rows < count)[:, None] & (d < D)[None, :]
    return tl.load(X + (start + rows)[:, None] * stride + tl.program_id(1) * D + d[None, :], mask=mask, other=0.0)


@triton.jit
def _store(X, tile, start, rows, count, stride, D: tl.constexpr, P: tl.constexpr):
    d = tl.arange(0, P)
    mask = (rows < count)[:, None] & (d < D)[None, :]
    to = X + (start + rows)[:, None] * stride + tl.program_id(1) * D + d[None, :]
    tl.store(to, tile.to(X.dtype.element_ty), mask=mask)


@triton.jit
def _scores(q, k, m, n, queries, keys, scale, CAUSAL: tl.constexpr):
    """Return the masked scores of a tile, times ``scale``, and the mask of queries m and keys n."""
    visible = (m < queries)[:, None] & (n < keys)[None, :]
    if CAUSAL:
        visible = visible & (n[None, :] <= m[:, None])
    return tl.where(visible, tl.dot(q, tl.trans(k)) * scale, -1e30), visible


@triton.jit
def attention(
    Q, K, V, OUT, LSE, Q_OFFSETS, K_OFFSETS, q_stride, k_stride, rows, scale,
    D: tl.constexpr, P: tl.constexpr, B: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Compute softmax(QKᵀ) V for B queries of a head of a sentence. ``scale`` is log₂e / √d."""
    head, block = tl.program_id(1), tl.program_id(2)
    q_start, queries = _sentence(Q_OFFSETS)
    if block * B < queries:
        k_start, keys = _sentence(K_OFFSETS)
        m = block * B + tl.arange(0, B)
        q = _load(Q, q_start, m, queries, q_stride, D, P)
        highest = tl.full([B], -1e30, tl.float32)
        total = tl.zeros([B], tl.float32)
        out = tl.zeros([B, P], tl.float32)
        for first in range(0, tl.minimum(keys, (block + 1) * B) if CAUSAL else keys, B):
            n = first + tl.arange(0, B)
            s, visible = _scores(q, _load(K, k_start, n, keys, k_stride, D, P), m, n, queries, keys, scale, CAUSAL)
            new_highest = tl.maximum(highest, tl.max(s, 1))
            p = tl.where(visible, tl.exp2(s - new_highest[:, None]), 0.0)
            correction = tl.exp2(highest - new_highest)
            total = total * correction + tl.sum(p, 1)
            v = _load(V, k_start, n, keys, k_stride, D, P)
            out = out * correction[:, None] + tl.dot(p.to(v.dtype), v)
            highest = new_highest
        total = tl.where(total == 0.0, 1.0, total)
        _store(OUT, out / total[:, None], q_start, m, queries, tl.num_programs(1) * D, D, P)
        tl.store(LSE + head * rows + q_start + m, highest + tl.log2(total), mask=m < queries)


@triton.jit
def _tile_gradient(
    q, k, v, OUT, GRADIENT, LSE, m, n, q_start, queries, keys, rows, scale,
    D: tl.constexpr, P: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Return the probabilities of a tile, the derivatives of its scores, and the gradient of the output (B, P)."""
    stride = tl.num_programs(1) * D
    out = _load(OUT, q_start, m, queries, stride, D, P)
    gradient = _load(GRADIENT, q_start, m, queries, stride, D, P)
    lse = tl.load(LSE + tl.program_id(1) * rows + q_start + m, mask=m < queries, other=0.0)
    s, visible = _scores(q, k, m, n, queries, keys, scale, CAUSAL)
    p = tl.where(visible, tl.exp2(s - lse[:, None]), 0.0)
    delta = tl.sum(out.to(tl.float32) * gradient.to(tl.float32), 1)
    # ``scale`` has the factor log₂e for exp2.
    ds = p * (tl.dot(gradient, tl.trans(v)) - delta[:, None]) * (scale * 0.6931471805599453)
    return p, ds.to(q.dtype), gradient


@triton.jit
def attention_gradients(
    Q, K, V, OUT, GRADIENT, LSE, DQ, DK, DV, Q_OFFSETS, K_OFFSETS, q_stride, k_stride, dk_stride, rows, scale,
    D: tl.constexpr, P: tl.constexpr, B: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of B keys and values of a head of a sentence, then those of B queries."""
    block = tl.program_id(2)
    q_start, queries = _sentence(Q_OFFSETS)
    k_start, keys = _sentence(K_OFFSETS)
    own = block * B + tl.arange(0, B)
    if block * B < keys:
        k = _load(K, k_start, own, keys, k_stride, D, P)
        v = _load(V, k_start, own, keys, k_stride, D, P)
        dk = tl.zeros([B, P], tl.float32)
        dv = tl.zeros([B, P], tl.float32)
        for first in range(block * B if CAUSAL else 0, queries, B):
            m = first + tl.arange(0, B)
            q = _load(Q, q_start, m, queries, q_stride, D, P)
            p, ds, gradient = _tile_gradient(
                q, k, v, OUT, GRADIENT, LSE, m, own, q_start, queries, keys, rows, scale, D, P, CAUSAL
            )
            dv += tl.dot(tl.trans(p.to(gradient.dtype)), gradient)
            dk += tl.dot(tl.trans(ds), q)
        _store(DK, dk, k_start, own, keys, dk_stride, D, P)
        _store(DV, dv, k_start, own, keys, dk_stride, D, P)
    if block * B < queries:
        q = _load(Q, q_start, own, queries, q_stride, D, P)
        dq = tl.zeros([B, P], tl.float32)
        for first in range(0, tl.minimum(keys, (block + 1) * B) if CAUSAL else keys, B):
            n = first + tl.arange(0, B)
            k = _load(K, k_start, n, keys, k_stride, D, P)
            v = _load(V, k_start, n, keys, k_stride, D, P)
            _, ds, _ = _tile_gradient(
                q, k, v, OUT, GRADIENT, LSE, own, n, q_start, queries, keys, rows, scale, D, P, CAUSAL
            )
            dq += tl.dot(ds, k)
        _store(DQ, dq, q_start, own, queries, tl.num_programs(1) * D, D, P)


def launch(
    kernel: Any, tensors: tuple[Tensor, ...], offsets: tuple[Tensor, ...], strides: tuple[int, ...],
    longest: int, causal: bool,
) -> None:  # fmt: skip
    """Launch ``attention`` or ``attention_gradients``.

    Args:
        kernel: The kernel.
        tensors: Its tensors, in order. The queries (N, H, d) come first.
        offsets: The offsets of the queries and of the keys.
        strides: The strides of the rows of queries, keys and gradients of keys.
        longest: The maximum number of queries or keys of a sentence.
        causal: Whether a query attends to no later key of its sentence.
    """
    rows, heads, width = tensors[0].shape
    grid = len(offsets[0]) - 1, heads, triton.cdiv(longest, BLOCK)
    scale = math.log2(math.e) / math.sqrt(width)
    with torch.cuda.device_of(tensors[0]):  # Triton launches on the current device, which may be another one
        kernel[grid](
            *tensors, *offsets, *strides, rows, scale, **constants(width, causal), num_warps=WARPS, num_stages=1
        )


def constants(width: int, causal: bool) -> dict[str, int | bool]:
    """Return the compile-time constants of an attention kernel: width of a head, padded width, rows of a tile,
    and whether it is causal."""
    return {"D": width, "P": max(16, triton.next_power_of_2(width)), "B": BLOCK, "CAUSAL": causal}
