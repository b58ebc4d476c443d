"""Read the lines of a text file, and pairs of lines of two text files."""

import io
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from mt.core.content import INVALID_UTF_8, describe_binary, encoding_of_bom, is_mostly_invalid
from mt.core.errors import InputError
from mt.core.files import open_input, read_start
from mt.data.readers.cached_pairs import Pairs

MAX_LINE_CHARACTERS = 2000
"""A text without LF whose lines would be longer on average, if CR ended them, has CR inside a line."""


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, which may be compressed, without line ends and byte order mark.

    A line ends only at ``\\n`` or ``\\r\\n``. The file is in UTF-8, or in the encoding of its byte order mark. Bytes
    that are not UTF-8 become surrogates, which UNDECODABLE matches.

    Raises:
        InputError: The file cannot be read, holds no text, ends its lines in CR, or is mostly in another encoding.
    """
    start = read_start(path)
    encoding = encoding_of_bom(start)
    if binary := describe_binary(start):
        raise InputError(f"{path}: is {binary}; unpack or convert it, and give the text")
    if not encoding and is_mostly_invalid(start):
        raise InputError(f"{path}: {INVALID_UTF_8}")
    beginning = start.decode(encoding or "utf-8", "replace")
    if "\n" not in beginning and beginning[:-1].count("\r") * MAX_LINE_CHARACTERS > len(beginning):
        raise InputError(
            f"{path}: its lines end in CR alone, and only LF ends a line; convert it with: tr '\\r' '\\n' < {path}"
        )
    codec, errors = (encoding, "surrogatepass") if encoding else ("utf-8-sig", "surrogateescape")
    try:
        # With newline="\n", neither CR nor U+2028 ends a line.
        with open_input(path) as stream:
            text = io.TextIOWrapper(
                stream, codec, errors, newline="\n"
            )  # closed with the stream, which is checked first
            for line in text:
                yield line.removesuffix("\n").removesuffix("\r")
    except UnicodeError as error:
        raise InputError(
            f"{path}: has the byte order mark of {codec.upper()}, but is not in {codec.upper()}: {error}; save it in "
            "UTF-8"
        ) from None


def file_line_pairs(source: Path, target: Path) -> Pairs:
    """Yield each line of the source file with the line of the target file that has the same number.

    Raises:
        InputError: A file cannot be read, or one file has more lines. The pairs before that have been yielded.
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
