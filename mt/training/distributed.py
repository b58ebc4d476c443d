"""Several processes that train one model together: who does what, and what they tell each other.

Every worker plans the same batches and takes its share of each one's pairs; gradients are summed over the workers and
divided by the target tokens of all. So the data, and without dropout the gradients, are those of a single worker.
"""

import os
import re
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.distributed import PrefixStore, Store
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from mt.errors import InputError, RunError, WorkerDied

Result = TypeVar("Result")

PATIENCE = timedelta(days=1)
"""How long a worker waits for another that may be reading a large corpus."""
STEP_PATIENCE = timedelta(minutes=30)
"""How long it waits inside a step. Over gloo a dead worker is noticed at once."""
SIGNS_OF_DEATH = re.compile(
    "connection (closed|reset|was likely closed)|broken pipe|timed out waiting|pair closure|remote process exited"
    "|ncclRemoteError|communicator was aborted",
    re.IGNORECASE,
)
"""In the error of gloo, NCCL or the store when another worker is gone, or has answered nothing for STEP_PATIENCE."""
WORDS_OF_GLOO_OR_NCCL = re.compile(r"\[[^\]]*gloo/|Gloo |NCCL ")
"""How any other error of theirs begins that is no DistError: no such network interface, a GPU that is given twice. An
error that only mentions them, or a socket, or a connection, is not theirs."""


@dataclass(frozen=True)
class Seat:
    """A process's place among several workers, and the store in which they find each other."""

    rank: int
    size: int
    local_rank: int
    """Among the ``local_size`` on the same machine."""
    local_size: int
    store: Store


def seat_from_torchrun() -> Seat | None:
    """None if torchrun did not start this process, or no other. Raises RunError if the others cannot be reached."""
    if not under_torchrun() or os.environ["WORLD_SIZE"] == "1":
        return None
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with _connection_errors(rank):
        store = _meet(*next(distributed.rendezvous("env://", timeout=PATIENCE)))
    return Seat(rank, size, int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]), store)


def under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


class Workers:
    """The group as one of its workers sees it; a process without a seat is a group of one."""

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
        """Whether this one writes files and speaks to the user."""
        return self.rank == 0

    def share(self, items: Sequence) -> Sequence:
        """This worker's of things that all of them have."""
        return items[self.rank :: self.size]

    def replicate(self, objective: nn.Module) -> nn.Module:
        """The objective, with gradients that are averaged over the workers (DDP)."""
        if self.size == 1:
            return objective
        devices = [self.device] if self.device.type == "cuda" else None
        # The table of positions grows with the longest sentence, so its size differs from worker to worker.
        constants = [name for name, _ in objective.named_buffers()]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(objective, constants)
        return DistributedDataParallel(objective, device_ids=devices, gradient_as_bucket_view=True)

    def shard(self, objective: nn.Module, blocks: Sequence[nn.Module]) -> nn.Module:
        """The same with its weights, gradients and the optimizer's state spread over the workers (FSDP2): each block
        is put together while it computes, what belongs to none of them during the whole pass."""
        # A warning of what in-place operations on a block's output would do; there are none.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")
        warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk of memory")
        for part in objective.modules():
            if isinstance(part, nn.RNNBase):
                # On a GPU it moves the weights to where FSDP2 does not look for them: they would never change.
                part.flatten_parameters = lambda: None  # type: ignore[method-assign]
        mesh = init_device_mesh(self.device.type, (self.size,))
        for block in blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(objective, mesh=mesh)
        return objective

    @contextmanager
    def unsharded(self, replica: nn.Module) -> Iterator[None]:
        """Inside it every worker holds all the weights, and can use the model on its own."""
        parts = [part for part in replica.modules() if isinstance(part, FSDPModule)]
        for part in parts:
            part.set_reshard_after_forward(False, recurse=False)
            part.unshard()
        yield
        for part in parts:
            part.set_reshard_after_forward(part is not replica, recurse=False)
            part.reshard()

    def gradient_sync(self, replica: nn.Module, enabled: bool) -> AbstractContextManager:
        """Around a forward and backward pass: whether its gradients are exchanged, or wait for a later one's."""
        if isinstance(replica, FSDPModule):
            replica.set_requires_gradient_sync(enabled)
        if isinstance(replica, DistributedDataParallel) and not enabled:
            return replica.no_sync()
        return nullcontext()

    def sum(self, tensor: Tensor) -> Tensor:
        """A tensor of the training's device, added up over the workers in place."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def broadcast(self, tensor: Tensor, rank: int) -> None:
        """A tensor of the training's device, written by one worker, to all the others in place."""
        if self.size > 1:
            distributed.broadcast(tensor, src=rank)

    def broadcast_shares(self, shares: Sequence[Sequence[Tensor]]) -> None:
        """Tensors of the training's device, each worker's share written by it, to all the others in place."""
        for rank, share in enumerate(shares):
            if share and self.size > 1:
                together = torch.cat([tensor.flatten() for tensor in share])
                self.broadcast(together, rank)
                for tensor, part in zip(share, together.split([tensor.numel() for tensor in share]), strict=True):
                    tensor.copy_(part.view_as(tensor))

    def sum_numbers(self, numbers: Sequence[int]) -> list[int]:
        """Numbers added up over the workers; for the thread that prepares batches."""
        if self.size == 1:
            return list(numbers)
        total = torch.tensor(numbers)
        distributed.all_reduce(total, group=self._data_group)
        return total.tolist()

    def max_number(self, number: int | None) -> int | None:
        """The largest number that any worker gives; None if none gives one."""
        if self.size == 1:
            return number
        largest = torch.tensor(number or 0)
        distributed.all_reduce(largest, distributed.ReduceOp.MAX, group=self._control_group)
        return int(largest) or None

    def gather(self, own: Sequence[Result]) -> list[Result]:
        """What ``share`` handed out, put together again in the order it had, on every worker."""
        return list(own) if self.size == 1 else interleaved(self._each(list(own), self._control_group))

    def each_ahead(self, own: Result) -> list[Result]:
        """What each worker has, by rank; for the thread that prepares batches, as ``sum_numbers``."""
        return [own] if self.size == 1 else self._each(own, self._data_group)

    def _each(self, own: Result, group: distributed.ProcessGroup) -> list[Result]:
        found: list[Result] = [own] * self.size
        distributed.all_gather_object(found, own, group=group)
        return found

    def from_leader(self, make: Callable[[], Result]) -> Result:
        """What the leader makes, on every worker."""
        if self.size == 1:
            return make()
        box = [make() if self.is_leader else None]
        distributed.broadcast_object_list(box, group=self._control_group)
        return box[0]  # type: ignore[return-value]

    def barrier(self) -> None:
        """Until all have come here."""
        if self.size > 1:
            distributed.barrier(group=self._control_group)

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """The others begin when the leader is through, and find what it put into the cache."""
        if not self.is_leader:
            self.barrier()
        yield
        if self.is_leader:
            self.barrier()


