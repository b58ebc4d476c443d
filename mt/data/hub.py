"""Read datasets of the Hugging Face hub, and local folders with the same layout."""

import contextlib
import errno
import logging
from collections.abc import Iterator
from itertools import islice

import datasets
import pyarrow
from datasets.exceptions import DatasetGenerationError

from mt.config import HubConfig
from mt.core.errors import InputError, RunError
from mt.data.split import Split, cached_split
from mt.formats.tables import Pairs, check_columns, column_pairs

logger = logging.getLogger(__name__)

ALLOWED_MODULES = ("arrow", "cache", "csv", "json", "parquet", "text")
"""The modules of ``datasets`` that may read a dataset: those for tables of text, and the one for tables in the cache.
The others read images or audio, or formats whose files can contain executable code, such as pickles."""
HINT = "to train on files of your own, use data=files or data=table"
MAX_STREAMED_ROWS = 1000
"""The maximum number of rows in memory at a time."""


def read_hub(corpus: HubConfig, split: str) -> Split | None:
    """Read a split of a dataset. Unless it is streamed or cached by ``datasets``, it is downloaded.

    Return None if the config does not name the split, or if it has the default name and the dataset lacks the split.

    Raises:
        InputError: The dataset cannot be loaded, would run code, or lacks a split or column.
    """
    name = getattr(corpus, f"{split}_split")
    if name is None:
        return None
    logger.info("loading the %s split of %s", name, corpus.path)
    with _translate_errors(corpus.path):
        builder = datasets.load_dataset_builder(corpus.path, corpus.subset, revision=corpus.revision)
        # For example, datasets.packaged_modules.json.json. No file has been read yet.
        package, _, module = type(builder).__module__.rpartition(".")
        if package not in (f"datasets.packaged_modules.{name}" for name in ALLOWED_MODULES):
            raise InputError(
                f"data.path={corpus.path}: its files need the module {module} of the library datasets. Only Arrow, "
                f"CSV, JSON, Parquet and text are read, because these cannot contain code; {HINT}"
            )
        if corpus.streaming:
            splits = builder.as_streaming_dataset()
        else:
            builder.download_and_prepare()
            splits = builder.as_dataset()
    origin = f"{corpus.path}, {name}"
    if name not in splits:
        # These are the default names. A dataset does not need to have splits of these names.
        if (split, name) in (("valid", "validation"), ("test", "test")):
            logger.info("%s has no split %s: these pairs are held out of its training pairs", corpus.path, name)
            return None
        raise InputError(f"data.{split}_split={name}: use one of the splits of {corpus.path}: {', '.join(splits)}")
    rows = splits[name].with_format("arrow")
    columns = corpus.source_column or corpus.source_language, corpus.target_column or corpus.target_language
    max_pairs = corpus.most_pairs if split == "train" else None
    # A stream has no fingerprint. The name of its download folder serves instead: it depends on the revision of the
    # files on the hub, or on the modification time of a local file.
    key = (builder.cache_dir, name) if corpus.streaming else rows._fingerprint

    def pairs() -> Pairs:
        with _translate_errors(corpus.path):
            yield from islice(_hub_pairs(rows, columns, origin, max_pairs), max_pairs)

    return cached_split(origin, pairs, (key, columns, max_pairs))


@contextlib.contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    """Context manager: turn exceptions of ``datasets`` into InputError, except that of a full disk."""
    try:
        yield
    except (InputError, RunError, MemoryError):
        raise
    except Exception as error:  # there are many kinds: those of ``datasets``, of Arrow, and of the HTTP library
        reason = error.__cause__ if isinstance(error, DatasetGenerationError) and error.__cause__ else error
        if isinstance(reason, OSError) and reason.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            f"data.path={path}: this dataset cannot be loaded: {reason}\n"
            f"Check data.path (a name on the hub or a local folder), data.subset, data.revision and the network; "
            f"{HINT}."
        ) from error


def _hub_pairs(
    rows: datasets.Dataset | datasets.IterableDataset, columns: tuple[str, str], origin: str, max_pairs: int | None
) -> Pairs:
    """Yield the pairs of two columns of a dataset, or of the fields of its column ``translation`` with these names.

    Args:
        rows: The rows, in Arrow format.
        columns: The names of the source column and the target column.
        origin: The name of the dataset in messages.
        max_pairs: The number of pairs that the caller reads, or None for all. It limits the rows that are downloaded at
            a time, not the pairs that are yielded.
    """
    for table in rows.iter(batch_size=min(MAX_STREAMED_ROWS, max_pairs or MAX_STREAMED_ROWS)):
        if "translation" in table.column_names and not set(columns) <= set(table.column_names):
            table = pyarrow.Table.from_struct_array(table["translation"])
        yield from column_pairs(table, check_columns(columns, table.column_names, origin), origin)
