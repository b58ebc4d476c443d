"""Writes a file that gets its name only when it is complete, and that a stopped command can continue.

Until then it is ``NAME.partial``, locked by the process that writes it.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from mt.core.errors import InputError, RunError
from mt.core.files import replace_durably, resolved, try_lock

logger = logging.getLogger(__name__)


def partial_path(output: str | Path) -> Path:
    """Return the name of a file until it is complete. If ``output`` is a link, the file is beside the link's target."""
    return Path(f"{resolved(output)}.partial")


def is_device(output: str | Path) -> bool:
    """Return whether an output is a device or a pipe, which cannot be replaced by a complete file."""
    path = Path(output)
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def partial_file(
    output: str | Path, setting: str = "output", resumes: bool = True, at_end: Literal["rename", "remove"] = "rename"
) -> Iterator[BinaryIO]:
    """Open and lock the partial file of an output, for reading and appending.

    At the end of the block, it takes the place of the output, or is removed. After an exception it stays, unless it is
    empty.

    Args:
        output: The complete file.
        setting: The key of the setting that names the output, for messages.
        resumes: Whether the caller continues what a stopped command has written. Otherwise it is cut off.
        at_end: ``remove`` if it is a journal only.

    Raises:
        InputError: The folder does not exist, or a folder has the name of the partial file.
        RunError: Another process is writing it.
    """
    partial = partial_path(output)
    if partial.is_dir():
        raise InputError(f"{setting}={output}: is written as {partial}, which is a folder")
    try:
        stream = partial.open("a+b")  # not "wb": another process may own it, so it is cut only once it is locked
    except FileNotFoundError:
        raise InputError(f"{setting}={output}: the folder does not exist") from None
    with stream:
        if not try_lock(stream, partial):
            raise RunError(f"{setting}={output}: another process is writing {partial}")
        if not resumes:
            stream.truncate(0)
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        except BaseException:
            stream.flush()
            if os.path.getsize(partial):
                advice = "; the same command goes on" if resumes else ""
                logger.warning("not finished: what is done so far is in %s%s", partial, advice)
            else:
                partial.unlink()
            raise
        if at_end == "rename":
            replace_durably(partial, resolved(output))
        else:
            partial.unlink()
