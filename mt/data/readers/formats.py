"""The registry of the file formats that hold both sides of the pairs.

To add a format, add a function that yields its pairs, and a line in TABLE_READERS.
"""

from collections.abc import Callable
from pathlib import Path

from mt.core.errors import InputError
from mt.core.files import format_suffix
from mt.data.parsers.document import read_whole
from mt.data.parsers.po import po_pairs
from mt.data.parsers.tmx import tmx_pairs
from mt.data.parsers.xliff import xliff_pairs
from mt.data.readers.cached_pairs import Pairs, Rows
from mt.data.readers.tables import Columns, csv_pairs, json_pairs, jsonl_pairs, parquet_pairs, tsv_pairs

TableReader = Callable[..., Rows]
"""Yields the rows of a file, given its path and the columns of its two sides; for translated documents, these are
language codes. The reader of CSV also takes the ``delimiter``."""


def _document_reader(parse: Callable[[bytes, str, str], Pairs]) -> TableReader:
    """Return the reader for a document format, given the parser of its content and two language codes."""

    def read(path: Path, columns: Columns) -> Pairs:
        try:
            yield from parse(read_whole(path), str(columns[0]), str(columns[1]))
        except InputError as error:
            raise InputError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None

    return read


TABLE_READERS: dict[str, TableReader] = {
    ".tsv": tsv_pairs,
    ".csv": csv_pairs,
    ".json": json_pairs,
    ".jsonl": jsonl_pairs,
    ".parquet": parquet_pairs,
    ".tmx": lambda path, columns: tmx_pairs(path, str(columns[0]), str(columns[1])),
    ".po": _document_reader(po_pairs),
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff"), _document_reader(xliff_pairs)),
}
"""Maps the suffix of a file's name to the reader of its format."""


def table_suffix(path: Path) -> str:
    """Return the key of a file's format in TABLE_READERS, such as ``.tsv`` for ``a.tsv.gz``; "" for other names."""
    suffix = format_suffix(path)
    return suffix if suffix in TABLE_READERS else ""
