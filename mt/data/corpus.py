"""Parallel text of every kind as ``datasets`` data sets: Arrow, memory-mapped, read once and then cached.

The two sides of a pair never part: a pair that cannot be used is dropped as a whole, counted and reported.
"""

import codecs
import csv
import difflib
import errno
import hashlib
import importlib.util
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

import datasets
import huggingface_hub
import numpy as np
import pyarrow
from datasets.exceptions import DatasetGenerationError
from pyarrow import compute, parquet

from mt.config import (
    DataConfig,
    FilesConfig,
    HubConfig,
    MixtureConfig,
    RecipeConfig,
    SingleCorpusConfig,
    TableConfig,
)
from mt.data.column import column
from mt.data.split import hold_out
from mt.errors import InputError
from mt.files import read_lines

logger = logging.getLogger(__name__)

PROJECT = Path(__file__).parents[2]

VERSION = 1
"""Part of every cache key: to be raised when the same input shall give other pairs."""

TEXT = datasets.Value("string")
FEATURES = datasets.Features({"source": TEXT, "target": TEXT, "fault": TEXT})

LINE_BREAK = re.compile(r"\r\n|\r|\n")
UNDECODABLE = re.compile(r"[\ud800-\udfff]")
"""What the error handler ``surrogateescape`` makes of bytes that are no UTF-8."""

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class SplitReport:
    """What became of the pairs of one split of one corpus; read = kept + all that were dropped."""

    split: str
    origin: str
    read: int
    kept: int
    dropped: dict[str, int]
    """How many for each reason."""

    def __str__(self) -> str:
        reasons = "".join(f", {count:,} {reason}" for reason, count in self.dropped.items())
        return f"{self.split}: {self.origin}: {self.read:,} pairs read, {self.kept:,} kept{reasons}"


@dataclass(frozen=True)
class Corpus:
    """What a run learns from and is measured on.

    The columns are ``id`` int64 (the pair's number in its split, in a mixture counted on from corpus to
    corpus), ``source`` and ``target`` string; in ``train`` also ``weight`` float32.
    """

    train: datasets.Dataset
    valid: datasets.Dataset
    test: datasets.Dataset
    report: list[SplitReport]


def load_corpus(config: DataConfig) -> Corpus:
    """Reads all that ``config`` names, or finds it in the cache of ``datasets``.

    Only training pairs are dropped, when a side is empty or no UTF-8; validation and test stay whole. A
    missing validation or test split is held out of the training pairs; those of a mixture come from its first
    corpus. Line breaks inside a sentence (a lone CR, or any in a table's value) become spaces.

    Raises:
        InputError: something is missing, damaged, empty or of another form than ``config`` says.
    """
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    huggingface_hub.utils.disable_progress_bars()
    huggingface_hub.utils.logging.set_verbosity_error()

    corpora: tuple[SingleCorpusConfig, ...] = config.corpora if isinstance(config, MixtureConfig) else (config,)
    factor = config.weight if isinstance(config, MixtureConfig) else 1.0
    training: list[datasets.Dataset] = []
    report: list[SplitReport] = []
    first_id = 0
    for corpus in corpora:
        found = _read(corpus, "train")
        assert found, "only validation and test can be missing"
        pairs, origin = found
        pairs = pairs.add_column("id", np.arange(first_id, first_id + len(pairs)))
        pairs = pairs.add_column("weight", np.full(len(pairs), factor * corpus.weight, dtype=np.float32))
        usable, dropped = _usable(pairs)
        if not len(usable):
            reasons = ", ".join(f"{count:,} {fault}" for fault, count in dropped.items())
            raise InputError(f"{origin}: of {len(pairs):,} training pairs none can be used: {reasons}")
        training.append(usable)
        report.append(SplitReport("train", origin, len(pairs), len(usable), dropped))
        first_id += len(pairs)

    evaluation: dict[str, datasets.Dataset] = {}
    for split in ("valid", "test"):
        if found := _read(corpora[0], split):
            pairs, origin = found
            evaluation[split] = pairs.remove_columns("fault").add_column("id", np.arange(len(pairs)))
            report.append(SplitReport(split, origin, len(pairs), len(pairs), {}))
    if missing := [split for split in ("test", "valid") if split not in evaluation]:
        training[0], held_out = _hold_out(training[0], corpora[0], missing)
        for split, pairs in held_out.items():
            evaluation[split] = pairs
            report.append(SplitReport(split, f"held out of {report[0].origin}", len(pairs), len(pairs), {}))
        counts = {f"held out for {split}": len(pairs) for split, pairs in held_out.items()}
        report[0] = replace(report[0], kept=len(training[0]), dropped=report[0].dropped | counts)
    # The other corpora of a mixture often hold the first one's sentences again.
    for number in range(1, len(training)):
        shared = _shares_a_sentence(training[number], evaluation.values())
        training[number] = training[number].select(np.flatnonzero(~shared))
        counts = {"shared with valid or test": int(shared.sum())} if shared.any() else {}
        report[number] = replace(report[number], kept=len(training[number]), dropped=report[number].dropped | counts)
    train = _concatenated(training)
    for peculiar, count in _peculiarities(train).items():
        if count:
            logger.info("train: %s of %s pairs %s", f"{count:,}", f"{len(train):,}", peculiar)
    for split, pairs in evaluation.items():
        if known := int(_is_in(column(pairs, "source"), [column(train, "source")]).sum()):
            logger.warning(
                "%s: %s of its %s sources also stand in the training data", split, f"{known:,}", f"{len(pairs):,}"
            )
    return Corpus(train, evaluation["valid"], evaluation["test"], report)


