"""Reads one split of one corpus in any of the formats that parallel text comes in: two files of lines, a table or
translation memory, a recipe, or a data set of the Hugging Face hub.

Line breaks inside a sentence (a lone CR, or any line break in a table's value) become spaces. Pairs that cannot be used
stay in their place; their column ``fault`` says why.
"""

import codecs
import contextlib
import csv
import errno
import hashlib
import importlib.util
import json
import logging
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

import datasets
import pyarrow
from datasets.exceptions import DatasetGenerationError
from pyarrow import parquet

from mt.config import FilesConfig, HubConfig, RecipeConfig, SingleCorpusConfig, TableConfig
from mt.core.columns import ROWS_AT_ONCE, tables
from mt.core.encodings import encoding_of_bom, other_encoding
from mt.core.errors import InputError, RunError
from mt.core.files import read_lines, read_start, read_wide_lines
from mt.core.installation import RECIPES, corpora
from mt.core.wording import nearest
from mt.data.cache import cached_table, digest
from mt.data.input_files import Unit, is_pile, name_of, named_files, table_format
from mt.data.pairs import PAIRS, columns_of
from mt.data.parallel import in_order
from mt.data.parsers.document import read_whole
from mt.data.parsers.po import po_pairs
from mt.data.parsers.tmx import tmx_pairs
from mt.data.parsers.xliff import xliff_pairs

logger = logging.getLogger(__name__)

VERSION = 4
"""Part of every cache key. Raise it when the same input is to give other pairs or other columns than before."""

READERS = ("arrow", "cache", "csv", "json", "parquet", "text")
"""The modules of ``datasets`` that may read a data set: those for tables of text, and the one for data that these have
left in the cache. Others read images or audio, or formats in which a file can name code to run, such as pickles."""
ADVICE = "data=files and data=table read files of your own"

COLUMN_KEYS = "data.source_column, data.target_column"

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class FileRead:
    """One file of a pile, or one pair of files, and what came of it."""

    paths: tuple[str, ...]
    pairs: int
    sha256: str
    """Of the sentences, as ``fingerprint`` computes it. "" for a file that was left out."""
    left_out: str = ""
    """Why the file is bad and nothing of it is used; "" for a good one."""

    @property
    def name(self) -> str:
        return " + ".join(self.paths)


@dataclass(frozen=True)
class Split:
    """One split of a corpus."""

    pairs: datasets.Dataset
    """With PAIRS as its columns."""
    origin: str
    """What it is called in messages."""
    files: tuple[FileRead, ...] = ()
    """The files of a pile, in the order of their pairs; () for anything else."""


def read_split(corpus: SingleCorpusConfig, split: str) -> Split | None:
    """Reads one split of a corpus. Returns None if the corpus has no such split.

    Raises:
        InputError: Something is missing, damaged, empty or of another form than ``corpus`` says.
    """
    match corpus:
        case FilesConfig() | TableConfig():
            units = named_files(corpus, split)
            if units is None:
                return None
            if is_pile(corpus, split):
                return _read_pile(corpus, split, units)
            return Split(_read_unit(corpus, units[0]), name_of(units[0]))
        case RecipeConfig():
            path = _prepare(corpus) / split
            source, target = (path.with_suffix(f".{code}") for code in (corpus.source_language, corpus.target_language))
            return Split(_read_files(source, target), name_of((source, target)))
        case HubConfig():
            return _read_hub(corpus, split)


def refuse_missing_files(corpora: Iterable[SingleCorpusConfig]) -> None:
    """Raises InputError if files of the corpora are missing. It names all of them, before the first file is read."""
    found = []
    for corpus in corpora:
        if isinstance(corpus, FilesConfig | TableConfig):
            for split in ("train", "valid", "test"):
                try:
                    named_files(corpus, split)
                except InputError as error:
                    found.append(str(error))
    if found:
        raise InputError("\n".join(found))


def _read_pile(corpus: FilesConfig | TableConfig, split: str, units: Sequence[Unit]) -> Split:
    """Reads files one after another, each into a place of its own in the cache. So a bad file takes nothing with it,
    and a file that is added later does not make the others be read again."""
    named = getattr(corpus, split)
    origin = f"{named} ({len(units)} files)" if isinstance(named, str) else f"{len(units)} files"
    parts: list[datasets.Dataset] = []
    files = []
    for unit in units:
        try:
            pairs = _read_unit(corpus, unit)
        except InputError as error:
            if corpus.on_bad_file == "stop":
                advice = "\ndata.on_bad_file=skip leaves such a file out" if len(units) > 1 else ""
                raise InputError(f"{error}{advice}") from error
            reason = str(error).removeprefix(f"{name_of(unit)}: ")
            files.append(FileRead(tuple(map(str, unit)), 0, "", reason))
            logger.warning("%s: left out, nothing of it is used: %s", name_of(unit), reason)
        else:
            parts.append(pairs)
            files.append(FileRead(tuple(map(str, unit)), len(pairs), fingerprint(pairs)))
    if not parts:
        raise InputError(f"data.{split}: none of {origin} can be read: {files[0].name}: {files[0].left_out}")
    return Split(concatenated(parts), origin, tuple(files))


