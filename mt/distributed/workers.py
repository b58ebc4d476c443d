"""Ranks, rendezvous, collective operations and connection errors of workers.

Workers are processes that train one model, or translate one text, together. The main process is the worker of rank 0.
Every worker plans the same batches and processes a share of the pairs of each batch. Gradients are summed over the
workers and divided by the number of target tokens of all workers. So the data, and without dropout the gradients, are
those of a single worker.
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
"""Timeout of collective operations outside of updates. Meanwhile, another worker may be reading a large corpus."""
STEP_TIMEOUT = timedelta(minutes=10)
"""Timeout of collective operations within an update. It ends the workers when a machine has lost power or network. The
death of a process is noticed at once, because the operating system closes its connections."""
LOST_CONNECTION = re.compile(
    "connection (closed|reset|was likely closed)|broken pipe|timed out waiting|pair closure|remote process exited"
    "|ncclRemoteError|communicator was aborted",
    re.IGNORECASE,
)
"""Matches errors of gloo, NCCL or the store after another worker has died or has not answered for STEP_TIMEOUT."""
GLOO_OR_NCCL_ERROR = re.compile(r"\[[^\]]*gloo/|Gloo |NCCL ")
"""Matches the beginning of other errors of gloo and NCCL, such as an unknown network interface, except DistError."""

Result = TypeVar("Result")


class RankInfo(NamedTuple):
    """The rank of a process among several workers, and the store for their rendezvous."""

    rank: int
    """From 0 (the main process) to ``world_size`` - 1."""
    world_size: int
    local_rank: int
    local_world_size: int
    """The number of workers on this machine."""
    store: Store


def rank_info_from_torchrun() -> RankInfo | None:
    """Connect to the store of torchrun, and return the rank of this process.

    Returns:
        The rank; None if torchrun started only one process.

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
    """Return torchrun's store with a key prefix that is unique to this attempt (start or restart).

    After a restart, the store still has the keys of earlier attempts, with the addresses of dead workers, because torch
    does not number attempts (pytorch/pytorch#135712). So the main process draws a random name for the attempt as the
    prefix. Each other worker answers with a random name of its own. Under this name, the main process confirms the
    prefix.
    """
    name = uuid.uuid4().hex
    if rank == 0:
        store.set("attempt", name)
        for other in range(1, world_size):
            other_name = store.get(f"{name}/{other}").decode()
            store.set(f"welcome/{other_name}", name)
        return PrefixStore(name, store)
    while not store.check([f"welcome/{name}"]):
        attempt = store.get("attempt").decode()  # in an earlier attempt, no main process would answer
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
            hint = "start the same command again to resume"
            raise WorkerDiedError(f"worker {rank}: another worker has died; {hint}: {error}") from error
        if isinstance(error, distributed.DistError) or GLOO_OR_NCCL_ERROR.match(str(error)):
            # The source file, line and stack frames of PyTorch's C++ code are removed.
            reason = re.sub(r"^\[[^\]]*\] *", "", str(error).partition("\nException raised from")[0])
            raise RunError(
                f"worker {rank} cannot reach the others; check the network between the machines and the environment "
                f"variables MASTER_ADDR, GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME: {reason}"
            ) from error
        raise


class Workers:
    """The group of workers as seen by one of them: its rank, and the collective operations of the group.

    Each process holds one instance. Without a rank (``info`` is None), the group consists of this process. All methods
    except ``share`` and ``is_main`` are collective: all workers have to call them, in the same order.
    """

    def __init__(self, device: torch.device, info: RankInfo | None = None) -> None:
        self.rank, self.size, self.local_size = 0, 1, 1
        self.device = device
        if info is None:
            return
        self.rank, self.size, self.local_size = info.rank, info.world_size, info.local_world_size
        if device.type == "mps" or ":" in str(device):
            raise InputError(f"device={device} is one device: with several workers, set device=cuda or device=cpu")
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
        # These groups use the CPU, so that their messages do not block a GPU. The thread that prepares batches has a
        # group of its own.
        self._control_group = distributed.new_group(backend="gloo", timeout=SETUP_TIMEOUT)
        self._signal_group = distributed.new_group(backend="gloo", timeout=STEP_TIMEOUT)
        self._data_group = distributed.new_group(backend="gloo", timeout=STEP_TIMEOUT)

    @property
    def is_main(self) -> bool:
        """Whether this process is the main process (rank 0), which writes files and reports to the user."""
        return self.rank == 0

    def share(self, items: Sequence) -> Sequence:
        """Return the share of this worker: the items with the indices rank, rank + size, rank + 2 · size and so on."""
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
            shares: The tensors that each rank sends, in one message. All workers pass tensors of the same shapes.
        """
        for rank, share in enumerate(shares):
            if share and self.size > 1:
                message = torch.cat([tensor.flatten() for tensor in share])
                self.broadcast(message, rank)
                for tensor, part in zip(share, message.split([tensor.numel() for tensor in share]), strict=True):
                    tensor.copy_(part.view_as(tensor))

    def max_over_workers(self, number: int | None) -> int | None:
        """Return the largest positive number that any worker passes; None if all pass None.

        Updates call this, so its timeout is STEP_TIMEOUT.
        """
        if self.size == 1:
            return number
        largest = torch.tensor(number or 0)
        distributed.all_reduce(largest, distributed.ReduceOp.MAX, group=self._signal_group)
        return int(largest) or None

    def gather(self, own: Sequence[Result]) -> list[Result]:
        """Return the results of all workers on every worker, in the order of the items.

        Args:
            own: The results of this worker for its ``share`` of the items.
        """
        return list(own) if self.size == 1 else interleave(self._all_gather(list(own), self._control_group))

    def gather_objects(self, own: Result) -> list[Result]:
        """Return the objects of all workers, in order of rank. Only the thread that prepares batches may call this."""
        return [own] if self.size == 1 else self._all_gather(own, self._data_group)

    def _all_gather(self, own: Result, group: distributed.ProcessGroup) -> list[Result]:
        objects: list[Result] = [own] * self.size
        distributed.all_gather_object(objects, own, group=group)
        return objects

    def run_on_main(self, work: Callable[[], Result]) -> Result:
        """Call ``work`` on the main process only. Return its result, or raise its InputError, on every worker."""
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
        """Context manager: run the block on the main process first, and then on the others, which read its results from
        the cache."""
        if not self.is_main:
            self.barrier()
        yield
        if self.is_main:
            self.barrier()


def interleave(shares: Sequence[Sequence[Result]]) -> list[Result]:
    """Undo ``Workers.share``: return the first item of each share, then the second item of each share, and so on."""
    items: list[Result] = [None] * sum(map(len, shares))  # type: ignore[list-item]
    for rank, share in enumerate(shares):
        items[rank :: len(shares)] = share
    return items


@contextmanager
def worker_group(device: torch.device, info: RankInfo | None) -> Iterator[Workers]:
    """Context manager: join the group of workers, and leave it at the end of the block.

    Args:
        device: The device: ``cpu``, or ``cuda`` without a number for the GPU of the local rank.
        info: The rank of this process; None if it is the only worker.

    Raises:
        WorkerDiedError: Another worker has died. torchrun then ends all workers, and may start them again.
        RunError: The workers cannot reach each other. The message quotes gloo or NCCL.
    """
    with translate_connection_errors(info.rank) if info else nullcontext():
        yield Workers(device, info)
    # After an error, this would wait for workers that are blocked in a collective operation.
    if distributed.is_initialized():
        distributed.destroy_process_group()
