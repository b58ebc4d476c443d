"""The registry of file formats: each suffix and its reader of pairs.

A new format is a reader in a module of its own and a line in TABLE_READERS.
"""

from collections.abc import Callable
from pathlib import Path

from mt.core.files import format_suffix
from mt.data.readers import documents, tables
from mt.data.readers.cached_pairs import Pairs

TABLE_READERS: dict[str, Callable[[Path, tables.Columns], Pairs]] = {
    ".tsv": tables.tsv_pairs,
    ".csv": tables.csv_pairs,
    ".jsonl": tables.jsonl_pairs,
    ".parquet": tables.parquet_pairs,
    ".tmx": documents.tmx_pairs,
    ".po": documents.po_pairs,
    ".xlf": documents.xliff_pairs,
    ".xliff": documents.xliff_pairs,
}
"""The reader for each suffix."""


def table_suffix(path: Path) -> str:
    """Return the suffix that tells the format of a table, such as ``.tsv`` of ``a.tsv.gz``; "" if there is none."""
    suffix = format_suffix(path)
    return suffix if suffix in TABLE_READERS else ""
