"""How files are read and written: lines end at ``\\n`` alone, and what is written is whole or not there."""

import contextlib
import errno
import fcntl
import gzip
import io
import logging
import lzma
import os
import re
import shutil
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

import pyarrow

from mt.errors import InputError
from mt.xz import XzReader

logger = logging.getLogger(__name__)

UNDECODABLE = re.compile(r"[\ud800-\udfff]")
"""Halves of surrogate pairs, unknown to UTF-8: the error handler ``surrogateescape`` makes them of other bytes."""
BLOCK = 1 << 20
"""Bytes that are read at once."""


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a plain, .gz, .xz or .zst file, without their ``\\n``.

    No other byte ends a line (not a lone CR, not U+2028, not NUL), and a last line needs no ``\\n``.

    Raises:
        InputError: the file is missing, unreadable, damaged or cut short.
    """
    with _reading(path) as stream:
        for line in stream:
            yield line.removesuffix(b"\n")


def read_blocks(path: Path) -> Iterator[bytes]:
    """The content of such a file, piece by piece; raises the same."""
    with _reading(path) as stream:
        while block := stream.read(BLOCK):
            yield block


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    try:
        with _open(path) as stream:
            yield stream
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{path}: cannot be read: {reason}") from error


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replaces a file as a whole: whoever opens it, at any time, finds the old content or all of the new.

    Raises:
        OSError: the disk is full or the folder is not writable; ``path`` is then as it was.
    """
    partial = _partial(path)
    try:
        with partial.open("xb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        replace_durably(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def replace_durably(partial: Path, path: Path) -> None:
    """Gives a complete file, whose content is on the disk, its name in the same folder; the name then outlives a power
    failure, too."""
    partial.replace(path)
    _fsync(path.parent)


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, if they are not there, so that they outlive a power failure.

    A new folder's name stands in the folder above it, which has to be flushed to the disk like a file.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _fsync(folder.parent)


def resolved(path: str | Path) -> Path:
    """The absolute path behind all links, whether there is a file or not. Raises InputError for links that lead in a
    circle."""
    try:
        found = Path(path).resolve()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            found.stat()
        return found
    except RuntimeError:  # from resolve, until Python 3.12
        pass
    except OSError as error:  # from stat
        if error.errno != errno.ELOOP:
            raise
    raise InputError(f"{path}: a symbolic link that leads in a circle")


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears under its name only when it is complete, in place of an older one.

    Yields a hidden folder beside ``path`` to write into. Leaving the block flushes every file to the disk and
    renames; an exception removes what was written and leaves ``path`` as it was. ``recover_folders``
    clears up after a process that was killed in between.
    """
    make_folder(path.parent)
    partial = _partial(path)
    replaced = partial.with_suffix(".replaced")
    partial.mkdir()
    try:
        yield partial
        for folder, _, names in os.walk(partial):
            for name in names:
                _fsync(Path(folder, name))
            _fsync(Path(folder))
        # A folder cannot be renamed onto one that holds files.
        with contextlib.suppress(FileNotFoundError):
            path.rename(replaced)
        partial.rename(path)
        _fsync(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):  # then recover_folders will have to
            _put_back(replaced, path)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(replaced, ignore_errors=True)


def try_lock(stream: IO, path: Path) -> bool:
    """Keeps an open file for this process until it is closed, however that happens; False if another process has it, or
    has removed it or put something else in its place. A disk without locks gets a warning."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        logger.warning("%s: this disk knows no locks: take care that no other process writes there", path.parent)
        return True


def recover_folders(folder: Path) -> None:
    """Undoes, in a folder and all folders beneath it, what a process left that was killed inside ``new_folder`` or
    ``write_atomically``.

    An older folder that was just being replaced gets its name back; everything unfinished is removed. Links are not
    followed. Not to be called while another process writes there.
    """
    for replaced in folder.glob(".*.replaced"):
        _put_back(replaced, folder / replaced.name.removeprefix(".").rsplit(".", 2)[0])
    for partial in folder.glob(".*.partial"):
        _remove(partial)
    for inner in folder.iterdir():
        if inner.is_dir() and not inner.is_symlink():
            recover_folders(inner)


def _put_back(replaced: Path, original: Path) -> None:
    """Gives an older folder its name back, or removes it if a newer one has the name; leaves it where it is, and raises
    OSError, if neither can be done."""
    if not original.exists():
        try:
            replaced.rename(original)
            return
        except OSError:
            if not original.exists():  # else another process has just put its own there
                raise
    _remove(replaced)


def _remove(path: Path) -> None:
    """A folder with all that it holds, a file, or a link without what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _open(path: Path) -> BinaryIO:
    match path.suffix:
        case ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        case ".xz":
            return io.BufferedReader(XzReader(path.open("rb")))
        case ".zst":
            return io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd"))
        case _:
            return path.open("rb")


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.partial")


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
