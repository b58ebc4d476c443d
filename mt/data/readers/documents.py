"""Reads translated documents: the entries that have a text and its translation. The columns are language codes."""

from collections.abc import Callable
from pathlib import Path

from mt.core.errors import InputError
from mt.data.parsers import po, tmx, xliff
from mt.data.parsers.document import read_whole
from mt.data.readers.cached_pairs import Pairs
from mt.data.readers.tables import Columns


def tmx_pairs(path: Path, columns: Columns) -> Pairs:
    return tmx.tmx_pairs(path, str(columns[0]), str(columns[1]))


def po_pairs(path: Path, columns: Columns) -> Pairs:
    return _document_pairs(po.po_pairs, path, columns)


def xliff_pairs(path: Path, columns: Columns) -> Pairs:
    return _document_pairs(xliff.xliff_pairs, path, columns)


def _document_pairs(parse: Callable[[bytes, str, str], Pairs], path: Path, columns: Columns) -> Pairs:
    try:
        yield from parse(read_whole(path), str(columns[0]), str(columns[1]))
    except InputError as error:
        raise InputError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
