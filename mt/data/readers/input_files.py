"""Finds the files that a corpus of one's own is read from: single ones, folders, and patterns such as
``memories/*.tmx``.

The order is that of the list, and by name within a folder or pattern, so that it is the same wherever they are read.
"""

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from mt.config import FilesConfig, SingleCorpusConfig, TableConfig, as_pairs
from mt.core.errors import InputError
from mt.core.files import COMPRESSIONS, resolved
from mt.data.readers.formats import TABLE_READERS, table_suffix

WILDCARD = re.compile(r"((?<![^/])\*\*/|\*+)")
"""Folders of any depth, or a part of a name."""

FileGroup: TypeAlias = tuple[Path, ...]
"""Files that are read together: a table alone, or two text files, source and target."""


def refuse_missing_files(corpora: Iterable[SingleCorpusConfig]) -> None:
    """Raise InputError if files of the corpora are missing. It names all of them, before the first file is read."""
    errors: list[str] = []
    for corpus in corpora:
        if isinstance(corpus, FilesConfig | TableConfig):
            for split in ("train", "valid", "test"):
                _find(corpus, split, errors)
    _raise_all(errors)


def find_input_files(corpus: FilesConfig | TableConfig, split: str) -> list[FileGroup] | None:
    """Return the files of one split, in the order of their pairs; None if the corpus does not name the split.

    Raises:
        InputError: A file is missing or named twice, a folder or pattern has no file, a file has no partner, or a name
            does not tell the format. The message has a line for each of these.
    """
    errors: list[str] = []
    groups = _find(corpus, split, errors)
    _raise_all(errors)
    return groups


def names_many_files(corpus: FilesConfig | TableConfig, split: str) -> bool:
    """Return whether a split is named by more than the name of one file, or of one pair of files."""
    named = getattr(corpus, split)
    names = [named] if isinstance(corpus, TableConfig) else named
    return not all(isinstance(name, str) and Path(name).is_file() for name in names)


def group_name(group: FileGroup) -> str:
    """Return the name of a group in messages: ``a.en + a.es``."""
    return " + ".join(map(str, group))


def _raise_all(errors: Sequence[str]) -> None:
    if errors:
        raise InputError("\n".join(errors))


def _find(corpus: FilesConfig | TableConfig, split: str, errors: list[str]) -> list[FileGroup] | None:
    """Return the files of one split, and add a line to ``errors`` for each mistake."""
    named = getattr(corpus, split)
    if named is None:
        return None
    lines: list[str] = []
    groups: list[FileGroup] = []
    if isinstance(corpus, FilesConfig):
        for pair in as_pairs(named):
            groups += _matching_pairs(*pair, lines)
    else:
        for name in (named,) if isinstance(named, str) else named:
            groups += _tables(name, lines)
    lines += _repetitions(groups)
    errors += [f"data.{split}: {line}" for line in dict.fromkeys(lines)]
    return groups


def _tables(named: str, errors: list[str]) -> list[FileGroup]:
    path = Path(named)
    suffixes = ", ".join(TABLE_READERS)
    if path.is_dir():
        visible = (file for file in path.iterdir() if not file.name.startswith("."))  # as for patterns
        files = sorted(file for file in visible if table_suffix(file) and file.is_file())
        if not files:
            errors.append(f"{named}: a folder without a file whose name ends in {suffixes}")
    else:
        files = _matching(named, errors)
    rule = f"the name of a table ends in {suffixes} (text also in {', '.join(COMPRESSIONS)})"
    errors += [f"{file}: {rule}" for file in files if not table_suffix(file)]
    return [(file,) for file in files if table_suffix(file)]


def _matching_pairs(source: str, target: str, errors: list[str]) -> list[FileGroup]:
    """Return the pairs of files that two names or patterns stand for."""
    is_pattern = [bool(WILDCARD.search(side)) and not Path(side).is_file() for side in (source, target)]
    if any(is_pattern) and (WILDCARD.findall(source) != WILDCARD.findall(target) or not all(is_pattern)):
        errors.append(f"{source} and {target} must have the same wildcards, because these tell what belongs together")
        return []
    sources, targets = _matching(source, errors), _matching(target, errors)
    if not sources or not targets or not any(is_pattern):
        return list(zip(sources, targets, strict=False))
    files, partners = _by_wildcards(source, sources), _by_wildcards(target, targets)
    alone = [files.get(key) or partners[key] for key in sorted(files.keys() ^ partners.keys())]
    errors += [f"{file}: {source} and {target} match no partner for it" for file in alone]
    groups: list[FileGroup] = [(file, partners[key]) for key, file in files.items() if key in partners]
    if same := [file for file, partner in groups if resolved(file) == resolved(partner)]:
        errors.append(f"{same[0]} is on both sides of {source} and {target}")
    return groups


def _by_wildcards(pattern: str, files: Iterable[Path]) -> dict[tuple[str, ...], Path]:
    """Return the files that match a pattern by the parts of their names that its wildcards stand for."""
    parts = WILDCARD.split(str(Path(pattern)))
    groups = {"**/": "((?:[^/]+/)*)", "*": "([^/]*)"}
    regex = "".join(groups.get(part, "(.*)") if number % 2 else re.escape(part) for number, part in enumerate(parts))
    return {re.fullmatch(regex, str(file), re.DOTALL).groups(): file for file in files}  # type: ignore[union-attr]


def _matching(named: str, errors: list[str]) -> list[Path]:
    """Return the file of this name; if there is none, the files that match the name as a pattern, sorted."""
    if Path(named).is_file():
        return [Path(named)]
    if not WILDCARD.search(named):
        errors.append(f"{named}: {'a folder' if Path(named).is_dir() else 'no such file'}")
        return []
    # Only * is a wildcard, so that ? and [ may stand in names.
    pattern = re.sub(r"[?[]", r"[\g<0>]", named)
    files = sorted({Path(file) for file in glob.glob(pattern, recursive=True) if Path(file).is_file()})
    if not files:
        errors.append(f"{named}: matches no file")
    return files


def _repetitions(groups: Sequence[FileGroup]) -> Iterator[str]:
    """Yield a line for each group that is in the list more than once, be it under several names."""
    names_of: dict[FileGroup, list[str]] = {}
    for group in groups:
        names_of.setdefault(tuple(map(resolved, group)), []).append(group_name(group))
    for names in names_of.values():
        if len(names) > 1:
            different = dict.fromkeys(names)
            suffix = ", under several names" if len(different) > 1 else ""
            yield f"{' and '.join(different)}: named {len(names)} times{suffix}"
