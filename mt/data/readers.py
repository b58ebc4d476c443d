"""Read a split of a corpus: from files of the user, from a recipe, or from the Hugging Face hub.

Files are given by names, folders, or patterns such as ``memories/*.tmx``. They are read in the order of the settings,
and sorted by name within a folder or pattern, so that the order is the same on every machine.

Line breaks inside a sentence (a lone CR, or any line break in a cell of a table) become spaces. Pairs that cannot be
used stay at their position; the column ``fault`` has the reason.

To add a kind of corpus, add a module with its reader, and an entry to READERS. To add a file format, add a function
that yields its pairs, and an entry to PAIR_READERS of ``mt.formats.registry``.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from runpy import run_path
from typing import Any

import datasets
from pyarrow import compute

from mt.config import FilesConfig, HubConfig, RecipeConfig, SingleCorpusConfig, TableConfig, as_pairs, named_sets
from mt.core.errors import InputError, causes, is_exhaustion
from mt.core.files import COMPRESSIONS, matching_files, read_start, resolved
from mt.core.installation import RECIPES, corpora
from mt.core.output import is_device
from mt.core.text_files import describe_binary, text_lines
from mt.data.cache import concatenate
from mt.data.hub import read_hub
from mt.data.pairs import FAULT, UNREADABLE, sentences_sha256
from mt.data.split import InputFile, Split, cached_split, file_state
from mt.formats.registry import PAIR_READERS, pair_suffix
from mt.formats.tables import Pairs, Rows

logger = logging.getLogger(__name__)

WILDCARD = re.compile(r"((?<![^/])\*\*/|\*+)")
"""Matches ``**/`` (any number of folders) or ``*`` (part of a name)."""
JSON_ARRAY = re.compile(rb"[\xef\xbb\xbf \t\r\n]*\[")
"""Matches the beginning of a JSON array."""

FileGroup = tuple[Path, ...]
"""Files that are read together: a single table, or a source file and its target file."""


def check_input_files(corpora: Iterable[SingleCorpusConfig]) -> None:
    """Raise InputError if a file of any corpus or split cannot be found. The message lists all such errors."""
    errors: list[str] = []
    for corpus in corpora:
        if not isinstance(corpus, FilesConfig | TableConfig):
            continue
        groups: list[FileGroup] = []
        for split in ("train", "valid", "test"):
            try:
                for part in named_sets(corpus, split).values():
                    groups += find_input_files(part, split) or ()
            except InputError as error:
                errors.append(str(error))
        is_csv = any(pair_suffix(path) == ".csv" for path, *_ in groups)
        if getattr(corpus, "delimiter", ",") != "," and not is_csv and not errors:
            errors.append("data.delimiter: none of the files is .csv; remove this setting, or rename the files")
    if errors:
        raise InputError("\n".join(errors))


def find_input_files(corpus: FilesConfig | TableConfig, split: str) -> list[FileGroup] | None:
    """Return the files of a split in the order of their pairs, or None if the corpus does not name the split.

    Raises:
        InputError: A file is missing or named twice, a folder or pattern has no file, a source file has no target file
            or the reverse, or the suffix of a table is unknown. The message has a line for each of these errors.
    """
    named = getattr(corpus, split)
    if named is None:
        return None
    errors: list[str] = []
    if isinstance(corpus, FilesConfig):
        groups = [group for pair in as_pairs(named) for group in _find_file_pairs(*pair, errors)]
    else:
        names = (named,) if isinstance(named, str) else named
        groups = [group for name in names for group in _find_tables(name, errors)]
    errors += _repetition_errors(groups)
    if errors:
        raise InputError("\n".join(f"data.{split}: {error}" for error in dict.fromkeys(errors)))
    return groups


def names_several_files(corpus: FilesConfig | TableConfig, split: str) -> bool:
    """Return whether a split is given by a list, folder or pattern instead of a single file or pair of files."""
    named = getattr(corpus, split)
    names = [named] if isinstance(corpus, TableConfig) else named
    return not all(isinstance(name, str) and Path(name).is_file() for name in names)


def group_name(group: FileGroup) -> str:
    """Return the name of a group in messages: ``a.en + a.es``."""
    return " + ".join(map(str, group))


def _find_tables(named: str, errors: list[str]) -> list[FileGroup]:
    """Return the tables for a file name, a folder or a pattern, each as a group of its own."""
    path = Path(named)
    suffixes = ", ".join(PAIR_READERS)
    if path.is_dir():
        visible = (file for file in path.iterdir() if not file.name.startswith("."))  # as for patterns
        tables = sorted(file for file in visible if pair_suffix(file) and file.is_file())
        # Other .json files describe the tables.
        files = [file for file in tables if file.suffix != ".json" or JSON_ARRAY.match(read_start(file))]
        if not files:
            array = "a .json counts if it is an array of pairs: [{…}, …]"
            errors.append(f"{named}: this folder has no file whose name ends in {suffixes} ({array}); name another one")
    else:
        files = _find_files(named, errors)
    rule = f"rename it so that it ends in {suffixes} (text may also be compressed: {', '.join(COMPRESSIONS)})"
    for file in files:
        if not pair_suffix(file):
            binary = describe_binary(read_start(file))
            errors.append(f"{file}: is {binary}; unpack or convert it" if binary else f"{file}: unknown format; {rule}")
    return [(file,) for file in files]


def _find_file_pairs(source: str, target: str, errors: list[str]) -> list[FileGroup]:
    """Return the pairs of files for two file names or two patterns.

    Files that match patterns are paired if their wildcards match the same texts.
    """
    is_pattern = [bool(WILDCARD.search(side)) and not Path(side).is_file() for side in (source, target)]
    if any(is_pattern) and (WILDCARD.findall(source) != WILDCARD.findall(target) or not all(is_pattern)):
        errors.append(f"{source} and {target} must have the same wildcards, by which their files are paired")
        return []
    sources, targets = _find_files(source, errors), _find_files(target, errors)
    if not sources or not targets or not any(is_pattern):
        return list(zip(sources, targets, strict=False))
    files, partners = _key_by_wildcards(source, sources), _key_by_wildcards(target, targets)
    alone = [files.get(key) or partners[key] for key in sorted(files.keys() ^ partners.keys())]
    errors += [
        f"{file}: {source} and {target} match no file of the other side for it; add that file, or move this one"
        for file in alone
    ]
    groups: list[FileGroup] = [(file, partners[key]) for key, file in files.items() if key in partners]
    if same := [file for file, partner in groups if resolved(file) == resolved(partner)]:
        errors.append(f"{same[0]} is on both sides of {source} and {target}; correct one of the patterns")
    return groups


def _key_by_wildcards(pattern: str, files: Iterable[Path]) -> dict[tuple[str, ...], Path]:
    """Return a dict from the texts that the wildcards of a pattern match in a file name, to this file."""
    parts = WILDCARD.split(str(Path(pattern)))
    groups = {"**/": "((?:[^/]+/)*)", "*": "([^/]*)"}
    regex = "".join(groups.get(part, "(.*)") if number % 2 else re.escape(part) for number, part in enumerate(parts))
    return {re.fullmatch(regex, str(file), re.DOTALL).groups(): file for file in files}  # type: ignore[union-attr]


def _find_files(named: str, errors: list[str]) -> list[Path]:
    """Return the file with the given name. If there is none, return the files that match the name as a pattern, sorted.

    If there are none either, append a message to ``errors``.
    """
    if Path(named).is_file():
        return [Path(named)]
    if not WILDCARD.search(named):
        reason = "a folder; name its files" if Path(named).is_dir() else "no such file; correct the path"
        if is_device(named):
            reason = "a pipe or device, which cannot be read again; write its text to a file, and name that"
        errors.append(f"{named}: {reason}")
        return []
    # Only * is a wildcard, so that names may contain ? and [.
    pattern = re.sub(r"[?[]", r"[\g<0>]", named)
    files = matching_files(pattern)
    if not files:
        errors.append(f"{named}: matches no file; correct the pattern")
    return files


def _repetition_errors(groups: Sequence[FileGroup]) -> Iterator[str]:
    """Yield a message for each group that occurs more than once, under the same name or under different names."""
    names_of: dict[FileGroup, list[str]] = {}
    for group in groups:
        names_of.setdefault(tuple(map(resolved, group)), []).append(group_name(group))
    for names in names_of.values():
        if len(names) > 1:
            different = dict.fromkeys(names)
            suffix = ", under several names" if len(different) > 1 else ""
            yield f"{' and '.join(different)}: named {len(names)} times{suffix}; name it once"


def file_line_pairs(source: Path, target: Path) -> Pairs:
    """Yield each line of the source file with the line of the target file that has the same number.

    Raises:
        InputError: A file cannot be read, or one file has more lines. The pairs up to there have been yielded.
    """
    pairs = zip_longest(text_lines(source), text_lines(target))
    for number, (source_line, target_line) in enumerate(pairs):
        if source_line is None or target_line is None:
            longer = number + 1 + sum(1 for _ in pairs)
            counts = (number, longer) if source_line is None else (longer, number)
            raise InputError(
                f"{source} has {counts[0]:,} lines but {target} has {counts[1]:,}; add or remove lines until line N of "
                "the target is the translation of line N of the source, for every N"
            )
        yield source_line, target_line


def read_text_files(source: Path, target: Path) -> Split:
    """Return a split with the lines of a source file and a target file as its pairs. It is cached."""
    key = file_state(source), file_state(target)
    return cached_split(group_name((source, target)), lambda: file_line_pairs(source, target), key)


def _read_group(corpus: FilesConfig | TableConfig, files: FileGroup) -> Split:
    """Return a split with the pairs of one group of files. It is cached.

    Raises:
        InputError: A file cannot be read. With ``data.skip_bad_rows``, more than half of its rows cannot be read.
    """
    if isinstance(corpus, FilesConfig):
        return read_text_files(*files)
    path, columns, skips = files[0], corpus.columns, corpus.skip_bad_rows
    suffix = pair_suffix(path)
    options = {"delimiter": corpus.delimiter} if suffix == ".csv" else {}

    def rows() -> Rows:
        for row in PAIR_READERS[suffix](path, columns, **options):
            if isinstance(row, InputError):
                if not skips:
                    raise InputError(f"{row}\nOr skip all such rows with data.skip_bad_rows=true")
                row = InputError(str(row).removeprefix(f"{path}: "))  # does not change if the file moves
            yield row

    split = cached_split(str(path), rows, (file_state(path), suffix, columns, options, skips))
    if unreadable := compute.indices_nonzero(compute.equal(split.pairs.data.column(FAULT), UNREADABLE)).to_pylist():
        reason = split.pairs[unreadable[0]]["source"]
        message = f"{path}: {len(unreadable):,} of {len(split.pairs):,} rows cannot be read"
        if 2 * len(unreadable) > len(split.pairs):
            raise InputError(f"{message}, too many to skip; the first: {reason}")
        logger.warning("%s and are skipped; the first: %s", message, reason)
    return split


def read_input_files(corpus: FilesConfig | TableConfig, split: str) -> Split | None:
    """Read a split from all its files, in order. Return None if the corpus does not name the split.

    The cache has a table for each file, so that only new and changed files are parsed. A file that cannot be read stops
    the program or, with ``data.on_bad_file=skip``, is skipped as a whole and logged.

    Raises:
        InputError: A file is missing or cannot be read, or no file can be read.
    """
    groups = find_input_files(corpus, split)
    if groups is None:
        return None
    if not names_several_files(corpus, split):
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
                hint = "\nCorrect this file, or skip it with data.on_bad_file=skip" if len(groups) > 1 else ""
                raise InputError(f"{error}{hint}") from error
            reason = str(error).removeprefix(f"{name}: ")
            logger.warning("%s: the whole file is skipped: %s", name, reason)
            files.append(InputFile(paths, left_out=reason))
        else:
            parts.append(pairs)
            files.append(InputFile(paths, len(pairs), sentences_sha256(pairs), kept=len(pairs)))
    if not parts:
        raise InputError(
            f"data.{split}: none of {origin} can be read; correct the first one: {files[0].name}: {files[0].left_out}"
        )
    return Split(concatenate(parts), origin, tuple(files))


def read_recipe(corpus: RecipeConfig, split: str) -> Split:
    """Read a split of the corpus of a recipe. If one of the files is missing, run the recipe, which writes them all."""
    recipe = run_path(str(RECIPES / f"{corpus.recipe}.py"))
    languages = recipe["LANGUAGES"]
    for language in (corpus.source_language, corpus.target_language):
        if language not in languages:
            raise InputError(
                f"data={corpus.recipe} has {' and '.join(languages)}, not {language}; set data.source_language "
                "and data.target_language to these"
            )
    folder = corpora() / corpus.recipe
    names = [f"{split}.{language}" for split in ("train", "valid", "test") for language in languages]
    if not all((folder / name).exists() for name in names):
        recipe["prepare"](folder)
    return read_text_files(folder / f"{split}.{corpus.source_language}", folder / f"{split}.{corpus.target_language}")


READERS: dict[type, Callable[[Any, str], Split | None]] = {
    FilesConfig: read_input_files,
    TableConfig: read_input_files,
    HubConfig: read_hub,
    RecipeConfig: read_recipe,
}
"""Maps each kind of corpus to its reader: a function of the config and the name of a split (``train``, ``valid`` or
``test``). It returns the split, or None if the corpus has no such split. It raises InputError if a file is missing,
corrupted, empty or in another format than the config says."""
