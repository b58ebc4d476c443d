"""Start the worker processes of a command on this machine.

Without torchrun (the setting ``workers``), the process of the command becomes the main process (rank 0) and starts the
others. Torch's own launcher (``elastic_launch``) would need one more process of 0.4 GB, take a second longer, and print
a traceback for every error in the config. It would also end all workers when one ends, by force after 30 seconds,
although the main process may still be saving a checkpoint.
"""

import functools
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing.process import BaseProcess
from typing import Literal, Protocol

import torch
from torch.distributed import TCPStore
from tqdm import tqdm

from mt.core.device import choose_device, cpu_threads, limit_kernel_caches
from mt.core.errors import InputError, RunError, counted
from mt.core.process import ENDING, blocking_ctrl_c, end_with, end_with_parent
from mt.distributed.workers import SETUP_TIMEOUT, RankInfo, Workers, rank_info_from_torchrun, worker_group

HOST = "127.0.0.1"
COMMON_EXIT_CODES = (0, 2, *(128 + number for number in ENDING))
"""Exit codes with which all workers end: done, wrong input, a signal. Any other code means that a worker has died."""
MAIN_GRACE_SECONDS = 20.0
"""The time after the death of a worker in which the main process may report the error of gloo or NCCL itself."""

logger = logging.getLogger(__name__)

MAX_WORKERS_PER_CORE = 4
"""More workers than cores are slower, and each takes 0.3 GB or more of memory."""


@contextmanager
def local_workers(size: int, work: Callable[[RankInfo], None]) -> Iterator[RankInfo]:
    """Context manager: make this process the main process, start workers 1 to ``size`` - 1, and yield the rank 0.

    At the end of the block, the main process waits for the workers. After an exception, it kills them. If it is killed
    itself, they end as well. No data are lost, because only the main process writes files.

    Args:
        size: The number of workers, including the main process.
        work: A picklable function of a rank. Each started process calls it.

    Raises:
        RunError: A worker ended before it began its work.
    """
    # By default, a TCPStore listens at all addresses. This store must not be reachable from other machines.
    server = socket.create_server((HOST, 0))
    port, descriptor = server.getsockname()[1], server.detach()
    store = TCPStore(
        HOST, port, is_master=True, timeout=SETUP_TIMEOUT, wait_for_workers=False, master_listen_fd=descriptor
    )
    for _, interface in socket.if_nameindex():
        if interface in ("lo", "lo0"):  # by default, gloo listens at the address of the host name
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    processes = multiprocessing.get_context("spawn")  # a forked process would lack torch's threads
    others = [
        processes.Process(target=_worker_main, args=(work, rank, size, port), name=f"worker {rank}")
        for rank in range(1, size)
    ]
    done = threading.Event()
    try:
        _start_processes(others, store)
        threading.Thread(target=_watch_processes, args=(others, done), daemon=True).start()
        yield RankInfo(0, size, 0, size, store)
        for other in others:
            other.join()
    finally:
        done.set()
        for other in others:
            if other.pid:
                other.kill()


def _start_processes(others: Sequence[BaseProcess], store: TCPStore) -> None:
    """Start the worker processes and wait until each has begun its work.

    Raises:
        RunError: A worker ended before it began its work.
    """
    with blocking_ctrl_c():  # the workers unblock it as soon as they can handle it
        for other in others:
            other.start()
    for rank, other in enumerate(others, 1):
        while not store.check([f"started/{rank}"]):
            if not other.is_alive():
                raise RunError(
                    f"worker {rank} ended before it began (exit code {other.exitcode}): see its message above, or "
                    "start fewer workers if memory was short"
                )
            time.sleep(0.02)


