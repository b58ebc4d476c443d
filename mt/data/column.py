"""A whole column of a data set at once, also of a selection."""

from typing import TYPE_CHECKING

import pyarrow

if TYPE_CHECKING:
    import datasets


def column(pairs: "datasets.Dataset", name: str) -> pyarrow.ChunkedArray:
    """The values of a column, in the order of the rows.

    ``datasets`` itself gathers the rows of a selection one by one: a minute for a million.
    """
    values = pairs.data.column(name)
    if pairs._indices is None:
        return values
    if pyarrow.types.is_string(values.type):
        # One array of strings ends at 2 GiB.
        values = values.cast(pyarrow.large_string())
    return values.take(pairs._indices.column(0))
