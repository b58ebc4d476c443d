"""Rank and rendezvous of the workers, and translation of their connection errors."""

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
    """Meet the other workers in torchrun's store, and return this process's rank.

    Returns:
        The rank; None without torchrun, or if torchrun started one process only.

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
    """Return torchrun's store with a key prefix that belongs to this attempt (start or restart) alone.

    Restarted workers find the keys of earlier attempts in the store, with the addresses of dead workers, because torch
    does not number attempts (pytorch/pytorch#135712). So the leader draws a random name for the attempt, which is the
    prefix. Each worker answers with a random name of its own, and the leader sends it the prefix under that name.
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
    """Context manager: turn errors of gloo, NCCL and the store into WorkerDied or RunError.

    Args:
        rank: The rank of this process, for the message.
    """
    try:
        yield
    except RuntimeError as error:
        if LOST_CONNECTION.search(str(error)):
            advice = "start the same command again, which resumes"
            raise WorkerDied(f"worker {rank}: another worker has died; {advice}: {error}") from error
        if isinstance(error, distributed.DistError) or GLOO_OR_NCCL_ERROR.match(str(error)):
            raise RunError(
                f"worker {rank} cannot reach the others; check the network between the machines and its variables "
                f"(MASTER_ADDR, GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME): {_strip_source_position(error)}"
            ) from error
        raise


def _strip_source_position(error: RuntimeError) -> str:
    """Return the message of an error of PyTorch's C++ code, without source file, line and stack frames."""
    return re.sub(r"^\[[^\]]*\] *", "", str(error).partition("\nException raised from")[0])
