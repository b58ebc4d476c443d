"""The group of processes that train one model, as one of them sees it: which one it is, and how they exchange values.

Every worker plans the same batches and takes its share of each one's pairs; gradients are summed over the workers and
divided by the target tokens of all. So the data, and without dropout the gradients, are those of a single worker.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import torch
from torch import Tensor, distributed

from mt.core.errors import InputError
from mt.distributed.lifeline import lifeline
from mt.distributed.process_group import PATIENCE, STEP_PATIENCE, Seat, connection_errors

Result = TypeVar("Result")


class Workers:
    """The group of workers as one of them sees it. A process without a seat is a group of one.

    Methods that exchange values have to be called by all workers, in the same order.
    """

    def __init__(self, device: torch.device, seat: Seat | None = None) -> None:
        self.rank, self.size = 0, 1
        self.on_this_machine = seat.local_size if seat else 1
        self.device = device
        if seat is None:
            return
        self.rank, self.size = seat.rank, seat.size
        if device.type == "mps" or ":" in str(device):
            raise InputError(f"training.device={device} is one device: with several workers take cuda or cpu")
        if device.type == "cuda":
            there = torch.cuda.device_count()
            if seat.local_size > there:
                raise InputError(f"{seat.local_size} workers, but {there} GPUs on this machine")
            self.device = torch.device("cuda", seat.local_rank)
            torch.cuda.set_device(self.device)
        backend = "nccl" if device.type == "cuda" else "gloo"
        distributed.init_process_group(
            backend, timeout=STEP_PATIENCE, world_size=self.size, rank=self.rank, store=seat.store
        )
        # Over the CPU, where messages make no GPU wait; batches are prepared in a thread of their own.
        self._control_group = distributed.new_group(backend="gloo", timeout=PATIENCE)
        self._data_group = distributed.new_group(backend="gloo", timeout=PATIENCE)

    @property
    def is_leader(self) -> bool:
        """Whether this worker writes the files and reports to the user."""
        return self.rank == 0

    def share(self, items: Sequence) -> Sequence:
        """Returns every ``size``-th item, beginning with this worker's rank."""
        return items[self.rank :: self.size]

    def sum(self, tensor: Tensor) -> Tensor:
        """Adds up a tensor on the training device over the workers, in place, and returns it."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def broadcast(self, tensor: Tensor, rank: int) -> None:
        """Copies a tensor on the training device from one worker to all others, in place."""
        if self.size > 1:
            distributed.broadcast(tensor, src=rank)

    def broadcast_shares(self, shares: Sequence[Sequence[Tensor]]) -> None:
        """Copies the tensors ``shares[r]``, which are on the training device, from worker r to all others, in place.
        Each worker sends its tensors in one message."""
        for rank, share in enumerate(shares):
            if share and self.size > 1:
                together = torch.cat([tensor.flatten() for tensor in share])
                self.broadcast(together, rank)
                for tensor, part in zip(share, together.split([tensor.numel() for tensor in share]), strict=True):
                    tensor.copy_(part.view_as(tensor))

    def sum_numbers(self, numbers: Sequence[int]) -> list[int]:
        """Returns each number's sum over the workers. For the thread that prepares batches."""
        if self.size == 1:
            return list(numbers)
        total = torch.tensor(numbers)
        distributed.all_reduce(total, group=self._data_group)
        return total.tolist()

    def max_number(self, number: int | None) -> int | None:
        """Returns the largest number that any worker gives; None if none gives one."""
        if self.size == 1:
            return number
        largest = torch.tensor(number or 0)
        distributed.all_reduce(largest, distributed.ReduceOp.MAX, group=self._control_group)
        return int(largest) or None

    def gather(self, own: Sequence[Result]) -> list[Result]:
        """Returns, on every worker, what all of them made of their ``share``, in the order of the original items."""
        return list(own) if self.size == 1 else interleaved(self._each(list(own), self._control_group))

    def each_ahead(self, own: Result) -> list[Result]:
        """Returns each worker's object, by rank. For the thread that prepares batches."""
        return [own] if self.size == 1 else self._each(own, self._data_group)

    def _each(self, own: Result, group: distributed.ProcessGroup) -> list[Result]:
        found: list[Result] = [own] * self.size
        distributed.all_gather_object(found, own, group=group)
        return found

    def from_leader(self, make: Callable[[], Result]) -> Result:
        """Returns, on every worker, what ``make`` returns on the leader. The others do not call it."""
        if self.size == 1:
            return make()
        box = [make() if self.is_leader else None]
        distributed.broadcast_object_list(box, group=self._control_group)
        return box[0]  # type: ignore[return-value]

    def barrier(self) -> None:
        """Waits until all workers have come here."""
        if self.size > 1:
            distributed.barrier(group=self._control_group)

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """Lets the leader pass through this context before the others, who find what it left in a cache."""
        if not self.is_leader:
            self.barrier()
        yield
        if self.is_leader:
            self.barrier()


def interleaved(shares: Sequence[Sequence[Result]]) -> list[Result]:
    """Reverses ``share``: returns the first item of each share, then the second of each, and so on."""
    whole: list[Result] = [None] * sum(map(len, shares))  # type: ignore[list-item]
    for rank, part in enumerate(shares):
        whole[rank :: len(shares)] = part
    return whole


@contextmanager
def working_together(device: torch.device, seat: Seat | None) -> Iterator[Workers]:
    """Joins the group of workers for the time of this context.

    Raises:
        WorkerDied: Another worker has died. torchrun then ends all of them, and may start them again.
        RunError: The workers cannot reach each other. The message is that of gloo or NCCL.
    """
    with connection_errors(seat.rank) if seat else nullcontext():
        workers = Workers(device, seat)
        with lifeline(seat):
            yield workers
    # Only after success: after an error this would wait for workers that are stuck in a collective operation.
    if distributed.is_initialized():
        distributed.destroy_process_group()