def _watch_processes(others: Sequence[BaseProcess], done: threading.Event) -> None:
    """End the main process, which calls this, if a worker has died and ``done`` is not set within MAIN_GRACE_SECONDS.

    The main process may be blocked in an operation of torch that waits for the dead worker.

    Args:
        others: The processes of the other workers.
        done: Set when the main process ends by itself.
    """
    running = {other.sentinel: other for other in others}
    while running:
        ended = multiprocessing.connection.wait(list(running))
        for sentinel in [sentinel for sentinel in running if sentinel in ended]:
            other = running.pop(sentinel)
            other.join()
            if other.exitcode not in COMMON_EXIT_CODES and not done.wait(MAIN_GRACE_SECONDS):
                message = "%s has died (exit code %s). Start the same command again to resume"
                logger.error(message, other.name, other.exitcode)
                for process in others:
                    process.kill()
                os._exit(1)


def _worker_main(work: Callable[[RankInfo], None], rank: int, size: int, port: int) -> None:
    """Run a started worker process: connect to the store of the main process, and call ``work``."""
    os.environ["LOCAL_RANK"] = str(rank)
    # By default, tqdm's lock is shared between processes. If this process is killed, Python would warn of a leak.
    tqdm.set_lock(threading.RLock())
    end_with_parent()

    def join_and_work() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        store = TCPStore(HOST, port, is_master=False, timeout=SETUP_TIMEOUT)
        store.set(f"started/{rank}", "")
        work(RankInfo(rank, size, rank, size, store))

    end_with(join_and_work)


class WorkerSettings(Protocol):
    """The settings of a command, or of one of its sections, for devices and workers."""

    @property
    def device(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def workers(self) -> int | Literal["auto"]: ...


def run_workers(
    work: Callable[[Workers], None], settings: WorkerSettings, auto_on_cpu: int = 1, section: str = ""
) -> None:
    """Call ``work`` in each worker: in this process alone, in the processes of torchrun, or in processes that this
    function starts.

    Args:
        work: A picklable function.
        settings: The device, the number of workers, and the number of CPU threads of each worker.
        auto_on_cpu: The number of workers on a CPU for workers=auto.
        section: The prefix of the settings in messages, such as ``training.``.

    Raises:
        InputError: This machine lacks the device, or cannot have so many workers.
    """
    device = choose_device(settings.device, f"{section}device")
    size, info = 1, None
    if "TORCHELASTIC_RUN_ID" in os.environ:
        if settings.workers not in (1, "auto"):
            raise InputError(
                f"{section}workers={settings.workers}: torchrun sets the number of workers with --nproc-per-node; "
                f"remove {section}workers"
            )
        info = rank_info_from_torchrun()
    else:
        size = worker_count(settings, device, auto_on_cpu, section)
    threads = settings.threads or max(1, cpu_threads() // size)
    work_on = functools.partial(_run_worker, work, settings.device, threads)
    with local_workers(size, work_on) if size > 1 else nullcontext(info) as own_info:
        work_on(own_info)


def _run_worker(work: Callable[[Workers], None], device: str, threads: int, info: RankInfo | None) -> None:
    """Join the group of workers and call ``work``.

    Args:
        work: The function to call.
        device: The device of the settings.
        threads: The number of CPU threads of this process.
        info: The rank of this process; None if it is the only worker.
    """
    limit_kernel_caches()
    torch.set_num_threads(threads)
    with worker_group(choose_device(device), info) as workers:
        work(workers)


def worker_count(settings: WorkerSettings, device: torch.device, auto_on_cpu: int, section: str = "") -> int:
    """Return the number of workers to start on this machine; see ``run_workers``.

    Raises:
        InputError: There are too few devices or CPU cores for so many workers.
    """
    if device.type != "cpu":
        devices = torch.cuda.device_count() if device.type == "cuda" and device.index is None else 1
        if settings.workers != "auto" and settings.workers > devices:
            raise InputError(
                f"{section}workers={settings.workers}, but {section}device={device} means "
                f"{counted(devices, f'{device.type.upper()} device')}: set {section}workers=auto"
            )
        return devices if settings.workers == "auto" else settings.workers
    if settings.workers == "auto":
        return auto_on_cpu
    max_workers = MAX_WORKERS_PER_CORE * (os.cpu_count() or 1)
    if settings.workers > max_workers:
        raise InputError(
            f"{section}workers={settings.workers}: at most {max_workers} workers may share the {os.cpu_count()} CPU "
            f"cores of this machine; set {section}workers=auto"
        )
    return settings.workers
