"""Reads and writes files: lines end at ``\\n`` alone, and a file or folder is written whole or not at all."""

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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

from mt.core.errors import InputError
from mt.core.xz import XzReader

logger = logging.getLogger(__name__)

UNDECODABLE = re.compile(r"[\ud800-\udfff]")
"""Halves of surrogate pairs, which UTF-8 cannot encode. The error handler ``surrogateescape`` makes them of bytes that
are not UTF-8."""


def _open_zst(path: Path) -> BinaryIO:
    import pyarrow  # not needed to check a config, and takes as long to import as all that is

    return io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd"))


COMPRESSIONS: dict[str, Callable[[Path], BinaryIO]] = {
    ".gz": lambda path: cast(BinaryIO, gzip.GzipFile(path)),
    ".xz": lambda path: io.BufferedReader(XzReader(path.open("rb"))),
    ".zst": _open_zst,
}
"""Opens a compressed file, by its suffix."""


def format_suffix(path: Path) -> str:
    """Return the suffix without that of a compression: ``.tsv`` of ``a.tsv.gz``."""
    return Path(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain, .gz, .xz or .zst file, without their ``\\n``.

    No other byte ends a line (not a lone CR, not U+2028, not NUL), and a last line needs no ``\\n``.

    Raises:
        InputError: The file is missing, unreadable, damaged or cut short.
    """
    with open_input(path) as stream:
        for line in stream:
            yield line.removesuffix(b"\n")


def read_file(path: Path) -> bytes:
    """Return the decompressed content of a file. Raise InputError as ``open_input`` does."""
    with open_input(path) as stream:
        return stream.read()


def read_start(path: Path) -> bytes:
    """Return up to 64 KiB from the start of a file, decompressed. Raise InputError as ``open_input`` does."""
    with open_input(path) as stream:
        return stream.read(1 << 16)


@contextlib.contextmanager
def open_input(path: Path) -> Iterator[BinaryIO]:
    """Open the content of a plain, .gz, .xz or .zst file.

    Raises:
        InputError: The file is missing, unreadable, damaged or cut short, as soon as that shows.
    """
    try:
        with COMPRESSIONS[path.suffix](path) if path.suffix in COMPRESSIONS else path.open("rb") as stream:
            yield stream
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{path}: cannot be read: {reason}") from error


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace a file atomically: whoever opens it, at any time, finds all of the old content or all of the new.

    Raises:
        OSError: The disk is full or the folder is not writable. ``path`` is then as it was.
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
    """Rename ``partial`` to ``path``, in the same folder, so that the new name outlives a power failure.

    ``partial`` must be complete, and its content must be on the disk already.
    """
    partial.replace(path)
    _fsync(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and the folders above it, where they are missing, so that they outlive a power failure.

    The name of a new folder is stored in the folder above it, which has to be flushed to the disk like a file.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _fsync(folder.parent)


def resolved(path: str | Path) -> Path:
    """Return the absolute path with all links followed, whether there is a file or not.

    Raises:
        InputError: The links lead in a circle.
    """
    target = Path(os.path.realpath(path))
    # Only links that lead in a circle are left.
    if any(map(os.path.islink, (target, *target.parents))):
        raise InputError(f"{path}: a symbolic link that leads in a circle")
    return target


def refuse_taken(key: str, path: str) -> Path:
    """Return the absolute path of a folder to write, with all links followed.

    Raises:
        InputError: It exists and is not an empty folder, or could not be replaced by the new one. The message names the
            setting, ``key``.
    """
    folder = resolved(path)
    if folder == Path.cwd() or os.path.ismount(folder):
        raise InputError(f"{key}={path}: the current folder and mount points cannot be replaced; take a new folder")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"{key}={path}: exists and is not empty; take a new folder")
    return folder


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Make a folder that appears under its name only when it is complete, in place of an older one if there is one.

    Yields a hidden folder beside ``path`` to write into. Leaving the block flushes every file to the disk and
    renames; an exception removes the hidden folder and leaves ``path`` as it was. ``recover_folders``
    cleans up after a process that was killed in between.
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
        with contextlib.suppress(OSError):  # then recover_folders has to do it
            _put_back(replaced, path)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(replaced, ignore_errors=True)


def try_lock(stream: IO, path: Path) -> bool:
    """Lock an open file for this process until it is closed, in whatever way that happens.

    On a disk that does not support locks, a warning is logged and the file counts as locked.

    Returns:
        Whether the file is now locked. It is not if another process holds the lock, or has removed the file or put
        another in its place.
    """
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        logger.warning("%s: this file system has no locks: make sure that no other process writes there", path.parent)
        return True


@contextlib.contextmanager
def wait_for_lock(path: Path) -> Iterator[None]:
    """Context manager: lock a file, after waiting for other processes. Without support of locks, do not wait."""
    with path.open("a") as stream:
        with contextlib.suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def recover_folders(folder: Path) -> None:
    """Clean up after a process that was killed inside ``new_folder`` or ``write_atomically``.

    This concerns the folder and all folders beneath it. An older folder that was just being replaced gets its name
    back, and everything unfinished is removed. Links are not followed. Must not be called while another process writes
    there.
    """
    for replaced in folder.glob(".*.replaced"):
        _put_back(replaced, folder / replaced.name.removeprefix(".").rsplit(".", 2)[0])
    for partial in folder.glob(".*.partial"):
        _remove(partial)
    for inner in folder.iterdir():
        if inner.is_dir() and not inner.is_symlink():
            recover_folders(inner)


def _put_back(replaced: Path, original: Path) -> None:
    """Give an older folder its name back, or remove it if a newer one has that name.

    Raises:
        OSError: Neither can be done. The older folder is left where it is.
    """
    if not original.exists():
        try:
            replaced.rename(original)
            return
        except OSError:
            if not original.exists():  # otherwise another process has just put its own folder there
                raise
    _remove(replaced)


def _remove(path: Path) -> None:
    """Remove a file, a folder with its contents, or a link but not its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.partial")


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
