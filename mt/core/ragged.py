"""Rows of different lengths in NumPy, without a loop over the rows."""

from typing import Any

import numpy as np


def slices_of(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the concatenation of ``values[start : start + length]`` for each start and length, both (R,)."""
    return values[np.arange(lengths.sum()) + np.repeat(starts - row_starts(lengths), lengths)]


def row_starts(lengths: np.ndarray) -> np.ndarray:
    """Return where each row begins in a concatenation of rows with these lengths, (R,)."""
    return np.cumsum(lengths) - lengths


def positions_in_rows(lengths: np.ndarray) -> np.ndarray:
    """Return 0, 1, …, length - 1 for each length (R,), concatenated."""
    return np.arange(lengths.sum()) - np.repeat(row_starts(lengths), lengths)


class GrowingArray:
    """A NumPy array at whose end values can be added and removed without copying the others each time."""

    def __init__(self, dtype: Any) -> None:
        self._buffer = np.empty(1024, dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> np.ndarray:
        """The values, without copying them. The array is valid until values are added."""
        return self._buffer[: self._size]

    def extend(self, values: np.ndarray) -> None:
        size = self._size + len(values)
        if size > len(self._buffer):
            grown = np.empty(max(size, 2 * len(self._buffer)), self._buffer.dtype)
            grown[: self._size] = self.values
            self._buffer = grown
        self._buffer[self._size : size] = values
        self._size = size

    def truncate(self, size: int) -> None:
        """Remove all values but the first ``size``."""
        self._size = min(self._size, size)


class RaggedArray:
    """Rows of numbers, at whose end rows can be added and removed."""

    def __init__(self, dtype: Any) -> None:
        self._values = GrowingArray(dtype)
        self._ends = GrowingArray(np.int64)
        self._lengths = GrowingArray(np.int32)

    def __len__(self) -> int:
        return len(self._ends)

    def extend(self, values: np.ndarray, lengths: np.ndarray) -> None:
        """Add rows, given their concatenated values and the number of values of each."""
        self._ends.extend(len(self._values) + np.cumsum(lengths))
        self._lengths.extend(lengths)
        self._values.extend(values)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the concatenated values of some rows, and the number of values of each."""
        lengths = self._lengths.values[rows]
        return slices_of(self._values.values, self._ends.values[rows] - lengths, lengths), lengths

    def truncate(self, rows: int) -> None:
        """Remove all rows but the first ``rows``."""
        if rows < len(self):
            self._values.truncate(int(self._ends.values[rows] - self._lengths.values[rows]))
            self._ends.truncate(rows)
            self._lengths.truncate(rows)
