"""Attention within packed sentences against PyTorch's attention, sentence by sentence, on a CPU and by Triton's
kernels.
"""

import os
import subprocess
import sys

import pytest
import torch
from torch.nn import functional

from mt.models.packed_transformer import packed_attention

INTERPRETED = bool(os.environ.get("TRITON_INTERPRET"))
if not INTERPRETED:
    import tests.packed_attention  # noqa: F401
LENGTHS = [(5, 7), (0, 4), (3, 0), (32, 65), (40, 32), (0, 0)]


def _offsets(lengths):
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)


def _inputs(heads, width, lengths):
    """Queries, and keys with values that are part of wider rows; and the offsets of both."""
    torch.manual_seed(0)
    queries, keys = zip(*lengths, strict=True)
    q = torch.randn(sum(queries), heads, width, requires_grad=True)
    wide = torch.randn(sum(keys), 3, 2, heads, width, requires_grad=True)
    return q, wide, _offsets(queries), _offsets(keys)


def _expected(q, kv, lengths, causal):
    out, first, first_key = [], 0, 0
    for queries, keys in lengths:
        part = slice(first, first + queries)
        key, value = kv[first_key : first_key + keys].unbind(1)
        first, first_key = first + queries, first_key + keys
        if queries and keys:
            heads_first = (x.transpose(0, 1) for x in (q[part], key, value))
            mask = torch.ones(queries, keys, dtype=torch.bool).tril() if causal else None
            out.append(functional.scaled_dot_product_attention(*heads_first, attn_mask=mask).transpose(0, 1))
        else:
            out.append(torch.zeros_like(q[part]))
    return torch.cat(out)


@pytest.mark.parametrize(("heads", "width", "causal"), [(2, 16, False), (3, 24, True)])
def test_packed_attention_equals_attention_per_sentence(heads, width, causal):
    lengths = [(queries, queries if causal else keys) for queries, keys in LENGTHS]
    q, wide, q_offsets, k_offsets = _inputs(heads, width, lengths)
    longest = max(map(max, lengths))
    out, _ = packed_attention(q, wide[:, 1], q_offsets, k_offsets, longest, causal)
    expected = _expected(q, wide[:, 1], lengths, causal)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    gradient = torch.randn_like(out)
    ours, theirs = (torch.autograd.grad(x, (q, wide), gradient) for x in (out, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter")
def test_triton_kernels_in_interpreter():
    """The tests of this file once more, in a process in which Triton interprets its kernels."""
    pytest.importorskip("triton")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


@pytest.mark.skipif(INTERPRETED, reason="the interpreter compiles nothing")
@pytest.mark.parametrize("architecture", [80, 90])
def test_triton_kernels_compile_for_other_gpus(architecture):
    pytest.importorskip("triton")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from mt.models import triton_kernels

    constants = triton_kernels.constants(64, causal=True)
    options = {"num_warps": triton_kernels.WARPS, "num_stages": 1}
    for kernel in (triton_kernels.attention, triton_kernels.attention_gradients):
        signature = {}
        for name in kernel.arg_names:
            if name in constants:
                signature[name] = "constexpr"
            elif name.endswith("OFFSETS"):
                signature[name] = "*i32"
            elif name == "LSE":
                signature[name] = "*fp32"
            elif name.isupper():
                signature[name] = "*bf16"
            else:
                signature[name] = "fp32" if name == "scale" else "i32"
        used = {name: value for name, value in constants.items() if name in kernel.arg_names}
        source = ASTSource(fn=kernel, signature=signature, constexprs=used)
        compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options)
        assert f"sm_{architecture}" in compiled.asm["ptx"], kernel
