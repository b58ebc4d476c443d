"""Finds the two columns of a table."""

from collections.abc import Sequence
from typing import TypeAlias

from mt.core.errors import InputError
from mt.core.wording import nearest

COLUMN_KEYS = "data.source_column, data.target_column"

Columns: TypeAlias = tuple[str | int, str | int]
"""The names, or the numbers from 0, of the columns of source and target."""


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
