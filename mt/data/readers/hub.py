"""Reads data sets of the Hugging Face hub, and local folders of the same layout."""

import contextlib
import errno
import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import datasets
import pyarrow
from datasets.exceptions import DatasetGenerationError

from mt.config import HubConfig
from mt.core.errors import InputError, RunError
from mt.data.readers.cached_pairs import Pairs, cached_split
from mt.data.readers.tables import column_pairs, find_column
from mt.data.split_report import Split

logger = logging.getLogger(__name__)

ALLOWED_MODULES = ("arrow", "cache", "csv", "json", "parquet", "text")
"""The modules of ``datasets`` that may read a data set: those for tables of text, and the one for data that these have
left in the cache. Others read images or audio, or formats in which a file can name code to run, such as pickles."""
ADVICE = "data=files and data=table read files of your own"
MAX_STREAMED_ROWS = 1000
"""The number of rows that are read at a time."""


def read_hub(corpus: HubConfig, split: str) -> Split | None:
    name = {"train": corpus.train_split, "valid": corpus.valid_split, "test": corpus.test_split}[split]
    if name is None:
        return None
    logger.info("loading the %s split of %s", name, corpus.path)
    _refuse_scripts(corpus.path)
    with _as_input_errors(corpus.path):
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
    rows = splits[name].with_format("arrow")
    columns = corpus.source_column or corpus.source_language, corpus.target_column or corpus.target_language
    max_pairs = corpus.most_pairs if split == "train" else None
    # A stream has no fingerprint, but the folder that it would be downloaded to is named after all that it depends on:
    # the revision of the files on the hub, or the time when a local file was changed.
    key = (builder.cache_dir, name) if corpus.streaming else rows._fingerprint

    def pairs() -> Pairs:
        with _as_input_errors(corpus.path):
            yield from islice(_hub_pairs(rows, columns, origin, max_pairs), max_pairs)

    return cached_split(origin, pairs, (key, columns, max_pairs))


@contextlib.contextmanager
def _as_input_errors(path: str) -> Iterator[None]:
    """Raise InputError where a data set cannot be loaded, unless that is because the disk is full."""
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
            f"Check data.path, data.subset, data.revision and the network. data.path may also name a local folder; "
            f"{ADVICE}."
        ) from error


def _refuse_scripts(path: str) -> None:
    """Raise InputError if ``path`` is a data set's script or a folder with one, however ``datasets`` treats it."""
    script = Path(path) if path.endswith(".py") else Path(path) / f"{Path(path).name}.py"
    if script.is_file():
        raise InputError(f"data.path={path}: {script} is a script, and nothing that a data set brings is run; {ADVICE}")


def _refuse_other_modules(path: str, builder: datasets.DatasetBuilder) -> None:
    """Raise InputError, before anything is read, if the module that would read the data set is not allowed."""
    # for example datasets.packaged_modules.json.json
    package, _, module = type(builder).__module__.rpartition(".")
    if package not in (f"datasets.packaged_modules.{name}" for name in ALLOWED_MODULES):
        raise InputError(
            f"data.path={path}: its files are for the module {module} of the library datasets. Only Arrow, CSV, JSON, "
            f"Parquet and text are read, which cannot bring anything to be run; {ADVICE}"
        )


def _hub_pairs(
    rows: datasets.Dataset | datasets.IterableDataset, columns: tuple[str, str], origin: str, max_pairs: int | None
) -> Pairs:
    """Yield two columns, either of the data set itself or inside its column ``translation``."""
    for table in rows.iter(batch_size=min(MAX_STREAMED_ROWS, max_pairs or MAX_STREAMED_ROWS)):
        if "translation" in table.column_names and not set(columns) <= set(table.column_names):
            table = pyarrow.Table.from_struct_array(table["translation"])
        names = [find_column(column, table.column_names, origin) for column in columns]
        yield from column_pairs(table, names, origin)
