"""Reads plain and compressed files, writes files and folders atomically, and locks files.

Lines end at ``\\n`` alone.
"""

import contextlib
import errno
import fcntl
import glob
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
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, BinaryIO, cast

from mt.core.errors import InputError, is_exhaustion

logger = logging.getLogger(__name__)

UNDECODABLE = re.compile(r"[\ud800-\udfff]")
"""Matches a surrogate. The error handler ``surrogateescape`` decodes each byte that is not UTF-8 as a surrogate."""


class _CheckedFile(io.FileIO):
    """A file that knows whether it was read up to its end."""

    at_end = False

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        self.at_end = not content
        return content


@contextlib.contextmanager
def _open_xz(path: Path) -> Iterator[BinaryIO]:
    """Open an .xz file. ``lzma`` alone ends without an error before whatever is not a valid stream, and before padding
    between streams, so that half of a file could be missing unnoticed."""
    with _CheckedFile(path) as file, lzma.open(file, format=lzma.FORMAT_XZ) as stream:
        yield cast(BinaryIO, stream)
        if not stream.read(1) and not file.at_end:
            raise lzma.LZMAError("its compressed data is followed by something else")


def _open_zst(path: Path) -> BinaryIO:
    import pyarrow  # not needed to check a config, and takes as long to import as all that is

    return io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd"))


COMPRESSIONS: dict[str, Callable[[Path], AbstractContextManager[BinaryIO]]] = {
    ".gz": lambda path: cast(BinaryIO, gzip.GzipFile(path)),
    ".xz": _open_xz,
    ".zst": _open_zst,
}
"""Suffix of a compressed file → function that opens it for reading."""


def matching_files(pattern: str) -> list[Path]:
    """Return the files that match a pattern as ``glob`` reads it, sorted. ``**`` stands for any number of folders."""
    return sorted({Path(file) for file in glob.glob(pattern, recursive=True) if Path(file).is_file()})


def format_suffix(path: Path) -> str:
    """Return the suffix of a file, without a suffix of COMPRESSIONS: ``.tsv`` for ``a.tsv.gz`` and ``a.tsv``."""
    return Path(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain, .gz, .xz or .zst file, without their ``\\n``.

    No other byte ends a line (not a lone CR, not U+2028, not NUL), and a last line needs no ``\\n``.

    Raises:
        InputError: The file is missing, unreadable, corrupted or cut short.
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
    """Context manager: open a plain, .gz, .xz or .zst file as a stream of decompressed bytes.

    Raises:
        InputError: The file is missing, unreadable, corrupted or cut short. Some damage shows only while the stream is
            read.
    """
    try:
        with COMPRESSIONS[path.suffix](path) if path.suffix in COMPRESSIONS else path.open("rb") as stream:
            yield stream
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if is_exhaustion(error):
            raise  # the file is intact
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        remedy = "check its permissions" if isinstance(error, PermissionError) else "get a new copy of the file"
        raise InputError(f"{path}: cannot be read: {reason}; {remedy}") from error


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace a file atomically: whoever opens it, at any time, finds all of the old content or all of the new.

    Raises:
        OSError: The disk is full or the folder is not writable. ``path`` is then as it was.
    """
    partial = _partial_path(path)
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
    """Make a folder and its missing parents, durably: they outlive a power failure.

    The name of a new folder is stored in its parent, so the parent has to be flushed to the disk.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _fsync(folder.parent)


def resolved(path: str | Path) -> Path:
    """Return the absolute path with all symbolic links followed. The file need not exist.

    Raises:
        InputError: The links lead in a circle.
    """
    target = Path(os.path.realpath(path))
    # Only links that lead in a circle are left.
    if any(map(os.path.islink, (target, *target.parents))):
        raise InputError(f"{path}: a symbolic link that leads in a circle; remove or correct the link")
    return target


def resolve_new_folder(path: str) -> Path:
    """Return the absolute path of a folder that ``atomic_folder`` is to write, with all links followed.

    Args:
        path: The setting ``output``.

    Raises:
        InputError: There is a file or a folder that is not empty, or a folder that cannot be replaced.
    """
    folder = resolved(path)
    if folder == Path.cwd() or os.path.ismount(folder):
        raise InputError(f"output={path}: the current folder and mount points cannot be replaced; take a new folder")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"output={path}: exists and is not empty; take a new folder")
    return folder


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Context manager: write the folder ``path`` atomically. It must not exist yet, or be empty.

    Yields a hidden folder beside ``path`` to write into. At the end of the block, its files are flushed to the disk and
    it is renamed to ``path``. After an exception, it is removed and ``path`` is as before. If the process is killed,
    ``recover_folders`` cleans up later.

    Raises:
        OSError: The disk is full, or another process has written the folder meanwhile. ``path`` is then as it was.
    """
    make_folder(path.parent)
    partial = _partial_path(path)
    partial.mkdir()
    try:
        yield partial
        for folder, _, names in os.walk(partial):
            for name in names:
                _fsync(Path(folder, name))
            _fsync(Path(folder))
        partial.rename(path)
        _fsync(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def try_lock(stream: IO, path: Path) -> bool:
    """Lock an open file until it is closed or this process ends. Do not wait if another process holds the lock.

    On a file system without locks, log a warning and return True.

    Args:
        stream: The open file.
        path: Its path.

    Returns:
        Whether the file is now locked and still is the file at ``path``, which another process may have removed or
        replaced.
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
    """Context manager: hold the lock of a file, which is created if missing, after waiting for other processes.

    On a file system without locks, do nothing.
    """
    with path.open("a") as stream:
        with contextlib.suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def recover_folders(folder: Path) -> None:
    """Clean up a folder and its subfolders after a process that was killed in ``atomic_folder`` or
    ``write_atomically``.

    Unfinished files and folders are removed. Version 1.0.0 moved a folder away before it gave the name to another one:
    such a folder gets its name back, if the name is free. Links are not followed. No other process may write into the
    folder meanwhile.
    """
    for replaced in folder.glob(".*.replaced"):
        original = folder / replaced.name.removeprefix(".").rsplit(".", 2)[0]
        if original.exists():
            _remove(replaced)
        else:
            replaced.rename(original)
    for partial in folder.glob(".*.partial"):
        _remove(partial)
    for inner in folder.iterdir():
        if inner.is_dir() and not inner.is_symlink():
            recover_folders(inner)


def _remove(path: Path) -> None:
    """Remove a file, a folder with its contents, or a link but not its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _partial_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.partial")


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
