"""Finds the files that a corpus of one's own is read from: single ones, folders, and patterns such as
``memories/*.tmx``.

The order is that of the list, and by name within a folder or pattern, so that it is the same wherever they are read.
"""

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from mt.config import FilesConfig, SingleCorpusConfig, TableConfig, as_pairs
from mt.core.errors import InputError
from mt.core.files import COMPRESSIONS, resolved
from mt.data.readers.formats import TABLE_READERS, table_suffix

WILDCARD = re.compile(r"((?<![^/])\*\*/|\*+)")
"""Folders of any depth, or a part of a name."""

FileGroup: TypeAlias = tuple[Path, ...]
"""Files that are read together: a table alone, or two text files, source and target."""
Result = TypeVar("Result")


def refuse_missing_files(corpora: Iterable[SingleCorpusConfig]) -> None:
    """Raise InputError if files of the corpora are missing. It names all of them, before the first file is read."""
    _all_results(
        partial(find_input_files, corpus, split)
        for corpus in corpora
        if isinstance(corpus, FilesConfig | TableConfig)
        for split in ("train", "valid", "test")
    )


def find_input_files(corpus: FilesConfig | TableConfig, split: str) -> list[FileGroup] | None:
    """Return the files of one split, in the order of their pairs; None if the corpus does not name the split.

    Raises:
        InputError: A file is missing or named twice, a folder or pattern has no file, a file has no partner, or a name
            does not tell the format. The message has a line for each of these.
    """
    named = getattr(corpus, split)
    if named is None:
        return None
    searches: list[Callable[[], list[FileGroup]]]
    if isinstance(corpus, FilesConfig):
        searches = [partial(_matching_pairs, *pair) for pair in as_pairs(named)]
    else:
        searches = [partial(_tables, name) for name in ((named,) if isinstance(named, str) else named)]
    results, errors = _results_and_errors(searches)
    groups = [group for result in results for group in result]
    errors += _repetitions(groups)
    if errors:
        raise InputError("\n".join(f"data.{split}: {line}" for line in dict.fromkeys(errors)))
    return groups


def names_many_files(corpus: FilesConfig | TableConfig, split: str) -> bool:
    """Return whether a split is named by more than the name of one file, or of one pair of files."""
    named = getattr(corpus, split)
    names = [named] if isinstance(corpus, TableConfig) else named
    return not all(isinstance(name, str) and Path(name).is_file() for name in names)


def group_name(group: FileGroup) -> str:
    """Return the name of a group in messages: ``a.en + a.es``."""
    return " + ".join(map(str, group))


def _results_and_errors(calls: Iterable[Callable[[], Result]]) -> tuple[list[Result], list[str]]:
    """Make all calls. Return the results, and the lines of the messages of those that raised InputError."""
    results: list[Result] = []
    errors: list[str] = []
    for call in calls:
        try:
            results.append(call())
        except InputError as error:
            errors += str(error).split("\n")
    return results, errors


def _all_results(calls: Iterable[Callable[[], Result]]) -> list[Result]:
    results, errors = _results_and_errors(calls)
    if errors:
        raise InputError("\n".join(errors))
    return results


def _tables(named: str) -> list[FileGroup]:
    path = Path(named)
    suffixes = ", ".join(TABLE_READERS)
    if path.is_dir():
        visible = (file for file in path.iterdir() if not file.name.startswith("."))  # as for patterns
        files = sorted(file for file in visible if table_suffix(file) and file.is_file())
        if not files:
            raise InputError(f"{named}: a folder without a file whose name ends in {suffixes}")
    else:
        files = _matching(named)
    if unknown := [file for file in files if not table_suffix(file)]:
        rule = f"the name of a table ends in {suffixes} (text also in {', '.join(COMPRESSIONS)})"
        raise InputError("\n".join(f"{file}: {rule}" for file in unknown))
    return [(file,) for file in files]


def _matching_pairs(source: str, target: str) -> list[FileGroup]:
    """Return the pairs of files that two names or patterns stand for."""
    sides = source, target
    is_pattern = [bool(WILDCARD.search(side)) and not Path(side).is_file() for side in sides]
    if not any(is_pattern):
        _all_results(partial(_matching, side) for side in sides)
        return [(Path(source), Path(target))]
    if WILDCARD.findall(source) != WILDCARD.findall(target) or not all(is_pattern):
        raise InputError(
            f"{source} and {target} must have the same wildcards, because these tell what belongs together"
        )
    sources, targets = map(_by_wildcards, sides)
    if alone := [str(sources.get(key) or targets[key]) for key in sorted(sources.keys() ^ targets.keys())]:
        raise InputError("\n".join(f"{file}: {source} and {target} match no partner for it" for file in alone))
    if same := [file for key, file in sources.items() if resolved(file) == resolved(targets[key])]:
        raise InputError(f"{same[0]} is on both sides of {source} and {target}")
    return [(file, targets[key]) for key, file in sources.items()]


def _by_wildcards(pattern: str) -> dict[tuple[str, ...], Path]:
    """Return the files that match a pattern, by the parts of their names that its wildcards stand for."""
    parts = WILDCARD.split(str(Path(pattern)))
    groups = {"**/": "((?:[^/]+/)*)", "*": "([^/]*)"}
    regex = "".join(groups.get(part, "(.*)") if number % 2 else re.escape(part) for number, part in enumerate(parts))
    files = {}
    for file in _matching(pattern):
        match = re.fullmatch(regex, str(file), re.DOTALL)
        assert match, f"{file} matches {pattern} for glob alone"
        files[match.groups()] = file
    return files


def _matching(named: str) -> list[Path]:
    """Return the file of this name; if there is none, the files that match the name as a pattern, sorted."""
    if Path(named).is_file():
        return [Path(named)]
    if not WILDCARD.search(named):
        raise InputError(f"{named}: {'a folder' if Path(named).is_dir() else 'no such file'}")
    # Only * is a wildcard, so that ? and [ may stand in names.
    pattern = re.sub(r"[?[]", r"[\g<0>]", named)
    files = sorted({Path(file) for file in glob.glob(pattern, recursive=True) if Path(file).is_file()})
    if not files:
        raise InputError(f"{named}: matches no file")
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
