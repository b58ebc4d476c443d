"""Reads columns of a data set, also of one that is a selection of rows, without ever holding more text than a few
thousand rows.

``datasets`` itself gathers the rows of a selection one by one, which takes a minute for a million rows.
"""

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np
import pyarrow

if TYPE_CHECKING:
    import datasets

ROWS_AT_ONCE = 5000
NEIGHBOURS = 30
"""How far rows may be apart, on average, to be copied together with all that lie between them, which is quicker than
one by one."""
ROWS_PER_RELEASE = 500_000
"""After so many rows ``release_memory`` is called."""

_mapped: WeakSet[mmap.mmap] = WeakSet()


def mapped_table(path: Path) -> pyarrow.Table:
    """Returns the table of an Arrow file, which is read from the disk where and when it is looked at."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _mapped.add(mapped)
    return pyarrow.ipc.open_stream(pyarrow.py_buffer(mapped)).read_all()


def release_memory() -> None:
    """Gives back to the system what reading took: the pages of the files of ``mapped_table`` that were looked at, which
    may stay in the system's cache, and what Arrow keeps for its next copies."""
    for mapped in list(_mapped):
        mapped.madvise(mmap.MADV_DONTNEED)
    pyarrow.default_memory_pool().release_unused()


def evenly_spaced_rows(count: int, most: int) -> np.ndarray:
    """Returns the numbers of at most ``most`` rows of ``count``, at even distances: corpora are often sorted."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def numbers(pairs: "datasets.Dataset", name: str) -> np.ndarray:
    """Returns the values of a column of numbers, (N,), in the order of the rows. They may be read-only."""
    values = pairs.data.column(name).to_numpy()
    if pairs._indices is not None:
        values = values[selected_rows(pairs)]
    release_memory()
    return values


def tables(
    pairs: "datasets.Dataset",
    names: Sequence[str],
    rows: np.ndarray | None = None,
    rows_at_once: int = ROWS_AT_ONCE,
) -> Iterator[pyarrow.Table]:
    """Yields some columns, ``rows_at_once`` rows at a time.

    Args:
        pairs: What to read from.
        names: The names of the columns.
        rows: The numbers of the rows to read, (R,), in their order. By default, all rows are read.
        rows_at_once: The most rows of a table.
    """
    whole = pairs.data.select(list(names))
    if pairs._indices is not None:
        rows = selected_rows(pairs) if rows is None else selected_rows(pairs)[rows]
    read = 0
    for start in range(0, len(pairs) if rows is None else len(rows), rows_at_once):
        if rows is None:
            some = whole.fast_slice(start, min(rows_at_once, len(pairs) - start))
            read += len(some)
            yield some
        else:
            chosen = rows[start : start + rows_at_once]
            first, last = int(chosen.min()), int(chosen.max())
            between = last - first + 1
            if between <= NEIGHBOURS * rows_at_once:
                read += between
                yield whole.fast_slice(first, between).take(chosen - first)
            else:
                # To take rows, Arrow copies all that lies between the first and the last. This is slower, but copies
                # the rows alone. Each row that is far from the others brings in some ten pages.
                read += ROWS_PER_RELEASE
                yield whole.fast_gather(chosen.astype(np.int64))
        if read >= ROWS_PER_RELEASE:
            release_memory()
            read = 0


def selected_rows(pairs: "datasets.Dataset") -> np.ndarray:
    """Returns which rows of the table that it selects from are the rows of a selection, (N,) uint64."""
    return pairs._indices.column(0).to_numpy()
