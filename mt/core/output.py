"""Output files that a command writes a window of lines at a time, and continues after it was stopped.

Until a file is complete, its name is ``NAME.partial``. The record, a file beside it, has a JSON line for each complete
window: the job, the number of lines so far, the sizes of the files, and a value of the caller. After a kill at any
instant, the same job continues after the last complete window. The process that writes the files holds their locks.
"""

import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from mt.core.errors import InputError, RunError
from mt.core.files import replace_durably, resolved, try_lock

logger = logging.getLogger(__name__)


@dataclass
class ResumableOutputs:
    """Open outputs, and the record of their complete windows. ``resumable_outputs`` makes it."""

    streams: Sequence[BinaryIO]
    record: BinaryIO | None = None
    """None if a command that is stopped has to begin anew."""
    job: Any = None
    lines: int = 0
    """The number of lines in all complete windows."""
    values: list[Any] = field(default_factory=list)
    """The values of the windows that were complete when the command started."""

    def append(self, lines: int, contents: Sequence[bytes] = (), value: Any = None) -> None:
        """Append a window to the outputs, and then to the record.

        Args:
            lines: The number of lines of the window.
            contents: The bytes for each output.
            value: A JSON value for the record.
        """
        for stream, content in zip(self.streams, contents, strict=True):
            stream.write(content)
            stream.flush()
            if self.record:
                os.fsync(stream.fileno())
        self.lines += lines
        if self.record:
            self.record.write(f"{json.dumps([self.job, self.lines, _sizes(self.streams), value])}\n".encode())
            self.record.flush()


@contextmanager
def resumable_outputs(
    outputs: Sequence[str | None], job: Callable[[], Any] | None, only_record: bool = False
) -> Iterator[ResumableOutputs]:
    """Context manager: open and lock outputs, and continue those that the same job has left unfinished.

    Files get their names at the end of the block. After an exception, the partial files stay, unless they are empty.

    Args:
        outputs: The path of each output. Standard output (None), devices and pipes are written directly.
        job: Returns everything that the outputs depend on, as a JSON value. It is called only if all outputs are files.
            None: unfinished outputs are overwritten.
        only_record: Keep only a record, as the partial file of the first output. The caller writes the outputs.

    Raises:
        InputError: The folder of an output does not exist.
        RunError: Another process is writing the same output.
    """
    files = [path for path in outputs if path and not is_stream(path, sys.stdout) and not is_device(path)]
    with ExitStack() as stack:
        record = None
        if job and len(files) == len(outputs):
            named = partial_path(files[0]) if only_record else record_path(files[0])
            record = stack.enter_context(_partial_file(named, None))
        streams = [] if only_record else [stack.enter_context(_output(path, bool(record))) for path in outputs]
        written = ResumableOutputs(streams, record)
        if job and record:
            written.job = job()
            _resume(written, record)
        try:
            yield written
        except BaseException:
            if begun := [path for path in map(partial_path, files) if os.path.getsize(path)]:
                hint = "; start the same command again to continue" if record else ""
                logger.warning("not finished: the output so far is in %s%s", begun[0], hint)
            elif record:
                record.truncate(0)
            raise


def _resume(written: ResumableOutputs, record: BinaryIO) -> None:
    """Cut outputs and their record to the last complete window of the same job, and read the record."""
    sizes, kept, end = _sizes(written.streams), [0] * len(written.streams), 0
    record.seek(0)
    with contextlib.suppress(TypeError, ValueError):  # corrupted
        for line in record:
            job, lines, ends, value = json.loads(line)
            fits = all(size <= own for size, own in zip(ends, sizes, strict=True))
            if job != written.job or not fits or not line.endswith(b"\n"):
                break
            written.lines, kept, end = lines, ends, end + len(line)
            written.values.append(value)
    if written.lines:
        logger.info("continuing an interrupted job after %s lines", f"{written.lines:,}")
    elif any(sizes or _sizes([record])):
        logger.warning("%s: of another job or version, or corrupted; beginning anew", record.name)
    for stream, size in zip([*written.streams, record], [*kept, end], strict=True):
        stream.truncate(size)


