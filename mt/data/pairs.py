"""The columns of a table of pairs: sentences, hashes, the fault of a pair that cannot be used, and subwords.

Equal texts have equal hashes. Two sentences also have the same ``sentence_key`` if they differ only in case,
punctuation, symbols, whitespace or Unicode compatibility forms. Hashes are computed once, when the pairs are read, so
that a search for equal sentences needs only 8 bytes per sentence.

The processes of ``parallel.py`` import this file, so it must not import large libraries such as PyTorch.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from unicodedata import category, normalize

import numpy as np
import pyarrow

from mt.core.columns import tables
from mt.core.errors import InputError
from mt.core.files import UNDECODABLE

if TYPE_CHECKING:
    import datasets

    from mt.text.layer import TextLayer

SPACING_ACCENT = re.compile(" [\u0300-\u036f]+")
"""Matches the result of NFKC for a standalone accent, as in l´eau: a space and a combining accent."""
PUNCTUATION_IN_NUMBER = re.compile(r"\0(?<=\d\0)\0*(?=\d)")
"""Matches punctuation between two digits, after ``_NormalFormTable`` has replaced it by NUL."""

TextPairs = tuple[Sequence[str], Sequence[str]]
"""N sources and N targets."""
SIDES = ("source", "target")
KEYS = ("source_key", "target_key")
"""The columns with the ``sentence_key`` of each sentence, which ignores case, punctuation and whitespace."""
PAIR_HASH = "pair_hash"
"""The column with the ``pair_hash`` of each pair."""
FAULT = "fault"
"""The column with one of FAULTS if the pair cannot be used for training, otherwise ""."""
EMPTY, UNREADABLE, NOT_UTF_8 = FAULTS = ("empty", "unreadable", "not UTF-8")
"""The column ``source`` of an unreadable row contains the reason."""
PAIRS = pyarrow.schema(
    [
        *((side, pyarrow.string()) for side in SIDES),
        *((name, pyarrow.int64()) for name in (*KEYS, PAIR_HASH)),
        (FAULT, pyarrow.string()),
    ]
)
LINE_BREAK = re.compile(r"\r\n|\r|\n")

TOKENS = pyarrow.list_(pyarrow.int32())
ID_COLUMNS = ("source_ids", "target_ids")
SUBWORDS = pyarrow.schema(
    [(f"{side}_{name}", kind) for side in SIDES for name, kind in (("ids", TOKENS), ("length", pyarrow.int32()))]
)


class _NormalFormTable(dict[int, int | str | None]):
    """The table for ``str.translate`` that removes whitespace and invisible characters, and replaces punctuation and
    symbols by NUL. A character is added when it first occurs."""

    def __missing__(self, code: int) -> int | str | None:
        kind = category(chr(code))
        replacement: int | str | None = code
        if kind[0] == "Z" or kind in ("Cc", "Cf") or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
            replacement = None  # the two ranges are variation selectors, which follow an emoji or an ideograph
        elif kind[0] in "PS" or code == 0x2BC:
            replacement = "\0"  # U+02BC is an apostrophe that Unicode counts as a letter
        self[code] = replacement
        return replacement


_NORMAL_FORM_TABLE = _NormalFormTable()


def normal_form(text: str) -> str:
    """Return the normal form of a sentence. It is the same for sentences that differ only in case, punctuation,
    symbols, whitespace or compatibility forms.

    - The text is normalized by NFKC and case-folded. Punctuation, symbols, whitespace, and control and format
      characters are removed.
    - Punctuation inside a number becomes a full stop, so that 3.5 equals 3,5 but not 35.
    - A text that consists of punctuation keeps it.
    - Accents, digits and combining marks are kept: été differs from ete.

    Character classes are those of Python's ``unicodedata``. Python versions may treat characters that are newer than
    Unicode 14 (Python 3.11) differently.
    """
    folded = normalize("NFKC", text).casefold()
    if not folded.isascii():
        folded = SPACING_ACCENT.sub("", normalize("NFKC", folded))  # folded text may not be normalized
    form = folded.translate(_NORMAL_FORM_TABLE)
    if "\0" in form:
        form = PUNCTUATION_IN_NUMBER.sub(".", form).replace("\0", "")
    return form or "".join(folded.split()) or text


def sentence_key(text: str) -> int:
    """Return a 64-bit hash of the ``normal_form`` of a sentence, as a signed number.

    Among ten million different sentences, two have the same hash with probability 1/370,000. They would be treated as
    equal, and their pairs would be held out together.
    """
    return text_hash(normal_form(text))


def pair_hash(source: str, target: str) -> int:
    """Return a 64-bit hash of the unnormalized text of a pair, as a signed number. It decides which pairs are held
    out."""
    return text_hash(f"{source}\n{target}")


def text_hash(text: str) -> int:
    """Return a 64-bit hash of a text, as a signed number."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def combined_hash(hashes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Combine each hash with the other one at the same index: (N,) int64, given (N,) int64 and (N,) int64."""
    return hashes * (0x9E3779B97F4A7C15 - 2**64) + others  # the factor is odd, so that no bit of a hash is lost


def pairs_table(pairs: Sequence[tuple[str, str] | InputError]) -> pyarrow.RecordBatch:
    """Return a table with the columns of PAIRS, given pairs of texts. An error stands for a row that cannot be read.

    Line breaks become spaces. Surrogates, which represent bytes that are not UTF-8, become U+FFFD.
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


def read_texts(pairs: "datasets.Dataset", rows: np.ndarray) -> Iterator[TextPairs]:
    """Yield the sources and the targets of the given rows, in order, a few thousand rows at a time."""
    return map(side_texts, tables(pairs, SIDES, rows))


def sentences_sha256(pairs: "datasets.Dataset") -> str:
    """Return the SHA-256 of the sentences of all pairs, in order, as hexadecimal digits."""
    checksum = hashlib.sha256()
    for table in tables(pairs, SIDES, rows_at_once=10_000):
        both = pyarrow.chunked_array([*table["source"].chunks, *table["target"].chunks], pyarrow.string())
        checksum.update("\n".join(both.to_pylist()).encode())
    return checksum.hexdigest()


def add_subwords(pairs: pyarrow.RecordBatch, layer: "TextLayer") -> pyarrow.RecordBatch:
    """Add the columns of SUBWORDS to pairs: the token ids of each side, without BOS and EOS, and their number."""
    sources, targets = zip(*map(layer.prepare_pair, *side_texts(pairs)), strict=True)
    columns = list(pairs.columns)
    for tokenizer, texts in ((layer.tokenizers.source, sources), (layer.tokenizers.target, targets)):
        ids = pyarrow.array(tokenizer.encode(texts), TOKENS)
        columns += [ids, ids.value_lengths()]
    return pyarrow.record_batch(columns, schema=pyarrow.schema([*pairs.schema, *SUBWORDS]))
