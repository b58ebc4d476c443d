"""The processes that train one model together: how they find each other, and what a lost one looks like."""

import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from torch import distributed
from torch.distributed import PrefixStore, Store

from mt.core.errors import RunError, WorkerDied

PATIENCE = timedelta(days=1)
"""How long a worker waits for another, which may be reading a large corpus."""
STEP_PATIENCE = timedelta(minutes=30)
"""How long a worker waits within an update. Over gloo, a dead worker is noticed at once."""
SIGNS_OF_DEATH = re.compile(
    "connection (closed|reset|was likely closed)|broken pipe|timed out waiting|pair closure|remote process exited"
    "|ncclRemoteError|communicator was aborted",
    re.IGNORECASE,
)
"""Found in the errors of gloo, NCCL or the store when another worker is gone, or has not answered for STEP_PATIENCE."""
WORDS_OF_GLOO_OR_NCCL = re.compile(r"\[[^\]]*gloo/|Gloo |NCCL ")
"""How any other of their errors begins, if it is no DistError: no such network interface, a GPU that is given twice. An
error that only mentions them, a socket or a connection is not theirs."""


@dataclass(frozen=True)
class Seat:
    """A process's place among several workers."""

    rank: int
    """From 0, the leader, to ``size`` - 1."""
    size: int
    local_rank: int
    """The same among the ``local_size`` workers on this machine."""
    local_size: int
    store: Store
    """The store through which they find each other."""


def seat_from_torchrun() -> Seat | None:
    """Returns this process's seat, or None if torchrun did not start it, or no other beside it.

    Raises:
        RunError: The others cannot be reached.
    """
    if not under_torchrun() or os.environ["WORLD_SIZE"] == "1":
        return None
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with connection_errors(rank):
        store = _meet(*next(distributed.rendezvous("env://", timeout=PATIENCE)))
    return Seat(rank, size, int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]), store)


def under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def _meet(store: Store, rank: int, size: int) -> Store:
    """Returns a part of torchrun's store that belongs to this attempt alone.

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
def connection_errors(rank: int) -> Iterator[None]:
    """Turns the errors of gloo, NCCL and the store into WorkerDied or RunError. The error of a bug passes."""
    try:
        yield
    except RuntimeError as error:
        if SIGNS_OF_DEATH.search(str(error)):
            raise WorkerDied(f"worker {rank}: another worker has died: {error}") from error
        if isinstance(error, distributed.DistError) or WORDS_OF_GLOO_OR_NCCL.match(str(error)):
            raise RunError(f"worker {rank} cannot reach the others: {_without_place(error)}") from error
        raise


def _without_place(error: RuntimeError) -> str:
    """Returns the message of an error of gloo or NCCL, without the place in their source code and without C++
    frames."""
    return re.sub(r"^\[[^\]]*\] *", "", str(error).partition("\nException raised from")[0])
