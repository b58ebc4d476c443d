"""Starts workers on this machine without torchrun (``training.workers``). This process is the leader."""

import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

import torch
from torch.distributed import Store, TCPStore
from tqdm import tqdm

from mt.config import TrainingConfig
from mt.core.device import cpu_threads
from mt.core.errors import InputError, RunError
from mt.core.process_end import end_with
from mt.distributed.process_group import PATIENCE, Seat

FEWEST_TOKENS = 1024
"""The fewest tokens of a batch for each CPU worker. An estimate: the smaller a worker's share, the more of its time
goes into exchanging gradients."""
WORKERS_A_CORE = 4
"""The most workers that may share a CPU core. More workers than cores only cost time, and each holds 0.3 GB or more of
memory."""
HOST = "127.0.0.1"
TOLD_BY_ALL = (0, 2, 128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit codes of a worker that ends as all others do: done, the input or config is wrong, SIGINT, SIGTERM. Any other is
taken for its death."""
GRACE = 20.0
"""Seconds that the leader is given to notice the death of a worker by itself, since it can then say more about it."""

logger = logging.getLogger(__name__)


def number_of_workers(settings: TrainingConfig, device: torch.device) -> int:
    """Returns how many workers ``training.workers`` means on this machine. Raises InputError if they are more than it
    has devices, or than its CPU cores can take."""
    if device.type != "cpu":
        there = torch.cuda.device_count() if device.type == "cuda" and device.index is None else 1
        if settings.workers != "auto" and settings.workers > there:
            raise InputError(
                f"training.workers={settings.workers}, but device={device} is {there} {device.type.upper()} "
                f"device{'s' * (there != 1)}: take training.workers=auto"
            )
        return there if settings.workers == "auto" else settings.workers
    if settings.workers != "auto":
        most = WORKERS_A_CORE * (os.cpu_count() or 1)
        if settings.workers > most:
            raise InputError(
                f"training.workers={settings.workers}: this machine has {os.cpu_count()} CPU cores, which at most "
                f"{most} workers may share; take training.workers=auto"
            )
        return settings.workers
    cores = cpu_threads() // max(1, settings.threads)
    return max(1, min(cores, settings.batch_tokens // FEWEST_TOKENS))


@contextmanager
def local_workers(size: int, work: Callable[[Seat], None]) -> Iterator[Seat]:
    """Starts workers 1 to ``size`` - 1 and yields the seat of worker 0, the leader.

    A signal stops all of them together. They end with this process, however it ends. Nothing is lost by that, because
    they write no files.

    Args:
        size: The number of workers, the leader included.
        work: What each of the other workers does in its seat. It must be picklable.

    Raises:
        RunError: A worker ended before it began its work.
    """
    store = _store_of_this_machine()
    for _, interface in socket.if_nameindex():
        if interface in ("lo", "lo0"):  # otherwise gloo listens where the host name leads
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    # Not forked: a forked process would lack torch's threads.
    processes = multiprocessing.get_context("spawn")
    others = [
        processes.Process(target=_sit_and_work, args=(work, rank, size, store.port), name=f"worker {rank}", daemon=True)
        for rank in range(1, size)
    ]
    done = threading.Event()
    try:
        # Ctrl-C reaches all workers. The others start with it blocked, and unblock it once they can end quietly.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for other in others:
                other.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for rank, other in enumerate(others, 1):
            while not store.check([_arrival(rank)]):
                if not other.is_alive():
                    raise RunError(f"worker {rank} ended before it had begun (exit code {other.exitcode})")
                time.sleep(0.02)
        threading.Thread(target=_watch, args=(others, done), daemon=True).start()
        yield Seat(0, size, 0, size, store)
        for other in others:
            other.join()
    finally:
        done.set()
        for other in others:
            if other.pid:
                other.kill()


def _store_of_this_machine() -> TCPStore:
    """Returns a store that only this machine can reach. By default, a store can be reached from other machines, too."""
    server = socket.create_server((HOST, 0))
    port = server.getsockname()[1]
    return TCPStore(
        HOST, port, is_master=True, timeout=PATIENCE, wait_for_workers=False, master_listen_fd=server.detach()
    )


def _watch(others: list[BaseProcess], done: threading.Event) -> None:
    """Ends this process if another worker has died and this one cannot notice, because it waits for that worker in
    torch."""
    running = {other.sentinel: other for other in others}
    while running:
        ready = multiprocessing.connection.wait(list(running))
        for other in [running.pop(sentinel) for sentinel in list(running) if sentinel in ready]:
            other.join()
            if other.exitcode not in TOLD_BY_ALL and not done.wait(GRACE):
                logger.error("%s has died (exit code %s)", other.name, other.exitcode)
                for one in others:
                    one.kill()
                os._exit(1)


def _arrival(rank: int) -> str:
    return f"worker {rank} is there"


def _sit_and_work(work: Callable[[Seat], None], rank: int, size: int, port: int) -> None:
    os.environ["LOCAL_RANK"] = str(rank)
    # tqdm's own lock is shared between processes: when this one is killed, Python would warn that the lock leaked.
    tqdm.set_lock(threading.RLock())
    threading.Thread(target=_end_with_leader, daemon=True).start()

    def sit_and_work() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        store: Store = TCPStore(HOST, port, is_master=False, timeout=PATIENCE)
        store.set(_arrival(rank), "")
        work(Seat(rank, size, rank, size, store))

    end_with(sit_and_work)


def _end_with_leader() -> None:
    leader = multiprocessing.parent_process()
    assert leader is not None
    leader.join()
    os._exit(1)
