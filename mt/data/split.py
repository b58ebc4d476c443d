"""Splits of a corpus: pairs, files, cache entries, and reports on the numbers of kept and dropped pairs.

``hold_out`` divides training pairs into parts that have no sentence in common. Sentences are compared by their
``sentence_key``, which ignores case, punctuation and whitespace.
"""

import logging
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

import datasets
import numpy as np
import pyarrow
from pyarrow import compute

from mt.core.columns import ROWS_AT_ONCE, numbers
from mt.core.errors import InputError
from mt.core.language import Direction
from mt.data.cache import cached_table, digest, select_rows
from mt.data.pairs import KEYS, PAIRS, combined_hash, pairs_table
from mt.data.parallel import parallel_map
from mt.formats.tables import Rows

logger = logging.getLogger(__name__)

MAX_FILE_LINES = 20
"""The maximum number of files with a line of their own in the report."""

READER_VERSION = 8
"""Part of every cache key. Increase it when a change of the code gives other pairs or columns for the same file."""


@dataclass(frozen=True)
class InputFile:
    """An input file, or a source file with its target file, and the number of its pairs."""

    paths: tuple[str, ...]
    """The path of a table, or the paths of the source file and the target file."""
    pairs: int = 0
    """The number of pairs in the file."""
    sha256: str = ""
    """The ``sentences_sha256`` of the pairs; "" for a skipped file."""
    left_out: str = ""
    """For a file that cannot be read and is skipped, the reason; otherwise ""."""
    kept: int = 0
    """The number of pairs that are not dropped."""

    @property
    def name(self) -> str:
        return " + ".join(self.paths)

    def __str__(self) -> str:
        counts = f"{self.pairs:,} pairs read, {self.kept:,} kept"
        return f"{self.name}: {f'skipped: {self.left_out}' if self.left_out else counts}"


@dataclass(frozen=True)
class Split:
    """A split of a corpus as a reader returns it, before any pairs are dropped."""

    pairs: datasets.Dataset
    """The pairs, with the columns of PAIRS."""
    origin: str
    """The name of the files or the dataset in messages."""
    files: tuple[InputFile, ...] = ()
    """The files in the order of their pairs, if the config names several files; otherwise empty."""


@dataclass(frozen=True)
class SplitReport:
    """The numbers of pairs of one split of one corpus: those that were read, and those that were dropped by reason."""

    split: str
    """``train``, ``valid`` or ``test``."""
    origin: str
    """The name of the files or the dataset in messages."""
    read: int
    direction: Direction
    dropped: dict[str, int] = field(default_factory=dict)
    """Maps each reason to the number of pairs that are dropped for it."""
    files: tuple[InputFile, ...] = ()
    """The files in the order of their pairs, if the config names several files; otherwise empty."""
    first_id: int = 0
    """The id of the first pair that was read."""
    sha256: str = ""
    """The SHA-256 of the column PAIR_HASH of all pairs that were read; "" for held-out pairs."""
    prefix: str = ""
    """The prefix of the metrics of a named validation set, such as ``news.``; otherwise ""."""

    def __str__(self) -> str:
        reasons = "".join(f", {count:,} {reason}" for reason, count in self.dropped.items())
        return f"{self.split}: {self.origin}: {self.read:,} pairs read, {self.kept:,} kept{reasons}"

    @property
    def kept(self) -> int:
        """The number of pairs that are not dropped."""
        return self.read - sum(self.dropped.values())

    def file_lines(self) -> list[str]:
        """Return a line of text for each file. Of more than MAX_FILE_LINES files, only those with the smallest shares
        of kept pairs get a line."""
        lines = [str(file) for file in sorted(self.files, key=lambda file: file.kept / max(1, file.pairs))]
        if len(lines) > MAX_FILE_LINES:
            lines[MAX_FILE_LINES:] = [f"{len(lines) - MAX_FILE_LINES} more files"]
        return [f"{self.split}:   {line}" for line in lines]

    def with_dropped(self, dropped: Mapping[str, np.ndarray]) -> "SplitReport":
        """Return the report after more pairs are dropped, with the counts in total and of each file.

        Args:
            dropped: Maps each reason to the ids of the pairs that are dropped for it, in ascending order. Ids of other
                corpora are ignored.
        """
        edges = self.first_id + np.cumsum([0, *([file.pairs for file in self.files] or [self.read])])
        by_file = {reason: np.diff(np.searchsorted(ids, edges)) for reason, ids in dropped.items()}
        counts = {reason: int(file_counts.sum()) for reason, file_counts in by_file.items() if file_counts.any()}
        totals = sum(by_file.values(), np.zeros(len(edges) - 1, dtype=int)).tolist()
        files = tuple(replace(file, kept=file.kept - total) for file, total in zip(self.files, totals, strict=False))
        return replace(self, dropped=self.dropped | counts, files=files)


