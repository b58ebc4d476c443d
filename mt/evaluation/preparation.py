"""The first steps of ``mt compare`` and ``mt robustness``: the device and the folder of the report."""

from pathlib import Path

import torch

from mt.config.fields import MachineConfig
from mt.core.device import choose_device, limit_kernel_caches
from mt.core.errors import InputError
from mt.core.files import resolved


def prepare_device(config: MachineConfig) -> None:
    """Limit PyTorch's memory for kernels, and set its number of CPU threads unless ``config.threads`` is 0.

    Raises:
        InputError: This machine has no such device.
    """
    limit_kernel_caches()
    if config.threads:
        torch.set_num_threads(config.threads)
    choose_device(config.device)


def report_folder(output: str | None, default: Path) -> Path:
    """Return the folder for a report: the setting ``output`` or, if that is None, ``default``. It is not created.

    Raises:
        InputError: The path is a file, or its symbolic links lead in a circle.
    """
    folder = Path(output) if output else default
    resolved(folder)  # raises InputError if links lead in a circle
    if folder.exists() and not folder.is_dir():
        raise InputError(f"output={folder} is a file, but a report needs a folder; set output=FOLDER")
    return folder
