"""The registry of file formats: each suffix and its reader of pairs.

A new format is a reader and a line in TABLE_READERS. The columns of translated documents are language codes.
"""

from collections.abc import Callable
from pathlib import Path

from mt.core.errors import InputError
from mt.core.files import format_suffix
from mt.data.parsers.document import read_whole
from mt.data.parsers.po import po_pairs
from mt.data.parsers.tmx import tmx_pairs
from mt.data.parsers.xliff import xliff_pairs
from mt.data.readers.cached_pairs import Pairs
from mt.data.readers.tables import Columns, csv_pairs, jsonl_pairs, parquet_pairs, tsv_pairs

TableReader = Callable[[Path, Columns], Pairs]


def _document_reader(parse: Callable[[bytes, str, str], Pairs]) -> TableReader:
    def read(path: Path, columns: Columns) -> Pairs:
        try:
            yield from parse(read_whole(path), str(columns[0]), str(columns[1]))
        except InputError as error:
            raise InputError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None

    return read


TABLE_READERS: dict[str, TableReader] = {
    ".tsv": tsv_pairs,
    ".csv": csv_pairs,
    ".jsonl": jsonl_pairs,
    ".parquet": parquet_pairs,
    ".tmx": lambda path, columns: tmx_pairs(path, str(columns[0]), str(columns[1])),
    ".po": _document_reader(po_pairs),
    ".xlf": _document_reader(xliff_pairs),
    ".xliff": _document_reader(xliff_pairs),
}
"""The reader for each suffix."""


def table_suffix(path: Path) -> str:
    """Return the suffix that tells the format of a table, such as ``.tsv`` of ``a.tsv.gz``; "" if there is none."""
    suffix = format_suffix(path)
    return suffix if suffix in TABLE_READERS else ""