def _peculiarities(train: datasets.Dataset) -> dict[str, int]:
    """What is often a mistake, and often not: told, and left alone."""
    sides = pyarrow.table({side: column(train, side) for side in ("source", "target")})
    distinct = sides.group_by(["source", "target"]).aggregate([]).num_rows
    return {
        "repeat an earlier one": len(train) - distinct,
        "have one text on both sides": compute.sum(compute.equal(sides["source"], sides["target"])).as_py(),
    }


def _shares_a_sentence(pairs: datasets.Dataset, others: Iterable[datasets.Dataset]) -> np.ndarray:
    """(N,) bool: whether the source or the target also stands on that side of one of the others."""
    others = list(others)
    sources, targets = (
        _is_in(column(pairs, side), [column(other, side) for other in others]) for side in ("source", "target")
    )
    return sources | targets


def _is_in(texts: pyarrow.ChunkedArray, others: Sequence[pyarrow.ChunkedArray]) -> np.ndarray:
    """(N,) bool"""
    large = pyarrow.large_string()
    known = pyarrow.chunked_array([chunk.cast(large) for other in others for chunk in other.chunks], type=large)
    return compute.is_in(texts.cast(large), value_set=known.combine_chunks()).to_numpy()


def _concatenated(parts: list[datasets.Dataset]) -> datasets.Dataset:
    if len(parts) == 1:
        return parts[0]
    whole = datasets.concatenate_datasets(parts)
    # The fingerprint it comes with also depends on when the parts were read.
    whole._fingerprint = _digest([part._fingerprint for part in parts])
    return whole


def _usable(pairs: datasets.Dataset) -> tuple[datasets.Dataset, dict[str, int]]:
    """The pairs without a fault, and how often each fault occurs."""
    faults = column(pairs, "fault").to_numpy()
    counts = Counter(fault for fault in faults if fault)
    return pairs.select(np.flatnonzero(faults == "")).remove_columns("fault"), dict(counts)


