"""Reads translated documents: the entries that have a text and its translation. The columns are language codes."""

from collections.abc import Callable
from pathlib import Path

from mt.core.errors import InputError
from mt.data.parsers.document import read_whole
from mt.data.parsers.po import po_pairs as parsed_po
from mt.data.parsers.tmx import tmx_pairs as parsed_tmx
from mt.data.parsers.xliff import xliff_pairs as parsed_xliff
from mt.data.readers.cached_pairs import Pairs
from mt.data.readers.columns import Columns


def tmx_pairs(path: Path, columns: Columns) -> Pairs:
    return parsed_tmx(path, str(columns[0]), str(columns[1]))


def po_pairs(path: Path, columns: Columns) -> Pairs:
    return _document_pairs(parsed_po, path, columns)


def xliff_pairs(path: Path, columns: Columns) -> Pairs:
    return _document_pairs(parsed_xliff, path, columns)


def _document_pairs(parse: Callable[[bytes, str, str], Pairs], path: Path, columns: Columns) -> Pairs:
    try:
        yield from parse(read_whole(path), str(columns[0]), str(columns[1]))
    except InputError as error:
        raise InputError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
