"""Keeps the pairs that are read in the cache of ``datasets``."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from mt.core.columns import ROWS_AT_ONCE
from mt.core.errors import InputError
from mt.data.cache import cached_table, digest
from mt.data.pairs import PAIRS, columns_of
from mt.data.parallel import in_order
from mt.data.split_report import Split

VERSION = 5
"""Part of every cache key. Raise it when the same input is to give other pairs or other columns than before."""

Pairs: TypeAlias = Iterable[tuple[str, str]]


def cached_split(origin: str, pairs: Callable[[], Pairs], content: tuple) -> Split:
    """Return a split of some pairs, from the cache if it has them.

    Args:
        origin: The name of the corpus in messages.
        pairs: Reads the pairs. It is called only if the cache does not have them.
        content: All that the pairs depend on.

    Raises:
        InputError: There are no pairs.
    """
    key = digest((VERSION, unicodedata.unidata_version, content))
    table = cached_table(key, PAIRS, lambda: in_order(columns_of, _lists(pairs())), f"reading {origin}")
    if not len(table):
        raise InputError(f"{origin}: there is not one pair in it")
    return Split(table, origin)


def _lists(pairs: Pairs) -> Iterator[list[tuple[str, str]]]:
    iterator = iter(pairs)
    return iter(lambda: list(islice(iterator, ROWS_AT_ONCE)), [])


def file_state(path: Path) -> tuple[str, int, int, int, int]:
    """Return a key that changes with the content of a file, without reading it.

    The size and the modification time can be those of an earlier file (``cp -p``, ``rsync --times``, ``touch -r``). The
    time of the last status change and the inode cannot: the file system sets them itself.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
