"""Read a split from the user's own files: from tables, or from pairs of text files."""

import logging
from pathlib import Path

import datasets
from pyarrow import compute

from mt.config import FilesConfig, TableConfig
from mt.core.errors import InputError, causes, is_exhaustion
from mt.data.cache import concatenate
from mt.data.pairs import FAULT, UNREADABLE, sentences_sha256
from mt.data.readers.cached_pairs import Rows, cached_split, file_state
from mt.data.readers.formats import TABLE_READERS, table_suffix
from mt.data.readers.input_files import FileGroup, find_input_files, group_name, names_many_files
from mt.data.readers.text import file_line_pairs
from mt.data.split_report import InputFile, Split

logger = logging.getLogger(__name__)


def read_text_files(source: Path, target: Path) -> Split:
    """Return a split with the lines of a source file and a target file as its pairs, from the cache if it has them."""
    key = file_state(source), file_state(target)
    return cached_split(group_name((source, target)), lambda: file_line_pairs(source, target), key)


def _read_group(corpus: FilesConfig | TableConfig, files: FileGroup) -> Split:
    if isinstance(corpus, FilesConfig):
        return read_text_files(*files)
    path, columns, skips = files[0], corpus.columns, corpus.skip_bad_rows
    suffix = table_suffix(path)
    options = {"delimiter": corpus.delimiter} if suffix == ".csv" else {}

    def rows() -> Rows:
        for row in TABLE_READERS[suffix](path, columns, **options):
            if isinstance(row, InputError):
                if not skips:
                    raise InputError(f"{row}\nOr leave out all such rows with data.skip_bad_rows=true")
                row = InputError(str(row).removeprefix(f"{path}: "))  # the same when the file moves
            yield row

    split = cached_split(str(path), rows, (file_state(path), suffix, columns, options, skips))
    if unreadable := compute.indices_nonzero(compute.equal(split.pairs.data.column(FAULT), UNREADABLE)).to_pylist():
        reason = split.pairs[unreadable[0]]["source"]
        message = f"{path}: {len(unreadable):,} of {len(split.pairs):,} rows cannot be read"
        if 2 * len(unreadable) > len(split.pairs):
            raise InputError(f"{message}, too many to leave out; the first: {reason}")
        logger.warning("%s and are left out; the first: %s", message, reason)
    return split


def read_input_files(corpus: FilesConfig | TableConfig, split: str) -> Split | None:
    """Read a split from all its files, in order. Return None if the corpus does not name the split.

    The cache keeps a table for each file, so that only new and changed files are parsed. A file that cannot be read
    stops the program or, with ``data.on_bad_file=skip``, is left out as a whole and logged.

    Raises:
        InputError: A file is missing or cannot be read, or no file can be read.
    """
    groups = find_input_files(corpus, split)
    if groups is None:
        return None
    if not names_many_files(corpus, split):
        return _read_group(corpus, groups[0])
    named = getattr(corpus, split)
    origin = f"{named} ({len(groups)} files)" if isinstance(named, str) else f"{len(groups)} files"
    parts: list[datasets.Dataset] = []
    files = []
    for group in groups:
        name, paths = group_name(group), tuple(map(str, group))
        try:
            pairs = _read_group(corpus, group).pairs
        except InputError as error:
            if corpus.on_bad_file == "stop" or any(map(is_exhaustion, causes(error))):
                advice = "\nCorrect this file, or leave it out with data.on_bad_file=skip" if len(groups) > 1 else ""
                raise InputError(f"{error}{advice}") from error
            reason = str(error).removeprefix(f"{name}: ")
            logger.warning("%s: the whole file is left out: %s", name, reason)
            files.append(InputFile(paths, left_out=reason))
        else:
            parts.append(pairs)
            files.append(InputFile(paths, len(pairs), sentences_sha256(pairs), kept=len(pairs)))
    if not parts:
        raise InputError(
            f"data.{split}: none of {origin} can be read; correct the first one: {files[0].name}: {files[0].left_out}"
        )
    return Split(concatenate(parts), origin, tuple(files))