def partial_path(output: str | Path) -> Path:
    """Return the path of the unfinished file, ``NAME.partial``. If ``output`` is a link, it lies beside the target."""
    return Path(f"{resolved(output)}.partial")


def record_path(output: str | Path) -> Path:
    """Return the path of the record of an unfinished file, ``NAME.partial.json``."""
    return Path(f"{partial_path(output)}.json")


def refuse_to_overwrite(outputs: Iterable[tuple[str, str | Path | None]], inputs: Iterable[str | Path | None]) -> None:
    """Raise InputError if an output is a folder, or would overwrite an input or another output.

    Args:
        outputs: The setting and the path of each output. None: standard output.
        inputs: The path of each input. None: there is none, or it is standard input.
    """
    reserved = {resolved(path): f"the input {path}" for path in inputs if path is not None}
    for setting, path in outputs:
        if path is None:
            continue
        if resolved(path).is_dir():
            raise InputError(f"{setting}={path} is a folder: give the path of a file")
        files = resolved(path), partial_path(path), record_path(path)
        if overwritten := [reserved[file] for file in files if file in reserved]:
            raise InputError(f"{setting}={path} would overwrite {overwritten[0]}: give another path")
        if any(is_stream(file, sys.stdin) for file in files[1:]):
            raise InputError(f"{setting}={path} would overwrite the input, {files[1]}: give another path")
        if not is_device(path):
            reserved |= dict.fromkeys(files, f"{setting}={path}")


def recorded_job(output: str | Path) -> Any:
    """Return the job of an unfinished file, or None if it has no record."""
    try:
        with record_path(output).open("rb") as record:
            return json.loads(record.readline())[0]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def is_device(output: str | Path) -> bool:
    """Return whether an output is a device or a pipe, which has to be written directly and not by renaming."""
    path = Path(output)
    return path.exists() and not path.is_file() and not path.is_dir()


def is_stream(path: str | Path, stream: TextIO | None) -> bool:
    """Return whether a path, such as ``/dev/stdout``, is the file, device or pipe of a stream."""
    try:
        return stream is not None and os.path.samestat(os.stat(path), os.fstat(stream.fileno()))
    except (OSError, ValueError):  # no such file, or a stream without a file descriptor
        return False


def _sizes(streams: Sequence[BinaryIO]) -> list[int]:
    return [os.path.getsize(stream.fileno()) for stream in streams]


@contextmanager
def _output(path: str | None, resumes: bool) -> Iterator[BinaryIO]:
    """Open an output. A partial file that is not resumed is emptied."""
    if path is None or is_stream(path, sys.stdout):
        yield sys.stdout.buffer
    elif is_device(path):
        with Path(path).open("wb") as stream:
            yield stream
    else:
        with _partial_file(partial_path(path), resolved(path)) as stream:
            if not resumes:
                stream.truncate(0)
            yield stream


@contextmanager
def _partial_file(partial: Path, output: Path | None) -> Iterator[BinaryIO]:
    """Open and lock a file for reading and appending. At the end of the block, rename it to ``output``, or remove it if
    that is None. After an exception, remove it if it is empty."""
    try:
        stream = partial.open("a+b")  # not "wb": another process may own it, so it is cut only once it is locked
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"the folder {partial.parent} does not exist; create it first") from None
    except IsADirectoryError:
        raise InputError(f"{partial} is a folder; remove it, or name another output") from None
    with stream:
        if not try_lock(stream, partial):
            raise RunError(f"another process is writing {partial}; wait, or name another output")
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        except BaseException:
            stream.flush()
            if not os.path.getsize(partial):
                partial.unlink()
            raise
        if output:
            replace_durably(partial, output)
        else:
            partial.unlink()
