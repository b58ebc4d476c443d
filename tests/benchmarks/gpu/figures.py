"""The figures of a part, as JSON lines on stdout."""

import json
import logging
from collections.abc import Mapping

import torch

SIGNIFICANT_DIGITS = 4


def tell(**figures: object) -> None:
    """Print figures as one JSON line."""
    print(json.dumps({name: _rounded(value) for name, value in figures.items()}), flush=True)


def _rounded(value: object) -> object:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if isinstance(value, float) else value


class WarningFigures(logging.Handler):
    """Tells the warnings of updates, such as that packed batches are padded on this machine."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        tell(warning=record.getMessage())


def peak_memory(device: torch.device) -> Mapping[str, float]:
    """Return the peak memory of this process on a GPU, in MiB; nothing on a CPU."""
    return {"peak_mib": torch.cuda.max_memory_allocated(device) / 2**20} if device.type == "cuda" else {}


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has computed everything."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
