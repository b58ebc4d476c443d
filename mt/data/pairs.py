"""The columns of a table of pairs: the two sentences, their hashes, and the fault of a pair that cannot be used.

The hashes are computed once, when the pairs are read: everything that looks for equal sentences then needs only 8 bytes
of each.

The processes of ``parallel.py`` import this file, so it imports nothing large, such as PyTorch.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow

from mt.core.columns import tables
from mt.core.errors import InputError
from mt.core.files import UNDECODABLE
from mt.data.sentence_key import pair_hash, sentence_key

if TYPE_CHECKING:
    import datasets

SIDES = ("source", "target")
KEYS = ("source_key", "target_key")
"""The columns with the ``sentence_key`` of each sentence, which ignores case, punctuation and white space."""
PAIR_HASH = "pair_hash"
"""The column with the ``mt.data.sentence_key.pair_hash`` of each pair."""
FAULT = "fault"
"""The column with one of FAULTS if the pair cannot be used for training, otherwise ""."""
EMPTY, UNREADABLE, NOT_UTF_8 = FAULTS = ("empty", "unreadable", "not UTF-8")
"""For an unreadable row, the column ``source`` has the reason."""
PAIRS = pyarrow.schema(
    [
        *((side, pyarrow.string()) for side in SIDES),
        *((name, pyarrow.int64()) for name in (*KEYS, PAIR_HASH)),
        (FAULT, pyarrow.string()),
    ]
)
LINE_BREAK = re.compile(r"\r\n|\r|\n")


def columns_of(pairs: Sequence[tuple[str, str] | InputError]) -> pyarrow.RecordBatch:
    """Return a table with the columns of PAIRS for some pairs of texts, and errors in the place of unreadable ones.

    Line breaks become spaces. Surrogates, which stand for bytes that are not UTF-8, become U+FFFD.
    """
    rows = []
    for pair in pairs:
        source, target = (str(pair), "") if isinstance(pair, InputError) else pair
        fault = ""
        if UNDECODABLE.search(source) or UNDECODABLE.search(target):
            source, target = (UNDECODABLE.sub("\N{REPLACEMENT CHARACTER}", text) for text in (source, target))
            fault = NOT_UTF_8
        if not source.strip() or not target.strip():
            fault = UNREADABLE if isinstance(pair, InputError) else EMPTY
        source, target = LINE_BREAK.sub(" ", source), LINE_BREAK.sub(" ", target)
        keys = sentence_key(source), sentence_key(target)
        rows.append((source, target, *keys, pair_hash(source, target), fault))
    return pyarrow.record_batch([list(values) for values in zip(*rows, strict=True)], schema=PAIRS)


def side_texts(table: "pyarrow.Table | pyarrow.RecordBatch") -> tuple[list[str], list[str]]:
    """Return the sources and the targets of a table of pairs."""
    return table["source"].to_pylist(), table["target"].to_pylist()


def sentences_sha256(pairs: "datasets.Dataset") -> str:
    """Return the SHA-256 of the sentences of all pairs, in their order, as hexadecimal digits."""
    checksum = hashlib.sha256()
    for table in tables(pairs, SIDES, rows_at_once=10_000):
        both = pyarrow.chunked_array([*table["source"].chunks, *table["target"].chunks], pyarrow.string())
        checksum.update("\n".join(both.to_pylist()).encode())
    return checksum.hexdigest()
