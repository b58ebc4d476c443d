"""The columns of each pair that is read: its two sentences, their hashes, and the fault if it cannot be used.

The hashes are computed once, because that takes longer than reading the cache, and because everything that looks for
equal sentences needs only 8 bytes of each.

The processes of ``parallel.py`` import this file, and nothing that is large, such as PyTorch.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow

from mt.core.columns import tables
from mt.core.files import UNDECODABLE
from mt.data.sentence_key import pair_hash, sentence_key

if TYPE_CHECKING:
    import datasets

SIDES = ("source", "target")
KEYS = ("source_key", "target_key")
"""Are equal for sentences that differ only in case, punctuation and white space: see ``sentence_key``."""
PAIR_HASH = "pair_hash"
"""Is equal for equal pairs: see ``mt.data.sentence_key.pair_hash``."""
FAULT = "fault"
"""Is empty, or says why a pair cannot be used for training."""
EMPTY, NOT_UTF_8 = FAULTS = ("empty", "not UTF-8")
PAIRS = pyarrow.schema(
    [
        *((side, pyarrow.string()) for side in SIDES),
        *((name, pyarrow.int64()) for name in (*KEYS, PAIR_HASH)),
        (FAULT, pyarrow.string()),
    ]
)
LINE_BREAK = re.compile(r"\r\n|\r|\n")


def columns_of(pairs: Sequence[tuple[str, str]]) -> pyarrow.RecordBatch:
    """Return pairs with the columns of PAIRS. Line breaks become spaces, and bytes that are not UTF-8, which come as
    surrogates, become U+FFFD."""
    rows = []
    for source, target in pairs:
        fault = ""
        if UNDECODABLE.search(source) or UNDECODABLE.search(target):
            source, target = (UNDECODABLE.sub("\N{REPLACEMENT CHARACTER}", text) for text in (source, target))
            fault = NOT_UTF_8
        elif not source.strip() or not target.strip():
            fault = EMPTY
        source, target = LINE_BREAK.sub(" ", source), LINE_BREAK.sub(" ", target)
        keys = sentence_key(source), sentence_key(target)
        rows.append((source, target, *keys, pair_hash(source, target), fault))
    return pyarrow.record_batch([list(values) for values in zip(*rows, strict=True)], schema=PAIRS)


def sentences_sha256(pairs: "datasets.Dataset") -> str:
    """Return the SHA-256 of the sentences of all pairs, in their order."""
    checksum = hashlib.sha256()
    for table in tables(pairs, SIDES, rows_at_once=10_000):
        both = pyarrow.chunked_array([*table["source"].chunks, *table["target"].chunks], pyarrow.string())
        checksum.update("\n".join(both.to_pylist()).encode())
    return checksum.hexdigest()
