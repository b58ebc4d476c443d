"""Reads columns of a data set, also of a selection of rows, without holding more text than a few thousand rows.

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
MAX_ROW_DISTANCE = 30
"""Rows that are nearer to each other, on average, are copied together with all rows between them, which is quicker than
one by one."""
ROWS_PER_RELEASE = 500_000
"""Number of rows after which ``release_memory`` is called."""

_mapped: WeakSet[mmap.mmap] = WeakSet()


def mapped_table(path: Path) -> pyarrow.Table:
    """Return the memory-mapped table of an Arrow file."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _mapped.add(mapped)
    return pyarrow.ipc.open_stream(pyarrow.py_buffer(mapped)).read_all()


def release_memory() -> None:
    """Give the memory that reading took back to the system: pages of the files of ``mapped_table``, which may stay in
    the system's cache, and the buffers that Arrow keeps for its next copies."""
    for mapped in list(_mapped):
        mapped.madvise(mmap.MADV_DONTNEED)
    pyarrow.default_memory_pool().release_unused()


def evenly_spaced_rows(count: int, max_rows: int) -> np.ndarray:
    """Return the numbers of at most ``max_rows`` rows of ``count``, at even distances: corpora are often sorted."""
    return np.linspace(0, count - 1, min(count, max_rows)).round().astype(int)


def numbers(pairs: "datasets.Dataset", name: str) -> np.ndarray:
    """Return the values of a column of numbers, (N,), in the order of the rows. They may be read-only."""
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
    """Yield some columns, at most ``rows_at_once`` rows at a time.

    Args:
        pairs: The data set to read.
        names: The names of the columns.
        rows: The numbers of the rows to read, (R,), in their order. By default, all rows are read.
        rows_at_once: The most rows of a table.
    """
    table = pairs.data.select(list(names))
    if pairs._indices is not None:
        rows = selected_rows(pairs) if rows is None else selected_rows(pairs)[rows]
    count = len(pairs) if rows is None else len(rows)
    rows_read = 0
    for start in range(0, count, rows_at_once):
        if rows is None:
            length = min(rows_at_once, count - start)
            yield table.fast_slice(start, length)
        else:
            part = rows[start : start + rows_at_once]
            first = int(part.min())
            length = int(part.max()) - first + 1
            if length <= MAX_ROW_DISTANCE * rows_at_once:
                yield table.fast_slice(first, length).take(part - first)
            else:
                # To take rows, Arrow copies all that lies between the first and the last. This is slower, but copies
                # the rows alone. Each row that is far from the others brings in some ten pages.
                length = ROWS_PER_RELEASE
                yield table.fast_gather(part.astype(np.int64))
        rows_read += length
        if rows_read >= ROWS_PER_RELEASE:
            release_memory()
            rows_read = 0


def texts(pairs: "datasets.Dataset", name: str) -> Iterator[str]:
    """Yield the texts of a column, read from the disk in batches."""
    for table in tables(pairs, [name]):
        yield from table[name].to_pylist()


def selected_rows(pairs: "datasets.Dataset") -> np.ndarray:
    """Return the numbers of the rows that a selection has of its table, (N,) uint64."""
    return pairs._indices.column(0).to_numpy()
