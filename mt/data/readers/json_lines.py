"""Reads tables in JSONL: one object in each line."""

import json
from pathlib import Path

from mt.core.errors import InputError
from mt.data.readers.cached_pairs import Pairs
from mt.data.readers.columns import Columns, find_column
from mt.data.readers.text import text_lines


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
