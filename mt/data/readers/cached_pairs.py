"""Keep the pairs of a corpus in the cache of ``datasets``, so that its files are parsed only once."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow

from mt.core.columns import ROWS_AT_ONCE
from mt.core.errors import InputError
from mt.data.cache import cached_table, digest
from mt.data.pairs import PAIRS, columns_of
from mt.data.parallel import in_order
from mt.data.split_report import Split

READER_VERSION = 7
"""A part of every cache key. Raise it when a change of the code gives other pairs or other columns for the same
file."""

Pairs = Iterable[tuple[str, str]]
"""Sources with their targets."""
Rows = Iterable[tuple[str, str] | InputError]
"""Pairs, and an error in place of each row that cannot be read although the file goes on behind it."""


def cached_split(origin: str, pairs: Callable[[], Rows], content: tuple) -> Split:
    """Return a split with the given pairs. The cache keeps its table, with the columns of PAIRS.

    Args:
        origin: The name of the files or the data set in messages.
        pairs: Reads the pairs. It is called only if the cache lacks the table.
        content: Everything that the pairs depend on.

    Raises:
        InputError: There are no pairs.
    """
    key = digest((READER_VERSION, unicodedata.unidata_version, content))

    def batches() -> Iterator[pyarrow.RecordBatch]:
        iterator = iter(pairs())
        return in_order(columns_of, iter(lambda: list(islice(iterator, ROWS_AT_ONCE)), []))

    table = cached_table(key, PAIRS, batches, f"reading {origin}")
    if not len(table):
        raise InputError(f"{origin}: it has no pairs; give a file or data set with text")
    return Split(table, origin)


def file_state(path: Path) -> tuple[str, int, int, int, int]:
    """Return the path of a file with its size, times and inode: a cache key that changes whenever the file changes.

    The size and the modification time can equal those of an earlier file (``cp -p``, ``rsync --times``, ``touch -r``).
    The time of the last status change and the inode cannot: the file system sets them itself.

    Raises:
        InputError: The file cannot be found or accessed.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; check the path and its permissions") from None
    return str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
