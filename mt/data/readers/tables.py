"""Reads tables in TSV (without quotes), CSV, JSONL and Parquet."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow
from pyarrow import parquet

from mt.core.errors import InputError
from mt.core.wording import nearest
from mt.data.readers.cached_pairs import Pairs
from mt.data.readers.text import text_lines

COLUMN_KEYS = "data.source_column, data.target_column"
Columns: TypeAlias = tuple[str | int, str | int]
"""The names, or the numbers from 0, of the columns of source and target."""
Rows: TypeAlias = Iterator[tuple[int, list[str]]]
"""The cells of each row, and the number of its line in the file."""


def tsv_pairs(path: Path, columns: Columns) -> Pairs:
    rows = ((number, line.split("\t")) for number, line in enumerate(text_lines(path), 1))
    return _cell_pairs(path, rows, columns)


def csv_pairs(path: Path, columns: Columns) -> Pairs:
    return _cell_pairs(path, _csv_rows(path), columns)


def _csv_rows(path: Path) -> Rows:
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader((line.replace("\r", " ") + "\n" for line in text_lines(path)), strict=True)
    width = None
    try:
        for cells in reader:
            width = width or len(cells)
            if cells and len(cells) != width:
                raise InputError(
                    f"{path}: line {reader.line_num} has {len(cells)} columns but the first has {width}: "
                    "values with commas need quotes"
                )
            yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num} is no CSV: {error}") from None


def _cell_pairs(path: Path, rows: Rows, columns: Columns) -> Pairs:
    """Yield two columns. A blank line is an empty pair. If the columns have names, the first row is a header."""
    names = next(rows, (0, []))[1] if isinstance(columns[0], str) else []
    advice = f"{COLUMN_KEYS}; or column numbers from 0, if the file has no header line"
    source, target = (
        column if isinstance(column, int) else names.index(find_column(column, names, path, advice))
        for column in columns
    )
    for number, cells in rows:
        if cells in ([], [""]):
            yield "", ""
        elif len(cells) <= max(source, target):
            raise InputError(
                f"{path}: line {number} has {len(cells)} columns, numbered from 0, and none of number "
                f"{max(source, target)} ({COLUMN_KEYS})"
            )
        else:
            yield cells[source], cells[target]


def jsonl_pairs(path: Path, columns: Columns) -> Pairs:
    """Yield two columns, either of each row itself or inside its ``translation``, as in the hub's data sets."""
    for number, line in enumerate(text_lines(path), 1):
        where = f"{path}: line {number}"
        if not line:
            yield "", ""
            continue
        row = _parsed(line, where)
        if isinstance(row.get("translation"), dict) and not set(columns) <= row.keys():
            row = row["translation"]
        source, target = (row[find_column(column, list(row), where)] for column in columns)
        if not isinstance(source, str | None) or not isinstance(target, str | None):
            raise InputError(f"{where}: {columns[0]} and {columns[1]} must be text")
        yield source or "", target or ""


def _parsed(line: str, where: str) -> dict:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is no JSON: {error.msg} at character {error.colno}") from None
    except ValueError as error:  # such as a number with thousands of digits
        raise InputError(f"{where} cannot be read: {error}") from None
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    if not isinstance(row, dict):
        raise InputError(f"{where} is no JSON object")
    return row


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


def find_column(column: str | int, names: Sequence[str], where: object, advice: str = COLUMN_KEYS) -> str:
    """Return the name of a column.

    Raises:
        InputError: It is not one of ``names``. The message begins with ``where`` and ends with the advice.
    """
    if column in names:
        return str(column)
    meant = nearest(str(column), names)
    hint = f"; did you mean {meant}?" if meant else ""
    raise InputError(f"{where}: no column {column!r} among {', '.join(names)}{hint} ({advice})")
