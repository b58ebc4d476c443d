"""The ways a command ends early on purpose. Anything else that escapes is a bug of ours."""

import re
import sys


class InputError(Exception):
    """The user's input or config is wrong: one message that names what and how to mend it (exit code 2)."""


class RunError(Exception):
    """Work that was rightly asked for could not go on: disk full, diverged, out of memory (exit code 1)."""


class WorkerDied(RunError):
    """Raised only in workers that were waiting for the dead one; their end tells the others."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived and all state is saved (exit code 130 or 143).

    Like KeyboardInterrupt it passes libraries that catch every Exception.
    """

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.signal_number = signal_number


def is_out_of_memory(error: BaseException) -> bool:
    """On a GPU or in main memory; without importing torch, which a command may not have needed yet."""
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError) or (torch and isinstance(error, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and bool(re.search("can't allocate memory|CUDA.* out of memory", str(error)))
