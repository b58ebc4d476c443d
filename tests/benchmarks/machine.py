"""The limits that the machine itself sets: matrix products of the sizes that a training step is made of, copies."""

import time
from collections.abc import Callable

import torch
from torch import Tensor

from mt.core.device import keep_freed_memory
from mt.models.layers import linear
from tests.benchmarks import task

SECONDS = 2.0


def large_matmul_gflops(device: torch.device, precision: torch.dtype) -> float:
    """Rate of square products large enough for any GPU (on a CPU: smaller ones)."""
    size = 8192 if device.type == "cuda" else 1024
    left, right = (torch.randn(size, size, device=device).to(precision) for _ in range(2))

    def seconds(repetitions: int) -> float:
        _wait_for(device)
        start = time.perf_counter()
        for _ in range(repetitions):
            torch.mm(left, right)
        _wait_for(device)
        return time.perf_counter() - start

    repetitions = max(1, int(10 * SECONDS / seconds(10)))
    return repetitions * 2 * size**3 / seconds(repetitions) / 1e9


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def copy_gigabytes() -> float:
    """Bytes that are copied from memory to memory, in 10⁹ a second."""
    source = torch.randn(2**26)  # 256 MiB, more than any cache
    target = torch.empty_like(source)
    target.copy_(source)
    start = time.perf_counter()
    for _ in range(10):
        target.copy_(source)
    return 10 * 4 * source.numel() / (time.perf_counter() - start) / 1e9


def matmul_gflops(precision: str) -> float:
    """Rate of (4096, 256) · (256, 1024), in 10⁹ floating-point operations a second, by the faster of torch.mm and what
    our layers do: MKL and oneDNN, where they differ."""
    keep_freed_memory()  # or the products would be faulted in anew each time
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    features = torch.randn(task.BATCH_TOKENS, task.WIDTH, dtype=kind)
    weight = torch.randn(task.FEED_FORWARD, task.WIDTH, dtype=kind)
    return max(_rate(lambda: torch.mm(features, weight.t())), _rate(lambda: linear(features, weight)))


@torch.inference_mode()
def _rate(multiply: Callable[[], Tensor]) -> float:
    repetitions = 0
    end = time.perf_counter() + SECONDS / 4
    while time.perf_counter() < end:
        multiply()
    start = time.perf_counter()
    while time.perf_counter() < start + SECONDS:
        multiply()
        repetitions += 1
    elapsed = time.perf_counter() - start
    return repetitions * 2 * task.BATCH_TOKENS * task.WIDTH * task.FEED_FORWARD / elapsed / 1e9