def interleaved(shares: Sequence[Sequence[Result]]) -> list[Result]:
    """What ``share`` took apart: the first of each, the second of each, …"""
    whole: list[Result] = [None] * sum(map(len, shares))  # type: ignore[list-item]
    for rank, part in enumerate(shares):
        whole[rank :: len(shares)] = part
    return whole


def full_tensor(tensor: Tensor) -> Tensor:
    """The whole of a tensor that may be spread over the workers, who all have to ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def sharded_like(tensor: Tensor, pattern: Tensor) -> Tensor:
    """This worker's part of a whole tensor, if ``pattern``, of the same shape, is spread over the workers."""
    if isinstance(pattern, DTensor) and tensor.shape == pattern.shape:
        return distribute_tensor(tensor, pattern.device_mesh, pattern.placements, src_data_rank=None)
    return tensor


def _meet(store: Store, rank: int, size: int) -> Store:
    """A part of torchrun's store that belongs to this attempt alone.

    Restarted workers find in the store what the ones before them left, addresses of the dead among it: torch gives
    attempts no names (see pytorch/pytorch#135712). So the leader makes up a name, and shows it to those who answer with
    a name of their own.
    """
    name = uuid.uuid4().hex
    if rank == 0:
        store.set("attempt", name)
        for other in range(1, size):
            guest = store.get(f"{name}/{other}").decode()
            store.set(f"welcome/{guest}", name)
        return PrefixStore(name, store)
    while not store.check([f"welcome/{name}"]):
        attempt = store.get("attempt").decode()  # or an earlier one, to which nobody answers
        store.set(f"{attempt}/{rank}", name)
        time.sleep(0.05)
    return PrefixStore(store.get(f"welcome/{name}").decode(), store)


@contextmanager
def working_together(device: torch.device, seat: Seat | None) -> Iterator[Workers]:
    """The group of workers, for the time of the block.

    Raises:
        WorkerDied: another worker has died. torchrun then ends them all, and may start them anew.
        RunError: the workers cannot reach each other, with what gloo or NCCL say of it.
    """
    with _connection_errors(seat.rank) if seat else nullcontext():
        yield Workers(device, seat)
    # Only after success: after an error this would wait for workers that are stuck in a collective operation.
    if distributed.is_initialized():
        distributed.destroy_process_group()


@contextmanager
def _connection_errors(rank: int) -> Iterator[None]:
    """Raises WorkerDied or RunError for what gloo, NCCL or the store raises inside it; a bug's error passes."""
    try:
        yield
    except RuntimeError as error:
        if SIGNS_OF_DEATH.search(str(error)):
            raise WorkerDied(f"worker {rank}: another worker has died: {error}") from error
        if isinstance(error, distributed.DistError) or WORDS_OF_GLOO_OR_NCCL.match(str(error)):
            raise RunError(f"worker {rank} cannot reach the others: {_without_place(error)}") from error
        raise


def _without_place(error: RuntimeError) -> str:
    """An error of gloo or NCCL without the place in their source code, and the C++ frames that may follow."""
    return re.sub(r"^\[[^\]]*\] *", "", str(error).partition("\nException raised from")[0])
