"""Reads the pairs of several splits as if they were one."""

from collections.abc import Iterator, Sequence

import datasets
import numpy as np
import pyarrow

from mt.data.corpus import KEYS

ROWS_AT_ONCE = 5_000


class Pairs:
    """The pairs of several splits, numbered from the first of the first split to the last of the last."""

    def __init__(self, splits: Sequence[datasets.Dataset]) -> None:
        self._splits = splits
        self._ends = np.cumsum([len(split) for split in splits])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def tables(self, rows: np.ndarray) -> Iterator[pyarrow.Table]:
        """Yields the columns ``source``, ``target`` and KEYS of some thousand pairs at a time.

        Args:
            rows: The numbers of the pairs to read, in ascending order.
        """
        start = 0
        for split, end in zip(self._splits, self._ends, strict=True):
            of_split = rows[(rows >= start) & (rows < end)] - start
            for first in range(0, len(of_split), ROWS_AT_ONCE):
                yield _take(split, of_split[first : first + ROWS_AT_ONCE])
            start = end

    def texts(self, rows: np.ndarray) -> Iterator[tuple[list[str], list[str]]]:
        """Yields the sources and the targets of some thousand pairs at a time, like ``tables``."""
        for table in self.tables(rows):
            yield table["source"].to_pylist(), table["target"].to_pylist()


def _take(pairs: datasets.Dataset, rows: np.ndarray) -> pyarrow.Table:
    """Returns rows of a data set. ``datasets`` itself gathers the rows of a selection one by one."""
    if pairs._indices is not None:
        rows = pairs._indices.column(0).take(pyarrow.array(rows)).to_numpy()
    table = pairs.data.table.select(["source", "target", *KEYS])
    low, high = int(rows.min()), int(rows.max())
    if high - low < 20 * len(rows):  # from a few chunks of the table, which is far faster than from all
        table, rows = table.slice(low, high - low + 1).combine_chunks(), rows - low
    return table.take(pyarrow.array(rows))
