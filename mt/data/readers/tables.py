"""The file formats that have a column for each side."""

from collections.abc import Callable
from pathlib import Path

from mt.data.readers.arrow import parquet_pairs
from mt.data.readers.cached_pairs import Pairs
from mt.data.readers.columns import Columns
from mt.data.readers.documents import po_pairs, tmx_pairs, xliff_pairs
from mt.data.readers.json_lines import jsonl_pairs
from mt.data.readers.separated import csv_pairs, tsv_pairs

COMPRESSIONS = (".gz", ".xz", ".zst")
TABLE_READERS: dict[str, Callable[[Path, Columns], Pairs]] = {
    ".tsv": tsv_pairs,
    ".csv": csv_pairs,
    ".jsonl": jsonl_pairs,
    ".parquet": parquet_pairs,
    ".tmx": tmx_pairs,
    ".po": po_pairs,
    ".xlf": xliff_pairs,
    ".xliff": xliff_pairs,
}
"""The reader for each suffix."""


def table_suffix(path: Path) -> str:
    """Return the suffix that tells the format of a table, such as ``.tsv`` of ``a.tsv.gz``; "" if there is none."""
    suffix = Path(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix
    return suffix if suffix in TABLE_READERS else ""