def cached_split(origin: str, pairs: Callable[[], Rows], content: tuple) -> Split:
    """Return a split with the given pairs. Its table, with the columns of PAIRS, is cached.

    Args:
        origin: The name of the files or the dataset in messages.
        pairs: Reads the pairs. It is called only if the cache lacks the table.
        content: Everything that the pairs depend on.

    Raises:
        InputError: There are no pairs.
    """
    key = digest((READER_VERSION, unicodedata.unidata_version, content))

    def batches() -> Iterator[pyarrow.RecordBatch]:
        iterator = iter(pairs())
        return parallel_map(pairs_table, iter(lambda: list(islice(iterator, ROWS_AT_ONCE)), []))

    table = cached_table(key, PAIRS, batches, f"reading {origin}")
    if not len(table):
        raise InputError(f"{origin}: no pairs found; give a file or dataset with text")
    return Split(table, origin)


def file_state(path: Path) -> tuple[str, int, int, int, int]:
    """Return a cache key that changes whenever the file changes: its path, size, times and inode.

    The size and the modification time can equal those of an earlier file (``cp -p``, ``rsync --times``, ``touch -r``).
    The time of the last status change and the inode cannot, because the file system sets them.

    Raises:
        InputError: The file cannot be found or accessed.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; check the path and its permissions") from None
    return str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


IGNORED_DIFFERENCES = "ignoring case, punctuation and whitespace"


def hold_out(hashes: np.ndarray, keys: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """Assign every pair to a held-out part or to the rest.

    - Pairs that share a sentence, directly or through other pairs (a–b, c–b, c–d), form a group. Groups are not
    divided.
    - The choice of groups depends on the hashes of the pairs alone, neither on their order nor on a seed.
    - A group with more than 4 pairs and more than a twentieth of the smallest part stays in the rest, because a few
    such
      groups could make up most of that part.

    The function takes about 60 bytes of memory per pair.

    Args:
        hashes: The ``pair_hash`` of each pair, (N,) int64.
        keys: The ``sentence_key`` of each source (N,) and of each target (N,), int64.
        sizes: The minimum number of pairs of each held-out part.

    Returns:
        The part of each pair, (N,) int8: 0 for the rest, 1 for the first held-out part, 2 for the second, …

    Raises:
        InputError: There are too few small groups, or no pair would be left in the rest.
    """
    groups = _connected_components(*map(_dense_ranks, keys))
    members = np.bincount(groups)
    # Groups are ranked by the sum of the hashes of their pairs. Unlike the minimum, it gives large and small groups the
    # same chance to be held out, so that the lengths of the sentences stay representative.
    rank = np.zeros(len(members), dtype=np.uint64)
    np.add.at(rank, groups, hashes.view(np.uint64))

    order = np.argsort(rank, kind="stable")
    order = order[members[order] <= max(4, min(sizes) // 20)]
    filled = np.concatenate([[0], np.cumsum(members[order])])
    part = np.zeros(len(members), dtype=np.int8)
    start = 0
    for number, size in enumerate(sizes, 1):
        end = int(np.searchsorted(filled, filled[start] + size))
        part[order[start:end]] = number
        start = end
        if start == len(filled):
            break
    if start == len(filled) or part[groups].all():
        raise InputError(
            f"{' + '.join(map(str, sizes))} pairs cannot be held out of {len(groups)}: too many share a sentence. Give "
            "separate validation and test data (data.valid, data.test)"
        )
    return part[groups]


def _dense_ranks(values: np.ndarray) -> np.ndarray:
    """Replace each value by its rank among the distinct values, (N,) int32 from 0.

    ``np.unique`` does the same with twice the memory.
    """
    order = np.argsort(values)
    values = values[order]
    is_new = np.empty(len(values), dtype=bool)
    is_new[:1] = False
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    number = np.empty(len(values), dtype=np.int32)
    number[order] = np.cumsum(is_new, dtype=np.int32)
    return number


def _connected_components(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the number of each pair's group, (N,) int32 from 0, given the numbers of its source and its target (N,).

    Sentences are nodes of a graph, a pair connects its source and its target, and a group is a connected component.
    Every node points to a node of its component with the same or a lower number. Let the two sides of a pair point to
    p and q: each round makes p and q point to the lower of the two, then halves every path (pointer jumping). When a
    round changes nothing, all nodes of a component point to the same one.
    """
    targets = targets + (sources.max() + 1)
    lowest = np.arange(targets.max() + 1, dtype=np.int32)
    while True:
        lower = np.minimum(lowest[sources], lowest[targets])
        nearer = lowest.copy()
        np.minimum.at(nearer, lowest[sources], lower)
        np.minimum.at(nearer, lowest[targets], lower)
        nearer = nearer[nearer]
        if (nearer == lowest).all():
            return _dense_ranks(lowest[sources])
        lowest = nearer


