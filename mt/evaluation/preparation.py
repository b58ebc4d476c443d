"""Common steps of the commands that compare and measure runs."""

from pathlib import Path

import torch

from mt.core.device import choose_device, limit_kernel_caches
from mt.core.errors import InputError
from mt.core.files import resolved


def prepare_device(device: str, threads: int) -> None:
    """Set the number of threads, and raise InputError if the device is missing."""
    limit_kernel_caches()
    if threads:
        torch.set_num_threads(threads)
    choose_device(device)


def report_folder(output: str | None, default: Path) -> Path:
    """Return the folder of a report. Raise InputError if it cannot be one."""
    folder = Path(output) if output else default
    resolved(folder)  # refuses links that lead in a circle
    if folder.exists() and not folder.is_dir():
        raise InputError(f"output={folder}: is a file; the report is a folder")
    return folder