def concatenated(parts: Sequence[datasets.Dataset]) -> datasets.Dataset:
    """Returns all pairs, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    whole = datasets.concatenate_datasets(list(parts))
    # The fingerprint that ``datasets`` gives it also depends on when the parts were read.
    whole._fingerprint = digest([part._fingerprint for part in parts])
    return whole


def _read_unit(corpus: FilesConfig | TableConfig, unit: Unit) -> datasets.Dataset:
    return _read_files(*unit) if isinstance(corpus, FilesConfig) else _read_table(unit[0], *corpus.columns)


def _read_files(source: Path, target: Path) -> datasets.Dataset:
    return _cached(name_of((source, target)), lambda: _line_pairs(source, target), (_state(source), _state(target)))


def _line_pairs(source: Path, target: Path) -> Pairs:
    pairs = zip_longest(text_lines(source), text_lines(target))
    for number, (source_line, target_line) in enumerate(pairs):
        if source_line is None or target_line is None:
            longer = number + 1 + sum(1 for _ in pairs)
            counts = (number, longer) if source_line is None else (longer, number)
            raise InputError(
                f"{source} has {counts[0]:,} lines but {target} has {counts[1]:,}: each line of one "
                "must be the translation of the same line of the other"
            )
        yield source_line, target_line


def _prepare(corpus: RecipeConfig) -> Path:
    """Returns the folder of a recipe's files. If one is missing, runs the recipe, which writes them."""
    path = RECIPES / f"{corpus.recipe}.py"
    specification = importlib.util.spec_from_file_location(corpus.recipe, path)
    assert specification and specification.loader
    recipe = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(recipe)
    for language in (corpus.source_language, corpus.target_language):
        if language not in recipe.LANGUAGES:
            raise InputError(f"data={corpus.recipe} has {' and '.join(recipe.LANGUAGES)}, not {language}")
    folder = corpora() / corpus.recipe
    names = [f"{split}.{language}" for split in ("train", "valid", "test") for language in recipe.LANGUAGES]
    if not all((folder / name).exists() for name in names):
        recipe.prepare(folder)
    return folder


def _read_table(path: Path, source: str | int, target: str | int) -> datasets.Dataset:
    reader = {
        ".tsv": _tsv_pairs, ".csv": _csv_pairs, ".jsonl": _jsonl_pairs, ".parquet": _parquet_pairs, ".tmx": _tmx_pairs,
        ".po": _po_pairs, ".xlf": _xliff_pairs, ".xliff": _xliff_pairs,
    }[table_format(path)]  # fmt: skip
    key = (_state(path), reader.__name__, source, target)
    return _cached(str(path), lambda: reader(path, source, target), key)


def _tsv_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    rows = ((number, line.split("\t")) for number, line in enumerate(text_lines(path), 1))
    return _cell_pairs(path, rows, source, target)


def _csv_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader((line.replace("\r", " ") + "\n" for line in text_lines(path)), strict=True)

    def rows() -> Iterator[tuple[int, list[str]]]:
        width = None
        try:
            for cells in reader:
                width = width or len(cells)
                if cells and len(cells) != width:
                    raise InputError(
                        f"{path}: line {reader.line_num} has {len(cells)} columns but the first has {width}: "
                        "values with commas need quotes"
                    )
                yield reader.line_num, cells
        except csv.Error as error:
            raise InputError(f"{path}: line {reader.line_num} is no CSV: {error}") from None

    return _cell_pairs(path, rows(), source, target)


def _cell_pairs(path: Path, rows: Iterator[tuple[int, list[str]]], source: str | int, target: str | int) -> Pairs:
    """Yields two columns of numbered rows. A blank line is an empty pair.

    The columns are given by number, or by name if the first row is a header.
    """
    if isinstance(source, str) and isinstance(target, str):
        _, names = next(rows, (0, []))
        advice = f"{COLUMN_KEYS}; or column numbers from 0, if the file has no header line"
        first, second = (names.index(_known(column, names, path, advice)) for column in (source, target))
    else:
        first, second = int(source), int(target)
    for number, cells in rows:
        if cells in ([], [""]):
            yield "", ""
        elif len(cells) <= max(first, second):
            raise InputError(
                f"{path}: line {number} has {len(cells)} columns, numbered from 0, and none of number "
                f"{max(first, second)} ({COLUMN_KEYS})"
            )
        else:
            yield cells[first], cells[second]


