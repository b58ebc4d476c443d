"""Find the user's own files for a corpus, which are given by names, folders, or patterns such as ``memories/*.tmx``.

The files are in the order of the settings, and sorted by name within a folder or pattern, so that the order is the same
on every machine.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mt.config import FilesConfig, SingleCorpusConfig, TableConfig, as_pairs
from mt.core.content import describe_binary
from mt.core.errors import InputError
from mt.core.files import COMPRESSIONS, matching_files, read_start, resolved
from mt.data.readers.formats import TABLE_READERS, table_suffix

WILDCARD = re.compile(r"((?<![^/])\*\*/|\*+)")
"""Matches ``**/``, which stands for folders of any depth, or ``*``, which stands for a part of a name."""

FileGroup = tuple[Path, ...]
"""Files that are read together: a table alone, or a source file and its target file."""


def refuse_missing_files(corpora: Iterable[SingleCorpusConfig]) -> None:
    """Raise InputError if a file of any corpus or split cannot be found. The message lists all such mistakes."""
    errors: list[str] = []
    for corpus in corpora:
        if isinstance(corpus, FilesConfig | TableConfig):
            groups = [group for split in ("train", "valid", "test") for group in _find(corpus, split, errors) or ()]
            if getattr(corpus, "delimiter", ",") != "," and not any(
                table_suffix(path) == ".csv" for path, *_ in groups
            ):
                errors.append("data.delimiter: none of the files is .csv; leave it out, or rename files that have it")
    _raise_all(errors)


def find_input_files(corpus: FilesConfig | TableConfig, split: str) -> list[FileGroup] | None:
    """Return the files of a split in the order of their pairs, or None if the corpus does not name the split.

    Raises:
        InputError: A file is missing or named twice, a folder or pattern has no file, a source file has no target file
            or the reverse, or the suffix of a table is unknown. The message has a line for each of these mistakes.
    """
    errors: list[str] = []
    groups = _find(corpus, split, errors)
    _raise_all(errors)
    return groups


def names_many_files(corpus: FilesConfig | TableConfig, split: str) -> bool:
    """Return whether a split is given by a list, folder or pattern, not by the name of one file or pair of files."""
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
    """Return the files of a split, or None if the corpus does not name the split. Append a message to ``errors`` for
    each mistake; the result then lacks the files in question."""
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


def _is_array(path: Path) -> bool:
    """Return whether a file of JSON begins an array."""
    with path.open("rb") as stream:
        return stream.read(1000).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _tables(named: str, errors: list[str]) -> list[FileGroup]:
    """Return the tables that a name, a folder or a pattern stands for, each as a group of its own."""
    path = Path(named)
    suffixes = ", ".join(TABLE_READERS)
    if path.is_dir():
        visible = (file for file in path.iterdir() if not file.name.startswith("."))  # as for patterns
        tables = sorted(file for file in visible if table_suffix(file) and file.is_file())
        files = [file for file in tables if file.suffix != ".json" or _is_array(file)]  # others describe the tables
        if not files:
            errors.append(f"{named}: this folder has no file whose name ends in {suffixes}; name another one")
    else:
        files = _matching(named, errors)
    rule = f"rename it so that it ends in {suffixes} (text may also be compressed: {', '.join(COMPRESSIONS)})"
    for file in files:
        if not table_suffix(file):
            binary = describe_binary(read_start(file))
            errors.append(f"{file}: is {binary}; unpack or convert it" if binary else f"{file}: unknown format; {rule}")
    return [(file,) for file in files if table_suffix(file)]


def _matching_pairs(source: str, target: str, errors: list[str]) -> list[FileGroup]:
    """Return the pairs of files that two names or two patterns stand for.

    Files that match patterns belong together if their wildcards stand for the same texts.
    """
    is_pattern = [bool(WILDCARD.search(side)) and not Path(side).is_file() for side in (source, target)]
    if any(is_pattern) and (WILDCARD.findall(source) != WILDCARD.findall(target) or not all(is_pattern)):
        errors.append(f"{source} and {target} must have the same wildcards, by which their files are paired")
        return []
    sources, targets = _matching(source, errors), _matching(target, errors)
    if not sources or not targets or not any(is_pattern):
        return list(zip(sources, targets, strict=False))
    files, partners = _by_wildcards(source, sources), _by_wildcards(target, targets)
    alone = [files.get(key) or partners[key] for key in sorted(files.keys() ^ partners.keys())]
    errors += [
        f"{file}: {source} and {target} match no file of the other side for it; add that file, or move this one"
        for file in alone
    ]
    groups: list[FileGroup] = [(file, partners[key]) for key, file in files.items() if key in partners]
    if same := [file for file, partner in groups if resolved(file) == resolved(partner)]:
        errors.append(f"{same[0]} is on both sides of {source} and {target}; correct one of the patterns")
    return groups


def _by_wildcards(pattern: str, files: Iterable[Path]) -> dict[tuple[str, ...], Path]:
    """Return a dict from the texts that the wildcards of a pattern stand for, to the file with these texts."""
    parts = WILDCARD.split(str(Path(pattern)))
    groups = {"**/": "((?:[^/]+/)*)", "*": "([^/]*)"}
    regex = "".join(groups.get(part, "(.*)") if number % 2 else re.escape(part) for number, part in enumerate(parts))
    return {re.fullmatch(regex, str(file), re.DOTALL).groups(): file for file in files}  # type: ignore[union-attr]


def _matching(named: str, errors: list[str]) -> list[Path]:
    """Return the file with the given name. If there is none, return the files that match it as a pattern, sorted.

    A message is appended to ``errors`` if there is no file.
    """
    if Path(named).is_file():
        return [Path(named)]
    if not WILDCARD.search(named):
        reason = "a folder; name its files" if Path(named).is_dir() else "no such file; correct the path"
        errors.append(f"{named}: {reason}")
        return []
    # Only * is a wildcard, so that names may contain ? and [.
    pattern = re.sub(r"[?[]", r"[\g<0>]", named)
    files = matching_files(pattern)
    if not files:
        errors.append(f"{named}: matches no file; correct the pattern")
    return files


def _repetitions(groups: Sequence[FileGroup]) -> Iterator[str]:
    """Yield a message for each group that is in the list more than once, also under different names."""
    names_of: dict[FileGroup, list[str]] = {}
    for group in groups:
        names_of.setdefault(tuple(map(resolved, group)), []).append(group_name(group))
    for names in names_of.values():
        if len(names) > 1:
            different = dict.fromkeys(names)
            suffix = ", under several names" if len(different) > 1 else ""
            yield f"{' and '.join(different)}: named {len(names)} times{suffix}; name it once"
