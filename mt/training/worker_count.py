"""The numbers of processes for ``training.workers`` and ``training.feed_processes`` on this machine."""

import os

import torch

from mt.config import TrainConfig, TrainingConfig
from mt.core.device import cpu_threads
from mt.core.errors import InputError
from mt.core.wording import counted
from mt.data.parallel import available_cores

MIN_BATCH_TOKENS_PER_WORKER = 1024
"""On a CPU, for training.workers=auto. An estimate: the smaller a worker's share of a batch, the more of its time goes
into exchanging gradients."""
MAX_WORKERS_PER_CORE = 4
"""More workers than cores only cost time, and each holds 0.3 GB or more of memory."""
MAX_AUTO_FEED_PROCESSES = 8
"""For training.feed_processes=auto. As many feed the fastest GPU, and each holds some 200 MB of memory."""


def worker_count(settings: TrainingConfig, device: torch.device) -> int:
    """Return the number of workers to start on this machine; for training.workers=auto, as many as it suits.

    Raises:
        InputError: There are too few devices or CPU cores for training.workers.
    """
    if device.type != "cpu":
        devices = torch.cuda.device_count() if device.type == "cuda" and device.index is None else 1
        if settings.workers != "auto" and settings.workers > devices:
            raise InputError(
                f"training.workers={settings.workers}, but training.device={device} means "
                f"{counted(devices, f'{device.type.upper()} device')}: set training.workers=auto"
            )
        return devices if settings.workers == "auto" else settings.workers
    if settings.workers != "auto":
        max_workers = MAX_WORKERS_PER_CORE * (os.cpu_count() or 1)
        if settings.workers > max_workers:
            raise InputError(
                f"training.workers={settings.workers}: this machine has {os.cpu_count()} CPU cores, which at most "
                f"{max_workers} workers may share; set training.workers=auto"
            )
        return settings.workers
    free_cores = cpu_threads() // max(1, settings.threads)
    return max(1, min(free_cores, settings.batch_tokens // MIN_BATCH_TOKENS_PER_WORKER))


def feed_process_count(config: TrainConfig, device: torch.device, local_size: int) -> int:
    """Return the number of processes that prepare the batches of each worker, as ``training.feed_processes`` says.

    Args:
        config: The config of the run.
        device: The device of the worker.
        local_size: The number of workers on this machine.
    """
    if not config.tokenizer.sampling and config.text.augmentation.is_off:
        return 0
    if config.training.feed_processes != "auto":
        return config.training.feed_processes
    if device.type == "cpu":
        return 0
    cores = available_cores() // local_size
    # On two cores, the process that feeds the GPU leaves most of its core to others.
    return max(1, min(MAX_AUTO_FEED_PROCESSES, cores if cores <= 2 else cores - 1))
