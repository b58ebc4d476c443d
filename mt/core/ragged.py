"""Rows of different lengths in NumPy, without a loop over the rows."""

import numpy as np


def row_starts(lengths: np.ndarray) -> np.ndarray:
    """Return where each row begins in a concatenation of rows with these lengths, (R,)."""
    return np.cumsum(lengths) - lengths


def positions_in_rows(lengths: np.ndarray) -> np.ndarray:
    """Return 0, 1, …, length - 1 for each length (R,), concatenated."""
    return np.arange(lengths.sum()) - np.repeat(row_starts(lengths), lengths)
