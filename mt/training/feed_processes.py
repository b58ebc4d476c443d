"""The number of processes for ``training.feed_processes`` on this machine."""

import torch

from mt.config import TrainConfig
from mt.data.parallel import available_cores

MAX_AUTO_FEED_PROCESSES = 8
"""For training.feed_processes=auto. As many feed the fastest GPU, and each holds some 200 MB of memory."""


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