def _hold_out(
    train: datasets.Dataset, corpus: SingleCorpusConfig, splits: Sequence[str]
) -> tuple[datasets.Dataset, dict[str, datasets.Dataset]]:
    """The rest, and each split: as large as ``corpus`` says, but at most a tenth of the training pairs."""
    assert not isinstance(corpus, RecipeConfig), "recipes write all their splits"
    wanted = {"valid": corpus.valid_pairs, "test": corpus.test_pairs}
    most = max(1, len(train) // 10)
    for split in splits:
        if wanted[split] > most:
            logger.info("%s: data.%s_pairs=%d is cut to %d, a tenth of the pairs", split, split, wanted[split], most)
    sizes = [min(wanted[split], most) for split in splits]
    part = hold_out(column(train, "source"), column(train, "target"), sizes)
    held_out = {
        split: train.select(np.flatnonzero(part == number)).remove_columns("weight")
        for number, split in enumerate(splits, 1)
    }
    return train.select(np.flatnonzero(part == 0)), held_out


# Kinds of corpora -----------------------------------------------------------------------------------------


def _read(corpus: SingleCorpusConfig, split: str) -> tuple[datasets.Dataset, str] | None:
    """One split, with FEATURES as its columns, and its origin; None if the corpus has no such split."""
    match corpus:
        case FilesConfig():
            files = {"train": corpus.train, "valid": corpus.valid, "test": corpus.test}[split]
            return None if files is None else _read_files(*(_existing(split, file) for file in files))
        case TableConfig():
            file = {"train": corpus.train, "valid": corpus.valid, "test": corpus.test}[split]
            if file is None:
                return None
            return _read_table(_existing(split, file), corpus.source_column, corpus.target_column)
        case RecipeConfig():
            path = _prepare(corpus) / split
            return _read_files(
                path.with_suffix(f".{corpus.source_language}"), path.with_suffix(f".{corpus.target_language}")
            )
        case HubConfig():
            return _read_hub(corpus, split)


def _existing(split: str, file: str) -> Path:
    path = Path(file)
    if not path.is_file():
        reason = "a folder" if path.is_dir() else "no such file"
        raise InputError(f"data.{split}: {file}: {reason}")
    return path


def _read_files(source: Path, target: Path) -> tuple[datasets.Dataset, str]:
    origin = f"{source} + {target}"
    return _cached(origin, lambda: _line_pairs(source, target), (_state(source), _state(target))), origin


def _line_pairs(source: Path, target: Path) -> Pairs:
    pairs = zip_longest(_text_lines(source), _text_lines(target))
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
    """The folder of a recipe's files, which the recipe writes when one is missing."""
    path = PROJECT / "data" / f"{corpus.recipe}.py"
    specification = importlib.util.spec_from_file_location(corpus.recipe, path)
    assert specification and specification.loader
    recipe = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(recipe)
    for language in (corpus.source_language, corpus.target_language):
        if language not in recipe.LANGUAGES:
            raise InputError(f"data={corpus.recipe} has {' and '.join(recipe.LANGUAGES)}, not {language}")
    folder = path.with_suffix("")
    names = [f"{split}.{language}" for split in ("train", "valid", "test") for language in recipe.LANGUAGES]
    if not all((folder / name).exists() for name in names):
        recipe.prepare(folder)
    return folder


def _read_table(path: Path, source: str | int, target: str | int) -> tuple[datasets.Dataset, str]:
    name = path.name.removesuffix(path.suffix) if path.suffix in (".gz", ".xz", ".zst") else path.name
    readers = {".tsv": _tsv_pairs, ".csv": _csv_pairs, ".jsonl": _jsonl_pairs, ".parquet": _parquet_pairs}
    reader = readers.get(Path(name).suffix)
    if reader is None:
        raise InputError(f"{path}: the name of a table ends in {', '.join(readers)} (text also in .gz, .xz, .zst)")
    key = (_state(path), reader.__name__, source, target)
    return _cached(str(path), lambda: reader(path, source, target), key), str(path)


def _tsv_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    rows = ((number, line.split("\t")) for number, line in enumerate(_text_lines(path), 1))
    return _cell_pairs(path, rows, source, target)


def _csv_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader((line.replace("\r", " ") + "\n" for line in _text_lines(path)), strict=True)

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
    """Two columns of numbered rows, by number, or by name after a header. A blank line is an empty pair."""
    if isinstance(source, str) and isinstance(target, str):
        _, names = next(rows, (0, []))
        first, second = (names.index(_known(column, names, path)) for column in (source, target))
    else:
        first, second = int(source), int(target)
    for number, cells in rows:
        if cells in ([], [""]):
            yield "", ""
        elif len(cells) <= max(first, second):
            raise InputError(
                f"{path}: line {number} has {len(cells)} columns, counted from 0, and none of number "
                f"{max(first, second)}"
            )
        else:
            yield cells[first], cells[second]


def _jsonl_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    for number, line in enumerate(_text_lines(path), 1):
        where = f"{path}: line {number}"
        if not line:
            yield "", ""
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{where} is no JSON: {error.msg} at character {error.colno}") from None
        except RecursionError:
            raise InputError(f"{where} is nested too deeply") from None
        if not isinstance(row, dict):
            raise InputError(f"{where} is no JSON object")
        # The layout of the hub's translation data sets.
        if isinstance(row.get("translation"), dict) and not {source, target} <= row.keys():
            row = row["translation"]
        values = [row[_known(column, list(row), where)] for column in (source, target)]
        if not all(value is None or isinstance(value, str) for value in values):
            raise InputError(f"{where}: {source} and {target} must be text")
        yield values[0] or "", values[1] or ""


def _parquet_pairs(path: Path, source: str | int, target: str | int) -> Pairs:
    try:
        file = parquet.ParquetFile(path)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    columns = [_known(column, file.schema_arrow.names, path) for column in (source, target)]
    for batch in file.iter_batches(columns=columns):
        yield from zip(*(_texts(batch[column], f"{path}: {column}") for column in columns), strict=True)


def _read_hub(corpus: HubConfig, split: str) -> tuple[datasets.Dataset, str] | None:
    name = {"train": corpus.train_split, "valid": corpus.valid_split, "test": corpus.test_split}[split]
    if name is None:
        return None
    logger.info("loading the %s split of %s", name, corpus.path)
    try:
        splits = datasets.load_dataset(corpus.path, corpus.subset, revision=corpus.revision)
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            f"data.path={corpus.path}: this data set cannot be loaded: {error}\n"
            "Check data.path, data.subset, data.revision and the network. data.path may also name a local "
            "folder, and data=files and data=table read files of your own."
        ) from error
    origin = f"{corpus.path}, {name}"
    if name not in splits:
        # The usual names are a guess of ours, not a promise of the data set's.
        if (split, name) in (("valid", "validation"), ("test", "test")):
            return None
        raise InputError(f"data.{split}_split={name}: {corpus.path} has {', '.join(splits)} only")
    pairs = splits[name].with_format("arrow")
    columns = corpus.source_column or corpus.source_language, corpus.target_column or corpus.target_language
    return _cached(origin, lambda: _hub_pairs(pairs, *columns, origin), (pairs._fingerprint, columns)), origin


