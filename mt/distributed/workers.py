"""The workers (processes) that train one model, or translate one text, together: their ranks, rendezvous, collective
operations and connection errors.

Every worker plans the same batches and takes a share of the pairs of each batch. Gradients are summed over the workers
and divided by the number of target tokens of all workers. So the data, and without dropout the gradients, are those of
a single worker.
"""

import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, distributed
from torch.distributed import PrefixStore, Store

from mt.core.errors import InputError, RunError, WorkerDiedError

SETUP_TIMEOUT = timedelta(days=1)
"""Timeout of a collective operation outside of updates, when another worker may be reading a large corpus."""
STEP_TIMEOUT = timedelta(minutes=10)
"""Timeout of a collective operation of an update. It ends the workers when a machine has lost power or network. A
process that dies is noticed at once, because the system closes its connections."""
LOST_CONNECTION = re.compile(
    "connection (closed|reset|was likely closed)|broken pipe|timed out waiting|pair closure|remote process exited"
    "|ncclRemoteError|communicator was aborted",
    re.IGNORECASE,
)
"""Matches errors of gloo, NCCL or the store after another worker has died or not answered for STEP_TIMEOUT."""
GLOO_OR_NCCL_ERROR = re.compile(r"\[[^\]]*gloo/|Gloo |NCCL ")
"""Matches the start of other errors of gloo and NCCL, such as an unknown network interface. DistError has no such
start."""

Result = TypeVar("Result")


class RankInfo(NamedTuple):
    """The rank of a process among several workers, and the store through which they meet."""

    rank: int
    """From 0, the main process, to ``world_size`` - 1."""
    world_size: int
    local_rank: int
    local_world_size: int
    """The number of workers on this machine."""
    store: Store


def rank_info_from_torchrun() -> RankInfo | None:
    """Meet the other workers in torchrun's store, and return this process's rank.

    Returns:
        The rank; None if torchrun started one process only.

    Raises:
        RunError: The other workers cannot be reached.
    """
    if os.environ["WORLD_SIZE"] == "1":
        return None
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with translate_connection_errors(rank):
        store = _attempt_store(*next(distributed.rendezvous("env://", timeout=SETUP_TIMEOUT)))
    return RankInfo(rank, world_size, int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]), store)


def _attempt_store(store: Store, rank: int, world_size: int) -> Store:
    """Return torchrun's store with a key prefix that belongs to this attempt (start or restart) alone.

    Restarted workers find the keys of earlier attempts in the store, with the addresses of dead workers, because torch
    does not number attempts (pytorch/pytorch#135712). So the main process draws a random name for the attempt, which is
    the prefix. Each worker answers with a random name of its own, and the main process sends it the prefix under that
    name.
    """
    name = uuid.uuid4().hex
    if rank == 0:
        store.set("attempt", name)
        for other in range(1, world_size):
            other_name = store.get(f"{name}/{other}").decode()
            store.set(f"welcome/{other_name}", name)
        return PrefixStore(name, store)
    while not store.check([f"welcome/{name}"]):
        attempt = store.get("attempt").decode()  # may be an earlier attempt, whose leader does not answer
        store.set(f"{attempt}/{rank}", name)
        time.sleep(0.05)
    return PrefixStore(store.get(f"welcome/{name}").decode(), store)


@contextmanager
def translate_connection_errors(rank: int) -> Iterator[None]:
    """Context manager: turn errors of gloo, NCCL and the store into WorkerDiedError or RunError.

    Args:
        rank: The rank of this process, for the message.
    """
    try:
        yield
    except RuntimeError as error:
        if LOST_CONNECTION.search(str(error)):
            advice = "start the same command again, which resumes"
            raise WorkerDiedError(f"worker {rank}: another worker has died; {advice}: {error}") from error
        if isinstance(error, distributed.DistError) or GLOO_OR_NCCL_ERROR.match(str(error)):
            # Without source file, line and stack frames of PyTorch's C++ code.
            reason = re.sub(r"^\[[^\]]*\] *", "", str(error).partition("\nException raised from")[0])
            raise RunError(
                f"worker {rank} cannot reach the others; check the network between the machines and its variables "
                f"(MASTER_ADDR, GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME): {reason}"
            ) from error
        raise


