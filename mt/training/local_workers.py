"""Workers on this machine without torchrun (``training.workers``): this process leads, and starts the others."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.distributed import Store, TCPStore

from mt.command_line import end_with
from mt.config import TrainingConfig
from mt.device import cpu_threads
from mt.errors import RunError
from mt.training.distributed import PATIENCE, Seat

FEWEST_TOKENS = 1024
"""Of a batch, for each CPU worker: with fewer, exchanging gradients costs more than a further core gains."""
HOST = "127.0.0.1"


def number_of_workers(settings: TrainingConfig, device: torch.device) -> int:
    """What ``training.workers`` comes to on this machine."""
    if settings.workers != "auto":
        return settings.workers
    if device.type == "cuda":
        return torch.cuda.device_count() if device.index is None else 1
    if device.type == "mps":
        return 1
    cores = cpu_threads() // max(1, settings.threads)
    return max(1, min(cores, settings.batch_tokens // FEWEST_TOKENS))


@contextmanager
def local_workers(size: int, work: Callable[[Seat], None]) -> Iterator[Seat]:
    """Starts workers 1 to ``size`` - 1, which do ``work`` (it must be picklable); yields the seat of worker 0.

    They hear signals together, and end with this process however that ends: none writes files, so nothing is lost.
    Raises RunError if one of them ends before it begins.
    """
    store = TCPStore(HOST, 0, is_master=True, timeout=PATIENCE, wait_for_workers=False)
    # Not forked: torch's threads would be missing.
    processes = multiprocessing.get_context("spawn")
    others = [
        processes.Process(target=_sit_and_work, args=(work, rank, size, store.port), name=f"worker {rank}", daemon=True)
        for rank in range(1, size)
    ]
    for other in others:
        other.start()
    try:
        for rank, other in enumerate(others, 1):
            while not store.check([_arrival(rank)]):
                if not other.is_alive():
                    raise RunError(f"worker {rank} ended before it had begun (exit code {other.exitcode})")
                time.sleep(0.02)
        yield Seat(0, size, 0, store)
        for other in others:
            other.join()
    finally:
        for other in others:
            other.kill()


def _arrival(rank: int) -> str:
    return f"worker {rank} is there"


def _sit_and_work(work: Callable[[Seat], None], rank: int, size: int, port: int) -> None:
    os.environ["LOCAL_RANK"] = str(rank)
    store: Store = TCPStore(HOST, port, is_master=False, timeout=PATIENCE)
    store.set(_arrival(rank), "")
    end_with(lambda: work(Seat(rank, size, rank, store)))
