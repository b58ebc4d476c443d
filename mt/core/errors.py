"""The exceptions with which a command ends early on purpose. Any other that escapes is a bug of ours."""

import re
import sys
from pathlib import Path


class InputError(Exception):
    """The user's input or config is wrong. The message names the mistake and the remedy (exit code 2)."""


def damaged_file(path: Path, detail: str = "") -> InputError:
    """Return the error for a file of this project that cannot be understood. ``detail`` names the keys to blame."""
    keys = f": {detail}" if detail else ""
    return InputError(f"{path}: damaged or of another version{keys}; restore it from a copy, or train the run again")


class RunError(Exception):
    """The input is right, but the work could not go on: disk full, diverged, out of memory (exit code 1)."""


class WorkerDied(RunError):
    """Another worker has died.

    This is raised only in workers that were waiting for the dead one. When they end, the others learn of it.
    """


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived and all state is saved (exit code 130 or 143).

    Like KeyboardInterrupt it does not derive from Exception, so libraries that catch every Exception let it pass.
    """

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.signal_number = signal_number


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that a GPU or main memory is full.

    This does not import torch, which a command may not have needed yet.
    """
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError) or (torch and isinstance(error, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and bool(re.search("can't allocate memory|CUDA.* out of memory", str(error)))
