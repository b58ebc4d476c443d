"""Reads files of one's own: one file or pair of files, or many, one after another."""

import logging
from pathlib import Path

import datasets

from mt.config import FilesConfig, TableConfig
from mt.core.errors import InputError
from mt.data.cache import concatenate
from mt.data.pairs import sentences_sha256
from mt.data.readers.cached_pairs import cached_split, file_state
from mt.data.readers.formats import TABLE_READERS, table_suffix
from mt.data.readers.input_files import FileGroup, find_input_files, group_name, names_many_files
from mt.data.readers.tables import Columns
from mt.data.readers.text import line_pairs
from mt.data.split_report import InputFile, Split

logger = logging.getLogger(__name__)


def read_text_files(files: FileGroup) -> Split:
    """Read the lines of a source and a target file."""
    source, target = files
    name = group_name(files)
    key = file_state(source), file_state(target)
    return cached_split(name, lambda: line_pairs(source, target), key)


def _read_table(path: Path, columns: Columns) -> Split:
    suffix = table_suffix(path)
    key = file_state(path), suffix, columns
    return cached_split(str(path), lambda: TABLE_READERS[suffix](path, columns), key)


def _read_group(corpus: FilesConfig | TableConfig, files: FileGroup) -> Split:
    return read_text_files(files) if isinstance(corpus, FilesConfig) else _read_table(files[0], corpus.columns)


def read_input_files(corpus: FilesConfig | TableConfig, split: str) -> Split | None:
    """Read files one after another, each into its own table of the cache. So a bad file takes nothing with it, and a
    file that is added later does not make the others be read again."""
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
            if corpus.on_bad_file == "stop":
                advice = "\ndata.on_bad_file=skip leaves such a file out" if len(groups) > 1 else ""
                raise InputError(f"{error}{advice}") from error
            reason = str(error).removeprefix(f"{name}: ")
            logger.warning("%s: left out, nothing of it is used: %s", name, reason)
            files.append(InputFile(paths, left_out=reason))
        else:
            parts.append(pairs)
            files.append(InputFile(paths, len(pairs), sentences_sha256(pairs), kept=len(pairs)))
    if not parts:
        raise InputError(f"data.{split}: none of {origin} can be read: {files[0].name}: {files[0].left_out}")
    return Split(concatenate(parts), origin, tuple(files))
