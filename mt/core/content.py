"""Recognises binary content, and text that is not in UTF-8, by the beginning of a file."""

import codecs
import re

BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose BOM is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
BINARY = {
    b"PK\x03\x04": "a zip archive (.docx, .odt, .epub and the like are such archives)",
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
"""From this number on, invalid lines are no accident if they are most of the lines that are not ASCII."""
_CUT_LETTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z")
"""The beginning of a letter whose other bytes are missing."""
TO_UTF_8 = "convert the file with: iconv -f {} -t UTF-8"
"""Advice for messages, with a place for the name of an encoding."""
INVALID_UTF_8 = f"invalid UTF-8; {TO_UTF_8.format('ENCODING')}"


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
