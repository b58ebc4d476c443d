"""Reads tables in TSV (without quotes) and CSV."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from mt.core.errors import InputError
from mt.data.readers.cached_pairs import Pairs
from mt.data.readers.columns import COLUMN_KEYS, Columns, find_column
from mt.data.readers.text import text_lines

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
