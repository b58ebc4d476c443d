"""How the processes that train one model meet, and how the errors of a lost one look."""

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

SETUP_TIMEOUT = timedelta(days=1)
"""How long a worker waits for another, which may be reading a large corpus."""
STEP_TIMEOUT = timedelta(minutes=30)
"""How long a worker waits within an update. Over gloo, a dead worker is noticed at once."""
LOST_CONNECTION = re.compile(
    "connection (closed|reset|was likely closed)|broken pipe|timed out waiting|pair closure|remote process exited"
    "|ncclRemoteError|communicator was aborted",
    re.IGNORECASE,
)
"""Matches errors of gloo, NCCL or the store after another worker has died or not answered for STEP_TIMEOUT."""
GLOO_OR_NCCL_ERROR = re.compile(r"\[[^\]]*gloo/|Gloo |NCCL ")
"""Matches the start of any other of their errors, except for DistError: an unknown network interface, for example."""


@dataclass(frozen=True)
class RankInfo:
    """The rank of a process among several workers, and the store through which they meet."""

    rank: int
    """From 0, the leader, to ``world_size`` - 1."""
    world_size: int
    local_rank: int
    local_world_size: int
    """The number of workers on this machine."""
    store: Store


def rank_info_from_torchrun() -> RankInfo | None:
    """Return the rank that torchrun gave this process; None without torchrun, or if it started one process only.

    Raises:
        RunError: The other workers cannot be reached.
    """
    if not under_torchrun() or os.environ["WORLD_SIZE"] == "1":
        return None
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with translate_connection_errors(rank):
        store = _attempt_store(*next(distributed.rendezvous("env://", timeout=SETUP_TIMEOUT)))
    return RankInfo(rank, world_size, int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]), store)


def under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def _attempt_store(store: Store, rank: int, world_size: int) -> Store:
    """Return a part of torchrun's store for this attempt alone.

    Restarted workers find the keys of earlier attempts in the store, with the addresses of dead workers, because torch
    does not number attempts (pytorch/pytorch#135712). So the leader draws a name for the attempt, and gives it to each
    worker that answers with a name of its own.
    """
    name = uuid.uuid4().hex
    if rank == 0:
        store.set("attempt", name)
        for other in range(1, world_size):
            other_name = store.get(f"{name}/{other}").decode()
            store.set(f"welcome/{other_name}", name)
        return PrefixStore(name, store)
    while not store.check([f"welcome/{name}"]):
        attempt = store.get("attempt").decode()  # or an earlier one, to which nobody answers
        store.set(f"{attempt}/{rank}", name)
        time.sleep(0.05)
    return PrefixStore(store.get(f"welcome/{name}").decode(), store)


@contextmanager
def translate_connection_errors(rank: int) -> Iterator[None]:
    """Turn the errors of gloo, NCCL and the store into WorkerDied or RunError; other errors pass unchanged."""
    try:
        yield
    except RuntimeError as error:
        if LOST_CONNECTION.search(str(error)):
            raise WorkerDied(f"worker {rank}: another worker has died: {error}") from error
        if isinstance(error, distributed.DistError) or GLOO_OR_NCCL_ERROR.match(str(error)):
            raise RunError(f"worker {rank} cannot reach the others: {_strip_source_position(error)}") from error
        raise


def _strip_source_position(error: RuntimeError) -> str:
    """Return an error's message without its position in C++ source code and without C++ frames."""
    return re.sub(r"^\[[^\]]*\] *", "", str(error).partition("\nException raised from")[0])
