"""The exceptions that end a command with one message instead of a traceback. Any other that escapes is a bug."""

import errno
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path


class InputError(Exception):
    """The user's input or config is wrong. The message names the mistake and the remedy (exit code 2)."""


RESTORE_OR_RETRAIN = "restore it from a backup, or train again under another name (name=…)"
"""The remedy for a damaged file that only training writes."""


def damaged_file(path: Path, reason: str, remedy: str = RESTORE_OR_RETRAIN) -> InputError:
    """Return the error for a file that this project wrote and can no longer read.

    Args:
        path: The file.
        reason: The fault, such as "no checksum at its end".
        remedy: Advice to the user, as the last part of the message.
    """
    return InputError(f"{path}: damaged, or written by another version of mt-trainer ({reason}); {remedy}")


def wrong_keys(keys: Iterable[str]) -> str:
    """Return the reason for ``damaged_file`` if values of a file are missing or wrong. Repeated keys count once."""
    return f"wrong or missing: {', '.join(dict.fromkeys(keys))}"


class RunError(Exception):
    """The input is right, but the work could not go on: disk full, diverged, out of memory (exit code 1)."""


class WorkerDied(RunError):
    """Another worker process has died.

    The workers that were waiting for a message of the dead worker raise this. The rest of the workers notice when those
    end.
    """


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived, and all state is saved (exit code 130, 143 or 129).

    This is not a subclass of Exception, as KeyboardInterrupt is not, so libraries that catch Exception let it pass.
    """

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.signal_number = signal_number


def is_exhaustion(error: BaseException) -> bool:
    """Return whether a single error means that memory or open files are used up. No file is then at fault."""
    is_limit = isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
    return is_limit or is_out_of_memory(error)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on: libraries wrap the errors of the system."""
    cause: BaseException | None = error
    visited: list[BaseException] = []
    while cause is not None and cause not in visited:  # a cause that was raised again leads back to itself
        yield cause
        visited.append(cause)
        cause = cause.__cause__ or cause.__context__


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a GPU's memory or the main memory is full.

    PyTorch's own error counts only if torch is already imported: this function does not import it.
    """
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError) or (torch and isinstance(error, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and bool(re.search("can't allocate memory|CUDA.* out of memory", str(error)))
