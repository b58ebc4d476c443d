"""Reads columns of a ``datasets.Dataset`` a few thousand rows at a time, also if it is a selection of rows.

``datasets`` itself gathers the rows of a selection one by one, which takes a minute for a million rows.
"""

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np
import pyarrow

if TYPE_CHECKING:
    import datasets

ROWS_AT_ONCE = 5000
MAX_ROW_DISTANCE = 30
"""If the selected rows of a batch have at most this mean distance, the rows between them are read, too, which is faster
than gathering the selected rows one by one."""
ROWS_PER_RELEASE = 500_000
"""Number of rows after which ``release_memory`` is called."""

_mapped: WeakValueDictionary[int, pyarrow.Buffer] = WeakValueDictionary()
"""The address of each mapped file → its content."""


def mapped_table(path: Path) -> pyarrow.Table:
    """Memory-map an Arrow stream file, and return its table. ``release_memory`` drops the pages that were read."""
    with pyarrow.memory_map(str(path)) as file:  # unlike an mmap of Python, its buffer needs no open file
        mapped = file.read_buffer()
    _mapped[mapped.address] = mapped
    return pyarrow.ipc.open_stream(pyarrow.py_buffer(mapped)).read_all()


def release_memory() -> None:
    """Return memory to the system: the pages of all files of ``mapped_table``, which are read again when needed, and
    the unused buffers of Arrow."""
    madvise = ctypes.CDLL(None).madvise
    for mapped in list(_mapped.values()):
        madvise(ctypes.c_void_p(mapped.address), ctypes.c_size_t(mapped.size), mmap.MADV_DONTNEED)
    pyarrow.default_memory_pool().release_unused()


def evenly_spaced_rows(count: int, max_rows: int, round_down: bool = False) -> np.ndarray:
    """Return ascending row numbers at even distances, from the first row to the last, (R,) int64.

    A sample of the first rows would be biased, because corpora are often sorted.

    Args:
        count: The number of rows to choose from.
        max_rows: The number of rows to choose. If there are fewer, all are returned.
        round_down: Round distances down instead of to the nearest row. Cleaning does this, because its verdicts depend
            on the exact sample.
    """
    rows = np.linspace(0, count - 1, min(count, max_rows))
    return (rows if round_down else rows.round()).astype(int)


def numbers(pairs: "datasets.Dataset", name: str) -> np.ndarray:
    """Return a column of numbers, (N,), in the order of ``pairs``. The array may be read-only."""
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
    """Yield columns of a dataset as a sequence of small tables.

    Args:
        pairs: The dataset to read.
        names: The names of the columns.
        rows: The numbers of the rows to read, (R,). The tables have them in this order. By default, all rows are read.
        rows_at_once: Maximum number of rows of a table.
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


def texts(pairs: "datasets.Dataset", name: str, rows: np.ndarray | None = None) -> Iterator[str]:
    """Yield the texts of a column in the order of ``pairs`` or of some ``rows``, read from the disk in batches."""
    for table in tables(pairs, [name], rows):
        yield from table[name].to_pylist()


def selected_rows(pairs: "datasets.Dataset") -> np.ndarray:
    """Return the row number in the underlying table of each row of a selection, (N,) uint64."""
    return pairs._indices.column(0).to_numpy()
