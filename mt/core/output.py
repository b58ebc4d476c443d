"""Writes an output file that a stopped command can continue.

Until the file is complete, its name is ``NAME.partial``, and the process that writes it holds its lock.
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
    """Return the path of the unfinished file, ``NAME.partial``. If ``output`` is a link, it lies beside the target."""
    return Path(f"{resolved(output)}.partial")


def is_device(output: str | Path) -> bool:
    """Return whether an output is a device or a pipe, which has to be written directly and not by renaming."""
    path = Path(output)
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def partial_file(
    output: str | Path, setting: str = "output", resumes: bool = True, at_end: Literal["rename", "remove"] = "rename"
) -> Iterator[BinaryIO]:
    """Context manager: open and lock ``partial_path(output)`` for reading and appending.

    After an exception, the partial file stays, unless it is empty.

    Args:
        output: The path of the complete file.
        setting: The key of the setting that names the output, for messages.
        resumes: Keep the content that a stopped command has left in the partial file. Otherwise it is truncated.
        at_end: At the end of the block, ``rename`` the partial file to ``output``, or ``remove`` it, if it is only a
            journal.

    Raises:
        InputError: The folder of the output does not exist, or a folder has the name of the partial file.
        RunError: Another process is writing the partial file.
    """
    partial = partial_path(output)
    if partial.is_dir():
        raise InputError(f"{setting}={output}: is written as {partial}, which is a folder; take another name")
    try:
        stream = partial.open("a+b")  # not "wb": another process may own it, so it is cut only once it is locked
    except FileNotFoundError:
        raise InputError(f"{setting}={output}: the folder {partial.parent} does not exist; create it first") from None
    with stream:
        if not try_lock(stream, partial):
            raise RunError(f"{setting}={output}: another process is writing {partial}; wait, or take another name")
        if not resumes:
            stream.truncate(0)
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        except BaseException:
            stream.flush()
            if os.path.getsize(partial):
                advice = "; start the same command again to continue" if resumes else ""
                logger.warning("not finished: the output so far is in %s%s", partial, advice)
            else:
                partial.unlink()
            raise
        if at_end == "rename":
            replace_durably(partial, resolved(output))
        else:
            partial.unlink()
