"""Reads the lines of text files and the rows of CSV files.

Binary content, and text that is not in UTF-8, are recognized by the beginning of a file.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from mt.core.errors import InputError
from mt.core.files import open_input, read_start

BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose BOM is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
BINARY = {
    b"PK\x03\x04": "a zip archive (as .docx, .odt and .epub are)",
    b"%PDF-": "a PDF file",
    b"{\\rtf": "an RTF document",
    b"\xd0\xcf\x11\xe0": "a document of an old office program (.doc, .xls)",
    b"bplist00": "a binary property list (plutil -convert strings makes text of it)",
    b"\x1f\x8b": "compressed by gzip, but has no suffix .gz",
    b"\xfd7zXZ": "compressed by xz, but has no suffix .xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd, but has no suffix .zst",
    b"BZh": "compressed by bzip2",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"PAR1": "a Parquet table",
}
"""First bytes of a file → what it is."""
MAX_CONTROL_SHARE, MAX_CONTROL_SHARE_OF_INVALID = 0.1, 0.02
"""Text has at most these shares of control characters: valid UTF-8, and text with bytes that are not. In UTF-16, most
letters have a byte that is one."""
MIN_CONTROLS = 8
"""The number of control characters that binary content has at least. A few are found in texts, too."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
MIN_INVALID_LINES = 20
"""From this number on, invalid lines are not an accident if they are most of the lines that are not ASCII."""
_CUT_LETTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z")
"""The beginning of a letter whose other bytes are missing."""
TO_UTF_8 = "convert the file with: iconv -f {} -t UTF-8"
"""A hint for messages, with a place for the name of an encoding."""
INVALID_UTF_8 = f"invalid UTF-8; {TO_UTF_8.format('ENCODING')}"

MAX_LINE_CHARACTERS = 2000
"""A text without LF whose lines would be longer on average, if CR ended them, has CR inside a line."""
CSV_DELIMITER = re.compile(r'"?sep=([,;|\t])"?\s*', re.IGNORECASE)
"""Matches the first line of a CSV file for Excel, which gives the delimiter."""
Lines = Iterator[tuple[int, list[str]]]
"""The rows of a table: the number of each row's line in the file, from 1, and its cells."""


def encoding_of_bom(start: bytes) -> str | None:
    """Return the encoding of the byte order mark at the beginning of a file, utf-16 or utf-32; None if it has none."""
    return next((encoding for bom, encoding in BOMS.items() if start.startswith(bom)), None)


def describe_binary(start: bytes) -> str | None:
    """Return the kind of a binary file, as a phrase such as ``a PDF file``; None for a file that can hold text.

    Args:
        start: The beginning of the file.
    """
    if start[257:262] == b"ustar":
        return "a tar archive"
    for magic, description in BINARY.items():
        if start.startswith(magic):
            return description
    if encoding_of_bom(start):
        return None
    try:
        start[: start.rfind(b"\n")].decode()
        share = MAX_CONTROL_SHARE
    except UnicodeDecodeError:
        share = MAX_CONTROL_SHARE_OF_INVALID
    is_binary = len(_CONTROL.findall(start)) >= max(MIN_CONTROLS, share * len(start))
    return "binary, or text in UTF-16 without a byte order mark" if is_binary else None


def is_mostly_invalid(start: bytes) -> bool:
    """Return whether a text is in another encoding than UTF-8, and does not merely have some faults.

    Most of its lines are invalid UTF-8, or MIN_INVALID_LINES or more are and these are most of the lines that are not
    ASCII. The second rule is for languages with few letters beyond ASCII: two thirds of the lines of a German text in
    Latin-1 are valid UTF-8.

    Args:
        start: The beginning of the file.
    """
    lines = start.split(b"\n")
    lines = lines[:-1] or [_CUT_LETTER.sub(b"", start)]  # the last line may be cut short, or is empty
    special = [line for line in lines if not line.isascii()]
    invalid = sum(line.decode(errors="ignore").encode() != line for line in special)
    return 2 * invalid > (len(special) if invalid >= MIN_INVALID_LINES else len(lines))


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


def csv_rows(path: Path, delimiter: str = ",") -> Lines:
    """Yield the rows of a CSV file, the header included. A blank line is a row without cells.

    Raises:
        InputError: A quote is not closed.
    """
    csv.field_size_limit(2**31 - 1)
    lines = (line.replace("\r", " ") + "\n" for line in text_lines(path))
    named = CSV_DELIMITER.fullmatch(next(text_lines(path), ""))
    reader = csv.reader(lines, strict=True, delimiter=named[1] if named else delimiter)
    if named:
        next(reader)
    try:
        for cells in reader:
            others = [mark for mark in ",;\t|" if mark != delimiter and mark in cells[0]] if len(cells) == 1 else []
            if others and reader.line_num == 1:
                raise InputError(
                    f'{path}: no {delimiter!r} between its columns; set "data.delimiter={others[0]!r}" or, for a '
                    f"glossary, begin the file with the line sep={others[0]}"
                )
            yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num} is not valid CSV: {error}; correct the quotes") from None
