"""A split of a corpus: its pairs and files, its place in the cache, and the report on how many pairs were kept."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import datasets
import numpy as np
import pyarrow

from mt.core.columns import ROWS_AT_ONCE
from mt.core.errors import InputError
from mt.data.cache import cached_table, digest
from mt.data.pairs import PAIRS, columns_of
from mt.data.parallel import in_order
from mt.formats.tables import Rows

MAX_FILE_LINES = 20
"""The most files that get a line of their own in the report."""

READER_VERSION = 7
"""A part of every cache key. Raise it when a change of the code gives other pairs or other columns for the same
file."""


@dataclass(frozen=True)
class InputFile:
    """An input file, or a source file with its target file, and the number of its pairs."""

    paths: tuple[str, ...]
    """The path of a table, or the paths of the source file and the target file."""
    pairs: int = 0
    """The number of pairs in the file."""
    sha256: str = ""
    """The ``sentences_sha256`` of the pairs; "" for a file that was left out."""
    left_out: str = ""
    """The reason why the file cannot be read and was left out; "" for other files."""
    kept: int = 0
    """The number of pairs that were not dropped."""

    @property
    def name(self) -> str:
        return " + ".join(self.paths)

    @property
    def kept_share(self) -> float:
        return self.kept / max(1, self.pairs)

    def __str__(self) -> str:
        counts = f"{self.pairs:,} pairs read, {self.kept:,} kept"
        return f"{self.name}: {f'left out: {self.left_out}' if self.left_out else counts}"


@dataclass(frozen=True)
class Split:
    """A split of a corpus, as a reader returns it: no pair is dropped yet."""

    pairs: datasets.Dataset
    """The pairs, with the columns of PAIRS."""
    origin: str
    """The name of the files or the data set in messages."""
    files: tuple[InputFile, ...] = ()
    """The files in the order of their pairs, if the config names several files; otherwise empty."""


@dataclass(frozen=True)
class SplitReport:
    """The numbers of pairs of one split of one corpus that were read, and that were dropped for each reason."""

    split: str
    """``train``, ``valid`` or ``test``."""
    origin: str
    """The name of the files or the data set in messages."""
    read: int
    dropped: dict[str, int] = field(default_factory=dict)
    """Maps each reason to the number of pairs that were dropped for it."""
    files: tuple[InputFile, ...] = ()
    """The files in the order of their pairs, if the config names several files; otherwise empty."""
    first_id: int = 0
    """The id of the first pair that was read."""
    sha256: str = ""
    """The SHA-256 of the column PAIR_HASH of all pairs that were read; "" for held-out pairs."""

    def __str__(self) -> str:
        reasons = "".join(f", {count:,} {reason}" for reason, count in self.dropped.items())
        return f"{self.split}: {self.origin}: {self.read:,} pairs read, {self.kept:,} kept{reasons}"

    @property
    def kept(self) -> int:
        """The number of pairs that were not dropped."""
        return self.read - sum(self.dropped.values())

    def file_lines(self) -> list[str]:
        """Return a line of text for each file; of more than MAX_FILE_LINES, for those with the smallest shares of kept
        pairs."""
        lines = [str(file) for file in sorted(self.files, key=lambda file: file.kept_share)]
        if len(lines) > MAX_FILE_LINES:
            lines[MAX_FILE_LINES:] = [f"{len(lines) - MAX_FILE_LINES} more files"]
        return [f"{self.split}:   {line}" for line in lines]

    def without(self, dropped: Mapping[str, np.ndarray]) -> "SplitReport":
        """Return a report with more dropped pairs, in total and in each file.

        Args:
            dropped: Maps each reason to the ids of the pairs that were dropped for it, in ascending order. Ids of other
                corpora are ignored.
        """
        edges = self.first_id + np.cumsum([0, *([file.pairs for file in self.files] or [self.read])])
        by_file = {reason: np.diff(np.searchsorted(ids, edges)) for reason, ids in dropped.items()}
        counts = {reason: int(of_reason.sum()) for reason, of_reason in by_file.items() if of_reason.any()}
        lost = sum(by_file.values(), np.zeros(len(edges) - 1, dtype=int)).tolist()
        files = tuple(replace(file, kept=file.kept - count) for file, count in zip(self.files, lost, strict=False))
        return replace(self, dropped=self.dropped | counts, files=files)


def cached_split(origin: str, pairs: Callable[[], Rows], content: tuple) -> Split:
    """Return a split with the given pairs. The cache keeps its table, with the columns of PAIRS.

    Args:
        origin: The name of the files or the data set in messages.
        pairs: Reads the pairs. It is called only if the cache lacks the table.
        content: Everything that the pairs depend on.

    Raises:
        InputError: There are no pairs.
    """
    key = digest((READER_VERSION, unicodedata.unidata_version, content))

    def batches() -> Iterator[pyarrow.RecordBatch]:
        iterator = iter(pairs())
        return in_order(columns_of, iter(lambda: list(islice(iterator, ROWS_AT_ONCE)), []))

    table = cached_table(key, PAIRS, batches, f"reading {origin}")
    if not len(table):
        raise InputError(f"{origin}: it has no pairs; give a file or data set with text")
    return Split(table, origin)


def file_state(path: Path) -> tuple[str, int, int, int, int]:
    """Return the path of a file with its size, times and inode: a cache key that changes whenever the file changes.

    The size and the modification time can equal those of an earlier file (``cp -p``, ``rsync --times``, ``touch -r``).
    The time of the last status change and the inode cannot: the file system sets them itself.

    Raises:
        InputError: The file cannot be found or accessed.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; check the path and its permissions") from None
    return str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
