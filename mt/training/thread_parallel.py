"""Data parallelism by threads in one process, on a CPU in fp32: each thread computes the gradients of a part of a
batch.

PyTorch's own threads divide every operator and synchronize after it. These threads synchronize once per batch.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from mt.data.batching.batch import Batch
from mt.distributed.workers import Workers
from mt.models.layers import THREAD_RANDOM
from mt.tokenizer.tokenizer import PAD
from mt.training.objective import Objective

MAX_PARTS = 4
"""Maximum number of parts of a batch: their threads share Python's interpreter lock. With more threads than parts,
PyTorch divides the operators of each part."""


def part_count(objective: Objective, workers: Workers, precision: torch.dtype) -> int:
    """Return the number of parts into which this process divides a batch; 1 if it does not divide batches."""
    settings = objective.settings
    # In bf16, undivided batches are faster. SimCut changes the state of the embeddings, which all threads share.
    is_divided = precision == torch.float32 and not settings.compile and settings.objective != "simcut"
    if workers.size > 1 or workers.device.type != "cpu" or not is_divided:
        return 1
    threads = torch.get_num_threads()
    return max(parts for parts in range(1, MAX_PARTS + 1) if threads % parts == 0)  # every thread has work


class ThreadParallel:
    """Computes the gradients of batches in several threads. The updater holds one."""

    def __init__(self, objective: Objective, parts: int) -> None:
        """
        Args:
            objective: The objective, on the CPU.
            parts: The number of parts of a batch.
        """
        self.objective = objective
        self.parts = parts
        self._parameters = [parameter for parameter in objective.parameters() if parameter.requires_grad]
        self._pool = ThreadPoolExecutor(max_workers=parts, thread_name_prefix="gradients")

    def add_gradients(self, batch: Batch, scale: float) -> Tensor:
        """Add the gradients of a batch, times ``scale``, to ``grad`` of the parameters. Return the loss of the batch.

        Dropout masks depend on PyTorch's global generator and the number of parts.
        """
        threads = torch.get_num_threads()
        parts = split_by_length(batch, self.parts)
        seeds = torch.randint(2**62, (len(parts),)).tolist()
        # A thread of the pool adopts this number when it starts; MKL reads it at every call.
        torch.set_num_threads(max(1, threads // self.parts))
        try:
            results = list(self._pool.map(self._gradients, parts, seeds))
        finally:
            torch.set_num_threads(threads)
        losses, gradients = zip(*results, strict=True)
        # Added in the order of the parts, so that the sums do not depend on the timing of threads. The sums are new
        # tensors, because autograd may return one tensor for several parameters.
        first, *others = gradients
        sums = torch._foreach_mul(first, scale)
        for other in others:
            torch._foreach_add_(sums, other, alpha=scale)
        for parameter, gradient in zip(self._parameters, sums, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        return sum(losses[1:], losses[0])

    def _gradients(self, batch: Batch, seed: int) -> tuple[Tensor, Sequence[Tensor]]:
        THREAD_RANDOM.generator = torch.Generator().manual_seed(seed)
        loss = self.objective(batch)
        return loss.detach(), torch.autograd.grad(loss, self._parameters)


def split_by_length(batch: Batch, count: int) -> list[Batch]:
    """Divide a batch by length into at most ``count`` batches with about equal numbers of tokens, the shortest pairs
    first.

    Pairs of similar lengths need less padding.
    """
    lengths = (batch.source != PAD).sum(dim=1) + (batch.target != PAD).sum(dim=1)  # (B,)
    order = lengths.argsort(stable=True)
    ends = lengths[order].cumsum(dim=0)
    part_numbers = (ends - 1) * count // ends[-1]
    return [batch.select(order[part_numbers == part]) for part in part_numbers.unique().tolist()]