def log_repetitions(train: datasets.Dataset, evaluation: dict[str, datasets.Dataset]) -> None:
    """Log the numbers of repeated training pairs, of training pairs with equal sides, and of validation and test
    sources that are also training sources. These are often errors in the data. The data are not changed.

    Args:
        train: The training pairs.
        evaluation: Maps ``valid`` and ``test`` to their pairs.
    """
    source_keys, target_keys = (numbers(train, key) for key in KEYS)
    repeated = len(train) - len(np.unique(combined_hash(source_keys, target_keys)))
    equal_sides = int((source_keys == target_keys).sum())
    for count, description in ((repeated, "repeat an earlier pair"), (equal_sides, "have equal sides")):
        if count:
            logger.info(
                "train: %s of %s pairs %s, %s", f"{count:,}", f"{len(train):,}", description, IGNORED_DIFFERENCES
            )
    for split, pairs in evaluation.items():
        if known := int(_is_member(numbers(pairs, KEYS[0]), source_keys).sum()):
            logger.warning(
                "%s: %s of its %s sources also occur in the training data, %s; remove them there if scores should show "
                "the quality on new text",
                split, f"{known:,}", f"{len(pairs):,}", IGNORED_DIFFERENCES,
            )  # fmt: skip


def drop_shared_sentences(
    pairs: datasets.Dataset, others: Sequence[datasets.Dataset]
) -> tuple[datasets.Dataset, dict[str, np.ndarray]]:
    """Drop the pairs whose source or target occurs in other pairs.

    Args:
        pairs: The training pairs of one corpus.
        others: The validation pairs and the test pairs.

    Returns:
        The remaining pairs, and a dict that maps the reason to the ids of the dropped pairs.
    """
    is_shared = np.zeros(len(pairs), dtype=bool)
    for key in KEYS:
        is_shared |= _is_member(numbers(pairs, key), np.concatenate([numbers(other, key) for other in others]))
    if not is_shared.any():
        return pairs, {}
    selection = ("shared", [other._fingerprint for other in others])
    dropped = {"shared with valid or test": numbers(pairs, "id")[is_shared]}
    return select_rows(pairs, selection, partial(np.flatnonzero, ~is_shared)), dropped


def _is_member(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return whether each value occurs among the others, (N,) bool. The others are held in a hash table."""
    return compute.is_in(pyarrow.array(values), value_set=pyarrow.array(others)).to_numpy(zero_copy_only=False)
