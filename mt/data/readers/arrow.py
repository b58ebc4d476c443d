"""Reads Arrow columns and Parquet files."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow
from pyarrow import parquet

from mt.core.errors import InputError
from mt.data.readers.cached_pairs import Pairs
from mt.data.readers.columns import Columns, find_column


def parquet_pairs(path: Path, columns: Columns) -> Pairs:
    try:
        file = parquet.ParquetFile(path)
        names = [find_column(column, file.schema_arrow.names, path) for column in columns]
        for batch in file.iter_batches(columns=names):
            yield from column_pairs(batch, names, str(path))
    except (OSError, KeyError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def column_pairs(table: pyarrow.Table | pyarrow.RecordBatch, names: Sequence[str], where: str) -> Pairs:
    """Return the pairs of two columns. Null is an empty text; bytes that are not UTF-8 become surrogates, which
    UNDECODABLE finds.

    Raises:
        InputError: A column is not text. The message begins with ``where``.
    """
    return zip(*(_texts(table[name], f"{where}: {name}") for name in names), strict=True)


def _texts(column: pyarrow.Array | pyarrow.ChunkedArray, where: str) -> list[str]:
    try:
        values = column.cast(pyarrow.large_binary()).to_pylist()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise InputError(f"{where}: the values are {column.type}, not text") from None
    return ["" if value is None else value.decode("utf-8", "surrogateescape") for value in values]
