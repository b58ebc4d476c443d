"""Start the workers of a command: the number of them on this machine, and the work of each."""

import functools
import os
from collections.abc import Callable
from typing import Literal, Protocol

import torch

from mt.core.device import choose_device, cpu_threads, limit_kernel_caches
from mt.core.errors import InputError
from mt.core.wording import counted
from mt.distributed.local_workers import local_workers
from mt.distributed.process_group import RankInfo, rank_info_from_torchrun, under_torchrun
from mt.distributed.workers import Workers, working_together

MAX_WORKERS_PER_CORE = 4
"""More workers than cores only cost time, and each holds 0.3 GB or more of memory."""


class WorkerSettings(Protocol):
    """The settings of a command, or of its section, that say where it works."""

    @property
    def device(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def workers(self) -> int | Literal["auto"]: ...


def work_together(
    work: Callable[[Workers], None], settings: WorkerSettings, auto_on_cpu: int = 1, section: str = ""
) -> None:
    """Do ``work`` in each worker: in this process alone, in those of torchrun, or in others that are started here.

    Args:
        work: A picklable function.
        settings: The device, the number of workers and the CPU threads of each.
        auto_on_cpu: The number of workers on a CPU for workers=auto.
        section: The start of the keys of the settings, for messages, such as ``training.``.

    Raises:
        InputError: This machine lacks the device, or cannot have so many workers.
    """
    default_threads = cpu_threads()  # remembers the default before torch is given another number
    device = choose_device(settings.device, f"{section}device")
    if under_torchrun():
        if settings.workers not in (1, "auto"):
            raise InputError(
                f"{section}workers={settings.workers}: torchrun sets the number of workers with --nproc-per-node; "
                f"leave {section}workers out"
            )
        _work_as_one(work, settings.device, settings.threads, rank_info_from_torchrun())
    elif (size := worker_count(settings, device, auto_on_cpu, section)) == 1:
        _work_as_one(work, settings.device, settings.threads, None)
    else:
        threads = settings.threads or max(1, default_threads // size)
        share = functools.partial(_work_as_one, work, settings.device, threads)
        with local_workers(size, share) as info:
            share(info)


def _work_as_one(work: Callable[[Workers], None], device: str, threads: int, info: RankInfo | None) -> None:
    """Do the share of one worker, this process.

    Args:
        work: The work.
        device: The device of the settings.
        threads: CPU threads of this process; 0 for the default.
        info: The rank of this process; None if it is the only one.
    """
    limit_kernel_caches()
    torch.set_num_threads(threads or cpu_threads())
    with working_together(choose_device(device), info) as workers:
        work(workers)


def worker_count(settings: WorkerSettings, device: torch.device, auto_on_cpu: int, section: str = "") -> int:
    """Return the number of workers to start on this machine; see ``work_together``.

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
            f"{section}workers={settings.workers}: this machine has {os.cpu_count()} CPU cores, which at most "
            f"{max_workers} workers may share; set {section}workers=auto"
        )
    return settings.workers
