"""Finds the files that a corpus of one's own is read from: single ones, folders, and patterns such as
``memories/*.tmx``.

The order is that of the list, and by name within a folder or pattern, so that it is the same wherever they are read.
"""

import glob
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from mt.config import FilesConfig, TableConfig, as_pairs
from mt.core.errors import InputError
from mt.core.files import resolved

COMPRESSIONS = (".gz", ".xz", ".zst")
TABLES = (".tsv", ".csv", ".jsonl", ".parquet", ".tmx", ".po", ".xlf", ".xliff")
WILDCARD = re.compile(r"((?<![^/])\*\*/|\*+)")
"""Folders of any depth, or a part of a name."""

Unit = tuple[Path, ...]
"""What is read together: a table, or two text files, source and target."""


def named_files(corpus: FilesConfig | TableConfig, split: str) -> list[Unit] | None:
    """Returns the files of one split, in the order of their pairs; None if the corpus does not name the split.

    Raises:
        InputError: A file is missing or named twice, a folder or pattern has no file, a file has no partner, or a name
            does not tell the format. The message has a line for each of these.
    """
    named = getattr(corpus, split)
    if named is None:
        return None
    searches: list[Callable[[], list[Unit]]]
    if isinstance(corpus, FilesConfig):
        searches = [partial(_matching_pairs, *pair) for pair in as_pairs(named)]
    else:
        searches = [partial(_tables, name) for name in ((named,) if isinstance(named, str) else named)]
    found: list[Unit] = []
    wrong: list[str] = []
    for search in searches:
        try:
            found += search()
        except InputError as error:
            wrong += str(error).split("\n")
    wrong += _named_twice(found)
    if wrong:
        raise InputError("\n".join(f"data.{split}: {line}" for line in dict.fromkeys(wrong)))
    return found


def is_pile(corpus: FilesConfig | TableConfig, split: str) -> bool:
    """Returns whether a split is named by more than the name of one file, or of one pair of files."""
    named = getattr(corpus, split)
    names = [named] if isinstance(corpus, TableConfig) else named
    return not all(isinstance(name, str) and Path(name).is_file() for name in names)


def table_format(path: Path) -> str:
    """Returns the ending that tells the format of a table, such as ``.tsv`` of ``a.tsv.gz``; "" if there is none."""
    ending = Path(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix
    return ending if ending in TABLES else ""


def _tables(named: str) -> list[Unit]:
    path = Path(named)
    if path.is_dir():
        shown = (file for file in path.iterdir() if not file.name.startswith("."))  # as for patterns
        files = sorted(file for file in shown if table_format(file) and file.is_file())
        if not files:
            raise InputError(f"{named}: a folder without a file whose name ends in {', '.join(TABLES)}")
    else:
        files = _matching(named)
    if unknown := [file for file in files if not table_format(file)]:
        endings = f"the name of a table ends in {', '.join(TABLES)} (text also in {', '.join(COMPRESSIONS)})"
        raise InputError("\n".join(f"{file}: {endings}" for file in unknown))
    return [(file,) for file in files]


def _matching_pairs(source: str, target: str) -> list[Unit]:
    """Returns the pairs of files that two names or patterns stand for."""
    is_pattern = [bool(WILDCARD.search(side)) and not Path(side).is_file() for side in (source, target)]
    if not any(is_pattern):
        wrong = []
        for side in (source, target):
            try:
                _matching(side)
            except InputError as error:
                wrong.append(str(error))
        if wrong:
            raise InputError("\n".join(wrong))
        return [(Path(source), Path(target))]
    if WILDCARD.findall(source) != WILDCARD.findall(target) or not all(is_pattern):
        raise InputError(
            f"{source} and {target} must have the same wildcards, because these tell what belongs together"
        )
    sources, targets = (_by_wildcards(side) for side in (source, target))
    alone = [str(sources.get(key) or targets[key]) for key in sorted(sources.keys() ^ targets.keys())]
    if alone:
        raise InputError("\n".join(f"{file}: {source} and {target} match no partner for it" for file in alone))
    if same := [key for key, file in sources.items() if resolved(file) == resolved(targets[key])]:
        raise InputError(f"{sources[same[0]]} is on both sides of {source} and {target}")
    return [(file, targets[key]) for key, file in sources.items()]


def _by_wildcards(pattern: str) -> dict[tuple[str, ...], Path]:
    """Returns the files that match a pattern, by what its wildcards stand for in their names."""
    parts = WILDCARD.split(str(Path(pattern)))
    stands_for = {"**/": "((?:[^/]+/)*)", "*": "([^/]*)"}
    regex = "".join(
        stands_for.get(part, "(.*)") if number % 2 else re.escape(part) for number, part in enumerate(parts)
    )
    found = {}
    for file in _matching(pattern):
        match = re.fullmatch(regex, str(file), re.DOTALL)
        assert match, f"{file} matches {pattern} for glob alone"
        found[match.groups()] = file
    return found


def _matching(named: str) -> list[Path]:
    """Returns the file of this name; if there is none, the files that match the name as a pattern, sorted."""
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


def _named_twice(units: Sequence[Unit]) -> Iterator[str]:
    """Yields a line for each unit that is in the list more than once, be it under several names."""
    real = [tuple(map(resolved, unit)) for unit in units]
    for one, count in Counter(real).items():
        if count > 1:
            names = dict.fromkeys(name_of(unit) for unit, other in zip(units, real, strict=True) if other == one)
            yield f"{' and '.join(names)}: named {count} times" + (", under several names" if len(names) > 1 else "")


def name_of(unit: Unit) -> str:
    """Returns how a unit is called in messages: ``a.en + a.es``."""
    return " + ".join(map(str, unit))