def _jsonl_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    for number, line in enumerate(text_lines(path), 1):
        where = f"{path}: line {number}"
        if not line:
            yield "", ""
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{where} is no JSON: {error.msg} at character {error.colno}") from None
        except ValueError as error:  # such as a number with thousands of digits
            raise InputError(f"{where} cannot be read: {error}") from None
        except RecursionError:
            raise InputError(f"{where} is nested too deeply") from None
        if not isinstance(row, dict):
            raise InputError(f"{where} is no JSON object")
        # This is the layout of the hub's translation data sets.
        if isinstance(row.get("translation"), dict) and not {source, target} <= row.keys():
            row = row["translation"]
        values = [row[_known(column, list(row), where)] for column in (source, target)]
        if not all(value is None or isinstance(value, str) for value in values):
            raise InputError(f"{where}: {source} and {target} must be text")
        yield values[0] or "", values[1] or ""


def _parquet_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    try:
        file = parquet.ParquetFile(path)
        columns = [_known(column, file.schema_arrow.names, path) for column in (source, target)]
        for batch in file.iter_batches(columns=columns):
            yield from zip(*(_texts(batch[column], f"{path}: {column}") for column in columns), strict=True)
    except (OSError, KeyError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def _tmx_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    return tmx_pairs(path, str(source), str(target))


def _po_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    return _document_pairs(po_pairs, path, source, target)


def _xliff_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    return _document_pairs(xliff_pairs, path, source, target)


def _document_pairs(
    pairs: Callable[[bytes, str, str], Pairs], path: Path, source: str | int, target: str | int
) -> Pairs:
    """Yields the entries of a document that has a text and its translation."""
    try:
        yield from pairs(read_whole(path), str(source), str(target))
    except InputError as error:
        raise InputError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None


def _read_hub(corpus: HubConfig, split: str) -> Split | None:
    name = {"train": corpus.train_split, "valid": corpus.valid_split, "test": corpus.test_split}[split]
    if name is None:
        return None
    logger.info("loading the %s split of %s", name, corpus.path)
    _refuse_scripts(corpus.path)
    with _telling_of_failures(corpus.path):
        builder = datasets.load_dataset_builder(corpus.path, corpus.subset, revision=corpus.revision)
        _refuse_other_modules(corpus.path, builder)
        if corpus.streaming:
            splits = builder.as_streaming_dataset()
        else:
            builder.download_and_prepare()
            splits = builder.as_dataset()
    origin = f"{corpus.path}, {name}"
    if name not in splits:
        # The usual names are only our guess: the data set need not have splits of these names.
        if (split, name) in (("valid", "validation"), ("test", "test")):
            logger.info("%s has no split %s", corpus.path, name)
            return None
        raise InputError(f"data.{split}_split={name}: {corpus.path} has {', '.join(splits)} only")
    pairs = splits[name].with_format("arrow")
    columns = corpus.source_column or corpus.source_language, corpus.target_column or corpus.target_language
    most = corpus.most_pairs if split == "train" else None
    # What streams has no fingerprint, but the folder that it would be downloaded to is named after all that it depends
    # on: the revision of the files on the hub, or the time when a local file was changed.
    place = (builder.cache_dir, name) if corpus.streaming else pairs._fingerprint

    def of_columns() -> Pairs:
        with _telling_of_failures(corpus.path):
            yield from islice(_hub_pairs(pairs, *columns, origin, min(1000, most or 1000)), most)

    return Split(_cached(origin, of_columns, (place, columns, *([most] if most else []))), origin)


@contextlib.contextmanager
def _telling_of_failures(path: str) -> Iterator[None]:
    """Raises InputError where a data set cannot be loaded, unless that is because the disk is full."""
    try:
        yield
    except (InputError, RunError, MemoryError):
        raise
    except Exception as error:  # of many kinds: those of the library, of Arrow, and of the library for HTTP
        reason = error.__cause__ if isinstance(error, DatasetGenerationError) and error.__cause__ else error
        if isinstance(reason, OSError) and reason.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            f"data.path={path}: this data set cannot be loaded: {reason}\n"
            "Check data.path, data.subset, data.revision and the network. data.path may also name a local "
            "folder, and data=files and data=table read files of your own."
        ) from error


def _refuse_scripts(path: str) -> None:
    """Raises InputError if ``path`` is a data set's script or a folder with one, however ``datasets`` treats it."""
    script = Path(path) if path.endswith(".py") else Path(path) / f"{Path(path).name}.py"
    if script.is_file():
        raise InputError(f"data.path={path}: {script} is a script, and nothing that a data set brings is run; {ADVICE}")


