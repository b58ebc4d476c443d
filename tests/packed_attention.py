"""Attention within packed sentences on a CPU, for tests. On GPUs, Triton's kernels compute it."""

import math

import torch

from mt.models.packed_transformer import packed_attention, packed_attention_gradients


@packed_attention.register_kernel("cpu")
def attention(query, key_value, query_offsets, key_offsets, longest, causal):
    scores, p = _probabilities(query, key_value[:, 0], query_offsets, key_offsets, causal)
    out = torch.einsum("hqk,khd->qhd", p, key_value[:, 1].float())
    return out.to(query.dtype).contiguous(), scores.logsumexp(-1) * math.log2(math.e)


@packed_attention_gradients.register_kernel("cpu")
def gradients(gradient, query, key_value, out, lse, query_offsets, key_offsets, longest, causal):
    _, p = _probabilities(query, key_value[:, 0], query_offsets, key_offsets, causal)
    q, k, v, g = (x.float() for x in (query, *key_value.unbind(1), gradient))
    dp = torch.einsum("qhd,khd->hqk", g, v)
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / math.sqrt(q.shape[2])
    d_key_value = torch.stack([torch.einsum("hqk,qhd->khd", *pair) for pair in ((ds, q), (p, g))], dim=1)
    return torch.einsum("hqk,khd->qhd", ds, k).to(query.dtype).contiguous(), d_key_value.to(query.dtype)


def _probabilities(query, key, query_offsets, key_offsets, causal):
    """The scores of all queries and keys (H, N, M), very low for those of different sentences, and their softmax."""
    sides = ((query, query_offsets), (key, key_offsets))
    sentences = [torch.bucketize(torch.arange(len(x), dtype=torch.int32), ends[1:], right=True) for x, ends in sides]
    visible = sentences[0][:, None] == sentences[1]
    if causal:
        visible = visible.tril()  # the sentences of queries and of keys are the same
    scores = torch.einsum("qhd,khd->hqk", query.float(), key.float()) / math.sqrt(query.shape[2])
    scores = scores.masked_fill(~visible, -1e30)
    return scores, scores.softmax(-1) * visible
