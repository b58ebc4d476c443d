"""The lines to translate: those of a file, or the training sources of a run."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from mt.core.columns import texts
from mt.core.errors import InputError
from mt.core.text_files import text_lines
from mt.data.cleaning.findings import read_dropped, remove_dropped
from mt.data.corpus import Corpus, load_corpus
from mt.data.pairs import sentence_key, sentences_sha256
from mt.formats.registry import pair_suffix
from mt.storage.run_folder import PROVENANCE, read_config
from mt.storage.validation import read_json
from mt.text.placeholders import CORPUS_TAG

Side = Literal["source", "target"]
OPPOSITE: dict[Side, Side] = {"source": "target", "target": "source"}


@dataclass(frozen=True)
class LineSource:
    """Lines of text that are not kept in memory."""

    count: int
    """The number of lines."""
    sha256: str
    """The checksum of all lines."""
    read: Callable[[], Iterator[str]]
    """Yields all lines. It can be called several times."""


def read_file_lines(path: Path) -> LineSource:
    """Return the lines of a file. Bytes that are not UTF-8 are decoded as surrogates.

    Raises:
        InputError: The file is missing, corrupted, empty, a pipe, a table, binary or not in UTF-8.
    """
    if path.is_fifo():
        raise InputError(f"input={path}: a pipe can be read only once; give a file")
    if suffix := pair_suffix(path):
        raise InputError(f"input={path}: {suffix} is a table; give a file with only the text, a sentence on each line")
    lines = _line_source(lambda: text_lines(path))
    if not lines.count:
        raise InputError(f"input={path}: the file is empty; give a file with lines to translate")
    return lines


def load_run_corpus(run: Path) -> Corpus:
    """Read the corpus of a run again, without the training pairs that its cleaning dropped.

    Raises:
        InputError: The corpus is missing, or its validation or test pairs have changed.
    """
    try:
        data = read_config(run).data
        corpus = load_corpus(data, warn=False)
        dropped = read_dropped(run) if data.cleaning_rules else {}
        corpus = remove_dropped(corpus, dropped, data)
        recorded = read_json(run / PROVENANCE, "data")["data"]
    except InputError as error:
        raise InputError(f"the corpus of {run} is needed; restore it to its original path: {error}") from None
    for split, pairs in (("valid", corpus.valid), ("test", corpus.test)):
        current = {"pairs": len(pairs), "sha256": sentences_sha256(pairs)}
        if not isinstance(recorded, dict) or recorded.get(split) != current:
            raise InputError(
                f"the {split} pairs of {run} have changed since it was trained, so held-out pairs may now be training "
                "pairs; restore its corpus"
            )
    return corpus


def read_corpus_lines(corpus: Corpus) -> LineSource:
    """Return the training sources, without the corpus tag of synthetic lines."""
    return _line_source(lambda: (line.removeprefix(f"{CORPUS_TAG} ") for line in texts(corpus.train, "source")))


def held_out_keys(corpus: Corpus) -> dict[Side, frozenset[int]]:
    """Return for each side the keys (``sentence_key``) of the validation and test sentences."""
    return {
        side: frozenset(map(sentence_key, chain(texts(corpus.valid, side), texts(corpus.test, side))))
        for side in OPPOSITE
    }


def _line_source(read: Callable[[], Iterator[str]]) -> LineSource:
    """Count the lines and compute their checksum."""
    count, digest = 0, hashlib.sha256()
    for line in read():
        count += 1
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return LineSource(count, digest.hexdigest(), read)
