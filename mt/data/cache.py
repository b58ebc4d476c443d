"""Cache tables that take long to compute as Arrow files, in a folder of the cache of ``datasets``.

The files are memory-mapped, so workers on one machine share their memory.
"""

import contextlib
import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import datasets
import numpy as np
import pyarrow
from datasets.table import MemoryMappedTable
from tqdm import tqdm

from mt.core.columns import mapped_table, selected_rows
from mt.core.errors import InputError
from mt.core.files import wait_for_lock

logger = logging.getLogger(__name__)

ROWS = pyarrow.schema([("indices", pyarrow.uint64())])


def cached_table(
    key: str,
    schema: pyarrow.Schema,
    batches: Callable[[], Iterable[pyarrow.RecordBatch]],
    description: str = "",
    rows: int | None = None,
) -> datasets.Dataset:
    """Return a table from the cache. If the cache lacks the table, compute it and write it to the cache.

    If another process is computing the same table, wait for that process.

    Args:
        key: The ``digest`` of everything that the content depends on. It becomes the fingerprint of the dataset.
        schema: The columns of the table.
        batches: Computes the rows. It is called only if the cache lacks the table.
        description: The text of a progress bar in the terminal; "" for no bar.
        rows: The number of rows for the progress bar, if it is known.

    Raises:
        OSError: The disk is full, or the cache folder cannot be written. The unfinished file is removed.
    """
    path = _cache_folder(Path(datasets.config.HF_DATASETS_CACHE) / "mt") / f"{key}.arrow"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with wait_for_lock(path.with_suffix(".lock")):
            if not path.exists():
                disable = None if description else True
                with tqdm(desc=description, total=rows, unit=" pairs", disable=disable, leave=False, delay=5) as bar:
                    _write_table(path, schema, batches(), bar)
    return datasets.Dataset(MemoryMappedTable(mapped_table(path), str(path)), fingerprint=key)


@cache
def _cache_folder(wanted: Path) -> Path:
    """Return ``wanted`` if it can be written. Otherwise, log a warning and return a private folder for temporary files.

    Users without a home folder have no other place.

    Raises:
        InputError: Another user has created the folder for temporary files.
    """
    with contextlib.suppress(PermissionError):
        existing = next(folder for folder in (wanted, *wanted.parents) if folder.exists())
        if wanted.is_absolute() and existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
            return wanted
    folder = Path(tempfile.gettempdir(), f"mt-cache-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise InputError(f"{folder}: belongs to another user; set HF_DATASETS_CACHE to a folder that you may write to")
    logger.warning(
        "prepared data are cached in %s, because %s cannot be written; set HF_DATASETS_CACHE to a permanent folder",
        folder,
        wanted,
    )
    return folder


def _write_table(path: Path, schema: pyarrow.Schema, batches: Iterable[pyarrow.RecordBatch], bar: tqdm) -> None:
    """Write a table to a file, completely or not at all."""
    # The name is always the same, so that the unfinished file of a killed process is overwritten.
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file, pyarrow.ipc.new_stream(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                bar.update(len(batch))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def select_rows(pairs: datasets.Dataset, key: object, rows: Callable[[], np.ndarray]) -> datasets.Dataset:
    """Return some rows of a dataset. The row numbers are cached.

    Args:
        pairs: The dataset to select from.
        key: Everything that the selection depends on, apart from ``pairs``.
        rows: Returns the numbers of the selected rows, in order. It is called only if the cache lacks them.
    """

    def batches() -> Iterable[pyarrow.RecordBatch]:
        indices = rows() if pairs._indices is None else selected_rows(pairs)[rows()]
        return [pyarrow.record_batch([indices.astype(np.uint64)], schema=ROWS)]

    fingerprint = digest((pairs._fingerprint, key))
    indices = cached_table(fingerprint, ROWS, batches)
    return datasets.Dataset(pairs.data, indices_table=indices.data, fingerprint=fingerprint)


def concatenate(parts: Sequence[datasets.Dataset]) -> datasets.Dataset:
    """Concatenate the rows of several datasets, in order. Equal parts give an equal fingerprint."""
    if len(parts) == 1:
        return parts[0]
    pairs = datasets.concatenate_datasets(list(parts))
    # The fingerprint that ``datasets`` computes also depends on the time of reading.
    pairs._fingerprint = digest([part._fingerprint for part in parts])
    return pairs


def digest(content: object) -> str:
    """Return a cache key for a value: a hash of its ``repr`` in 32 hexadecimal digits."""
    return hashlib.blake2b(repr(content).encode(), digest_size=16).hexdigest()
