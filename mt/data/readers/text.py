"""Reads text files: the lines of one, and two whose lines are pairs."""

import codecs
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from mt.core.encodings import encoding_of_bom, other_encoding
from mt.core.errors import InputError
from mt.core.files import read_lines, read_start, read_wide_lines
from mt.data.readers.cached_pairs import Pairs


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines without BOM and CR. Bytes that are not UTF-8 become surrogates, which UNDECODABLE finds.

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
