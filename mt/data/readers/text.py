"""Reads text files: the lines of one, and two whose lines are pairs."""

import io
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from mt.core.encodings import encoding_of_bom, other_encoding
from mt.core.errors import InputError
from mt.core.files import open_input, read_start
from mt.data.readers.cached_pairs import Pairs


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines, which end at ``\\n`` alone, without BOM and CR.

    Bytes that are not UTF-8 become surrogates, which UNDECODABLE finds.

    Raises:
        InputError: The text is in another encoding than UTF-8 and no BOM says so, or not in the encoding of its BOM.
    """
    start = read_start(path)
    encoding = encoding_of_bom(start)
    if not encoding and (other := other_encoding(start)):
        code, name = other
        raise InputError(
            f"{path}: is not in UTF-8; by its beginning it seems to be {name}. This makes UTF-8 of it: "
            f"iconv -f {code} -t UTF-8"
        )
    codec, errors = (encoding, "surrogatepass") if encoding else ("utf-8-sig", "surrogateescape")
    try:
        # With newline="\n", neither CR nor U+2028 ends a line.
        with open_input(path) as stream, io.TextIOWrapper(stream, codec, errors, newline="\n") as text:
            for line in text:
                yield line.removesuffix("\n").removesuffix("\r")
    except UnicodeError as error:
        raise InputError(f"{path}: is not in {codec.upper()}, of which it has the BOM: {error}") from None


def line_pairs(source: Path, target: Path) -> Pairs:
    """Yield the pairs of lines of two files.

    Raises:
        InputError: One file has more lines.
    """
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