class Workers:
    """The rank of this process in the group of workers, and the group's collective operations.

    Each process holds one instance; without a rank (``info`` is None), the group is this process alone. All workers
    have to call every method that exchanges values or waits, in the same order: all except ``share`` and ``is_main``.
    """

    def __init__(self, device: torch.device, info: RankInfo | None = None) -> None:
        self.rank, self.size, self.local_size = 0, 1, 1
        self.device = device
        if info is None:
            return
        self.rank, self.size, self.local_size = info.rank, info.world_size, info.local_world_size
        if device.type == "mps" or ":" in str(device):
            raise InputError(f"device={device} is one device: with several workers take cuda or cpu")
        if device.type == "cuda":
            gpus = torch.cuda.device_count()
            if self.local_size > gpus:
                raise InputError(
                    f"{self.local_size} workers, but {gpus} GPUs on this machine: start at most {gpus} workers, or "
                    "take device=cpu"
                )
            self.device = torch.device("cuda", info.local_rank)
            torch.cuda.set_device(self.device)
        backend = "nccl" if device.type == "cuda" else "gloo"
        distributed.init_process_group(
            backend, timeout=STEP_TIMEOUT, world_size=self.size, rank=self.rank, store=info.store
        )
        # These groups use the CPU, where no message makes a GPU wait. The thread that prepares batches has its own.
        self._control_group = distributed.new_group(backend="gloo", timeout=SETUP_TIMEOUT)
        self._signal_group = distributed.new_group(backend="gloo", timeout=STEP_TIMEOUT)
        self._data_group = distributed.new_group(backend="gloo", timeout=STEP_TIMEOUT)

    @property
    def is_main(self) -> bool:
        """Whether this worker writes the files and reports to the user."""
        return self.rank == 0

    def share(self, items: Sequence) -> Sequence:
        """Return this worker's share: the items number rank, rank + size, rank + 2 · size and so on, from 0."""
        return items[self.rank :: self.size]

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum a tensor on the training device over the workers, in place, and return it."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def broadcast(self, tensor: Tensor, rank: int) -> None:
        """Copy a tensor on the training device from one worker to all others, in place."""
        if self.size > 1:
            distributed.broadcast(tensor, src=rank)

    def broadcast_shares(self, shares: Sequence[Sequence[Tensor]]) -> None:
        """Copy tensors on the training device from several workers to all others, in place.

        Args:
            shares: For each rank r, the tensors that worker r sends, in one message. All workers pass tensors of the
                same shapes.
        """
        for rank, share in enumerate(shares):
            if share and self.size > 1:
                message = torch.cat([tensor.flatten() for tensor in share])
                self.broadcast(message, rank)
                for tensor, part in zip(share, message.split([tensor.numel() for tensor in share]), strict=True):
                    tensor.copy_(part.view_as(tensor))

    def max_over_workers(self, number: int | None) -> int | None:
        """Return the largest positive number that any worker passes; None if all pass None. The updates call this, so a
        worker that does not answer for STEP_TIMEOUT is lost."""
        if self.size == 1:
            return number
        largest = torch.tensor(number or 0)
        distributed.all_reduce(largest, distributed.ReduceOp.MAX, group=self._signal_group)
        return int(largest) or None

    def gather(self, own: Sequence[Result]) -> list[Result]:
        """Return, on every worker, the results for all items, in the order of the items.

        Args:
            own: This worker's results for its items, which are a ``share``.
        """
        return list(own) if self.size == 1 else interleave(self._all_gather(list(own), self._control_group))

    def gather_objects(self, own: Result) -> list[Result]:
        """Return the objects of all workers, in the order of ranks. Only the thread that prepares batches may call
        this."""
        return [own] if self.size == 1 else self._all_gather(own, self._data_group)

    def _all_gather(self, own: Result, group: distributed.ProcessGroup) -> list[Result]:
        objects: list[Result] = [own] * self.size
        distributed.all_gather_object(objects, own, group=group)
        return objects

    def run_on_main(self, work: Callable[[], Result]) -> Result:
        """Call ``work`` on the main process alone, and return its result, or raise its InputError, on every worker."""
        if self.size == 1:
            return work()
        results: list[Result | InputError | None] = [None]
        if self.is_main:
            try:
                results = [work()]
            except InputError as error:
                results = [error]
        distributed.broadcast_object_list(results, group=self._control_group)
        if isinstance(results[0], InputError):
            raise results[0]
        return results[0]  # type: ignore[return-value]

    def barrier(self) -> None:
        """Wait until all workers have called this."""
        if self.size > 1:
            distributed.barrier(group=self._control_group)

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """Context manager: run the block on the main process first, then on the others, which find its results in a
        cache."""
        if not self.is_main:
            self.barrier()
        yield
        if self.is_main:
            self.barrier()


def interleave(shares: Sequence[Sequence[Result]]) -> list[Result]:
    """Reverse ``Workers.share``: return the first item of each share, then the second of each share, and so on."""
    items: list[Result] = [None] * sum(map(len, shares))  # type: ignore[list-item]
    for rank, share in enumerate(shares):
        items[rank :: len(shares)] = share
    return items


@contextmanager
def worker_group(device: torch.device, info: RankInfo | None) -> Iterator[Workers]:
    """Context manager: join the group of workers, and leave it at the end of the block.

    Args:
        device: The device: ``cpu``, or ``cuda`` without a number for the GPU of this worker's local rank.
        info: The rank of this process; None if it is the only one.

    Raises:
        WorkerDiedError: Another worker has died. torchrun then ends all workers, and may start them again.
        RunError: The workers cannot reach each other. The message quotes gloo or NCCL.
    """
    with translate_connection_errors(info.rank) if info else nullcontext():
        yield Workers(device, info)
    # Only after success: after an error this would wait for workers that are stuck in a collective operation.
    if distributed.is_initialized():
        distributed.destroy_process_group()
