"""Reads the pairs of several splits as if they were one."""

from collections.abc import Iterator, Sequence

import datasets
import numpy as np
import pyarrow

from mt.core.columns import tables
from mt.data.pairs import KEYS

COLUMNS = ("source", "target", *KEYS)


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
            yield from tables(split, COLUMNS, of_split)
            start = end

    def texts(self, rows: np.ndarray) -> Iterator[tuple[list[str], list[str]]]:
        """Yields the sources and the targets of some thousand pairs at a time, like ``tables``."""
        for table in self.tables(rows):
            yield table["source"].to_pylist(), table["target"].to_pylist()
