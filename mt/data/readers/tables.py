"""Read the pairs of tables in TSV (without quotes), CSV, JSONL and Parquet.

Every reader raises InputError if the file cannot be read or lacks a column, with the path and the line.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow
from pyarrow import parquet

from mt.core.errors import InputError
from mt.core.wording import did_you_mean
from mt.data.readers.cached_pairs import Pairs
from mt.data.readers.text import text_lines

COLUMN_KEYS = "set data.source_column and data.target_column"
Columns: TypeAlias = tuple[str | int, str | int]
"""The columns of the sources and of the targets: their names, or their numbers from 0."""
Rows: TypeAlias = Iterator[tuple[int, list[str]]]
"""The rows of a table: the number of each row's line in the file, from 1, and its cells."""


def tsv_pairs(path: Path, columns: Columns) -> Pairs:
    """Yield the pairs of a TSV file, whose cells are separated by tabs and have no quotes."""
    rows = ((number, line.split("\t")) for number, line in enumerate(text_lines(path), 1))
    return _cell_pairs(path, rows, columns)


def csv_pairs(path: Path, columns: Columns) -> Pairs:
    """Yield the pairs of a CSV file, whose cells may be quoted. CR becomes a space."""
    return _cell_pairs(path, _csv_rows(path), columns)


def _csv_rows(path: Path) -> Rows:
    """Yield the rows of a CSV file, the header included. A blank line is a row without cells.

    Raises:
        InputError: A quote is not closed, or another row than a blank one has more or fewer cells than the first.
    """
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader((line.replace("\r", " ") + "\n" for line in text_lines(path)), strict=True)
    width = None
    try:
        for cells in reader:
            width = width or len(cells)
            if cells and len(cells) != width:
                raise InputError(
                    f"{path}: line {reader.line_num} has {len(cells)} columns but the first has {width}: "
                    "put values with commas in quotes"
                )
            yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num} is no CSV: {error}; correct the quotes") from None


def _cell_pairs(path: Path, rows: Rows, columns: Columns) -> Pairs:
    """Yield the cells of two columns as pairs. A blank line gives a pair of empty texts.

    If the columns are given by names, the first row is the header with the names.
    """
    if isinstance(columns[0], int):
        source, target = map(int, columns)
    else:
        names = next(rows, (0, []))[1]
        advice = f"{COLUMN_KEYS}, to column numbers from 0 if the file has no header line"
        source, target = map(names.index, check_columns(columns, names, path, advice))
    for number, cells in rows:
        if cells in ([], [""]):
            yield "", ""
        elif len(cells) <= max(source, target):
            raise InputError(
                f"{path}: line {number} has {len(cells)} columns, numbered from 0, and no number "
                f"{max(source, target)}; correct the line, or {COLUMN_KEYS}"
            )
        else:
            yield cells[source], cells[target]


def jsonl_pairs(path: Path, columns: Columns) -> Pairs:
    """Yield the pairs of a file with a JSON object in each line. A blank line gives a pair of empty texts.

    The columns are keys of the object, or of the object under its key ``translation``, as in data sets of the hub.
    """
    for number, line in enumerate(text_lines(path), 1):
        where = f"{path}: line {number}"
        if not line:
            yield "", ""
            continue
        row = _json_object(line, where)
        if isinstance(row.get("translation"), dict) and not set(columns) <= row.keys():
            row = row["translation"]
        source, target = (row[name] for name in check_columns(columns, list(row), where))
        if not isinstance(source, str | None) or not isinstance(target, str | None):
            raise InputError(f"{where}: {columns[0]} and {columns[1]} must be text; correct the line, or {COLUMN_KEYS}")
        yield source or "", target or ""


def _json_object(line: str, where: str) -> dict:
    """Return the object in a line of JSONL. Messages of InputError begin with ``where``."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        reason = f"is no JSON: {error.msg} at character {error.colno}"
    except ValueError as error:  # such as a number with thousands of digits
        reason = f"cannot be read: {error}"
    except RecursionError:
        reason = "is nested too deeply"
    else:
        if isinstance(row, dict):
            return row
        reason = "is no JSON object"
    raise InputError(f"{where} {reason}; correct or remove the line")


def parquet_pairs(path: Path, columns: Columns) -> Pairs:
    """Yield the pairs of a Parquet file. Null gives an empty text."""
    try:
        file = parquet.ParquetFile(path)
        names = check_columns(columns, file.schema_arrow.names, path)
        for batch in file.iter_batches(columns=names):
            yield from column_pairs(batch, names, str(path))
    except (OSError, KeyError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read: {error}; save the table again as Parquet") from None


def column_pairs(table: pyarrow.Table | pyarrow.RecordBatch, names: Sequence[str], where: str) -> Pairs:
    """Return the values of two columns of an Arrow table as pairs.

    Null gives an empty text. Bytes that are not UTF-8 become surrogates, which UNDECODABLE matches.

    Args:
        table: Some rows.
        names: The names of the source column and the target column.
        where: The beginning of the message of an InputError.

    Raises:
        InputError: A column does not hold text.
    """
    columns = []
    for name in names:
        try:
            values = table[name].cast(pyarrow.large_binary()).to_pylist()
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
            raise InputError(
                f"{where}: {name}: the values are {table[name].type}, not text; {COLUMN_KEYS} to columns of text"
            ) from None
        columns.append(["" if value is None else value.decode("utf-8", "surrogateescape") for value in values])
    return zip(*columns, strict=True)


def check_columns(columns: Columns, names: Sequence[str], where: object, advice: str = COLUMN_KEYS) -> list[str]:
    """Return the names of the two columns after checking that both are among ``names``.

    Raises:
        InputError: One of the columns is missing. The message begins with ``where`` and ends with ``advice``.
    """
    for column in columns:
        if column not in names:
            hint = did_you_mean(str(column), names)
            raise InputError(f"{where}: no column {column!r} among {', '.join(names)}{hint} ({advice})")
    return list(map(str, columns))