def _refuse_other_modules(path: str, builder: datasets.DatasetBuilder) -> None:
    """Raises InputError, before anything is read, if the module that would read the data set is not one of READERS."""
    # for example datasets.packaged_modules.json.json
    package, _, module = type(builder).__module__.rpartition(".")
    if package not in (f"datasets.packaged_modules.{name}" for name in READERS):
        raise InputError(
            f"data.path={path}: its files are for the module {module} of the library datasets. Only Arrow, CSV, JSON, "
            f"Parquet and text are read, which cannot bring anything to be run; {ADVICE}"
        )


def _hub_pairs(
    pairs: datasets.Dataset | datasets.IterableDataset, source: str, target: str, origin: str, rows_at_once: int
) -> Pairs:
    """Yields two columns, either of the data set itself or inside its column ``translation``."""
    for table in pairs.iter(batch_size=rows_at_once):
        nested = "translation" in table.column_names and not {source, target} <= set(table.column_names)
        if nested:
            table = pyarrow.Table.from_struct_array(table["translation"])
        columns = [table[_known(column, table.column_names, origin)] for column in (source, target)]
        yield from zip(*(_texts(column, origin) for column in columns), strict=True)


def _cached(origin: str, pairs: Callable[[], Pairs], key: tuple) -> datasets.Dataset:
    """Returns the pairs as a data set, from the cache if it has pairs for this ``key``."""

    def batches() -> Iterator[pyarrow.RecordBatch]:
        some = None
        for some in in_order(columns_of, _lists(pairs())):
            yield some
        if some is None:
            raise InputError(f"{origin}: there is not one pair in it")

    place = digest((VERSION, unicodedata.unidata_version, key))
    return cached_table(place, PAIRS, batches, f"reading {origin}")


def _lists(pairs: Pairs) -> Iterator[list[tuple[str, str]]]:
    following = iter(pairs)
    while some := list(islice(following, ROWS_AT_ONCE)):
        yield some


def text_lines(path: Path) -> Iterator[str]:
    """Yields the lines without BOM and CR. Bytes that are not UTF-8 become surrogates, which UNDECODABLE finds.

    Raises:
        InputError: The text is in another encoding than UTF-8, and no BOM says so.
    """
    start = read_start(path)
    if encoding := encoding_of_bom(start):
        yield from (line.removesuffix("\r") for line in read_wide_lines(path, encoding))
        return
    if other := other_encoding(start):
        code, name = other
        raise InputError(
            f"{path}: is not in UTF-8; by its beginning it seems to be {name}. This makes UTF-8 of it: "
            f"iconv -f {code} -t UTF-8"
        )
    for number, line in enumerate(read_lines(path)):
        line = line.removesuffix(b"\r")
        yield (line if number else line.removeprefix(codecs.BOM_UTF8)).decode("utf-8", "surrogateescape")


def _texts(column: pyarrow.Array | pyarrow.ChunkedArray, where: str) -> list[str]:
    """Returns the values of an Arrow column as text, and null as an empty text. Bytes that are not UTF-8 become
    surrogates, which UNDECODABLE finds."""
    try:
        values = column.cast(pyarrow.large_binary()).to_pylist()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise InputError(f"{where}: the values are {column.type}, not text") from None
    return ["" if value is None else value.decode("utf-8", "surrogateescape") for value in values]


def fingerprint(pairs: datasets.Dataset) -> str:
    """Returns the SHA-256 of the sentences of all pairs, in their order."""
    found = hashlib.sha256()
    for table in tables(pairs, ("source", "target"), rows_at_once=10_000):
        both = pyarrow.chunked_array([*table["source"].chunks, *table["target"].chunks], pyarrow.string())
        found.update("\n".join(both.to_pylist()).encode())
    return found.hexdigest()


def _state(path: Path) -> tuple[str, int, int, int, int]:
    """Returns what shows, without reading a file, that its content is another than before.

    The size and the modification time can be those of an earlier file (``cp -p``, ``rsync --times``, ``touch -r``). The
    time of the last status change and the inode cannot: the file system sets them itself.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _known(column: str | int, names: Sequence[str], where: object, advice: str = COLUMN_KEYS) -> str:
    """Returns the name of the column. Raises InputError if it is not one of ``names``."""
    if column in names:
        return str(column)
    meant = nearest(str(column), names)
    hint = f"; did you mean {meant}?" if meant else ""
    choices = f"{', '.join(names)}{hint} ({advice})"
    raise InputError(f"{where}: no column {column!r} among {choices}")