def _hub_pairs(pairs: datasets.Dataset, source: str, target: str, origin: str) -> Pairs:
    """Two columns, of the data set itself or inside its column ``translation``."""
    nested = "translation" in pairs.column_names and not {source, target} <= set(pairs.column_names)
    for table in pairs.iter(batch_size=1000):
        if nested:
            table = pyarrow.Table.from_struct_array(table["translation"])
        columns = [table[_known(column, table.column_names, origin)] for column in (source, target)]
        yield from zip(*(_texts(column, origin) for column in columns), strict=True)


# What they share ------------------------------------------------------------------------------------------


def _cached(origin: str, pairs: Callable[[], Pairs], key: tuple) -> datasets.Dataset:
    """The pairs as a data set, from the cache when this ``key`` was there before."""
    rows = partial(_rows, origin, pairs)
    try:
        return datasets.Dataset.from_generator(rows, features=FEATURES, fingerprint=_digest((VERSION, key)))
    except DatasetGenerationError as error:
        # It wraps whatever stopped the generator: a mistake in a file, a full disk, an interruption.
        raise error.__cause__ or error from None


def _rows(origin: str, pairs: Callable[[], Pairs]) -> Iterator[dict[str, str]]:
    found = False
    for source, target in pairs():
        found = True
        fault = ""
        if UNDECODABLE.search(source) or UNDECODABLE.search(target):
            source, target = (UNDECODABLE.sub("\N{REPLACEMENT CHARACTER}", text) for text in (source, target))
            fault = "not UTF-8"
        elif not source.strip() or not target.strip():
            fault = "empty"
        yield {"source": LINE_BREAK.sub(" ", source), "target": LINE_BREAK.sub(" ", target), "fault": fault}
    if not found:
        raise InputError(f"{origin}: there is not one pair in it")


def _text_lines(path: Path) -> Iterator[str]:
    """The lines without BOM and CR; bytes that are no UTF-8 become what UNDECODABLE finds."""
    for number, line in enumerate(read_lines(path)):
        line = line.removesuffix(b"\r")
        yield (line if number else line.removeprefix(codecs.BOM_UTF8)).decode("utf-8", "surrogateescape")


def _texts(column: pyarrow.Array | pyarrow.ChunkedArray, where: str) -> list[str]:
    """The values of an Arrow column as UNDECODABLE finds what is wrong in them."""
    try:
        values = column.cast(pyarrow.large_binary()).to_pylist()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise InputError(f"{where}: the values are {column.type}, not text") from None
    return ["" if value is None else value.decode("utf-8", "surrogateescape") for value in values]


def _digest(content: object) -> str:
    return hashlib.blake2b(repr(content).encode(), digest_size=16).hexdigest()


def _state(path: Path) -> tuple[str, int, int]:
    """What tells one content of a file from another without reading it."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return str(path.resolve()), status.st_size, status.st_mtime_ns


def _known(column: str | int, names: Sequence[str], where: object) -> str:
    """
    Raises:
        InputError: there is no column of this name.
    """
    if column in names:
        return str(column)
    nearest = difflib.get_close_matches(str(column), names, 1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    choices = f"{', '.join(names)}{hint} (data.source_column, data.target_column)"
    raise InputError(f"{where}: no column {column!r} among {choices}")
