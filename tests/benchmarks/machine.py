"""The limit that the machine itself sets: matrix products of the sizes that a training step is made of."""

import time

import torch

from tests.benchmarks import task

SECONDS = 2.0


def matmul_gflops(precision: str) -> float:
    """Rate of (4096, 256) · (256, 1024), in 10⁹ floating-point operations a second."""
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    features = torch.randn(task.BATCH_TOKENS, task.WIDTH, dtype=kind)
    weight = torch.randn(task.WIDTH, task.FEED_FORWARD, dtype=kind)
    product = torch.empty(task.BATCH_TOKENS, task.FEED_FORWARD, dtype=kind)
    repetitions = 0
    end = time.perf_counter() + SECONDS / 4
    while time.perf_counter() < end:
        torch.mm(features, weight, out=product)
    start = time.perf_counter()
    while time.perf_counter() < start + SECONDS:
        torch.mm(features, weight, out=product)
        repetitions += 1
    elapsed = time.perf_counter() - start
    return repetitions * 2 * task.BATCH_TOKENS * task.WIDTH * task.FEED_FORWARD / elapsed / 1e9
