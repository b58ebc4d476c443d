"""Detects text in other encodings than UTF-8."""

import codecs
import re

BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose BOM is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
MIN_FOREIGN_LINES = 20
"""From this number on, lines that are not UTF-8 are no accident if they are most of the lines that are not ASCII."""
CUT_LETTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z")
"""The beginning of a letter whose other bytes are missing."""
MIN_CONTROL_SHARE = 0.25
"""Every second byte is a control character in UTF-16 if the script is below U+2000: the upper byte of a letter."""
CONTROL = re.compile(rb"[\x00-\x1f]")
NO_TEXT = {"\0", "\ufffd"}
"""Characters that binary content has when it is decoded as UTF-16."""
BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")


def encoding_of_bom(start: bytes) -> str | None:
    """Return the encoding of the byte order mark at the beginning of a file, utf-16 or utf-32; None if it has none."""
    return next((encoding for bom, encoding in BOMS.items() if start.startswith(bom)), None)


def other_encoding(start: bytes) -> tuple[str, str] | None:
    """Guess the encoding of a text from the beginning of its file, unless it is UTF-8.

    A line is foreign if it is not valid UTF-8, or if it has NULs and many other control characters. The text is in
    another encoding if most of its lines are foreign, or if MIN_FOREIGN_LINES or more are and these are most of the
    lines that are not ASCII. The second rule is for languages with few letters beyond ASCII: two thirds of the lines of
    a German text in Latin-1 are valid UTF-8.

    Returns:
        The name of the encoding for iconv, or ``ENCODING`` if it is not known, and a description for messages; None if
        the text is UTF-8, perhaps with some faults.
    """
    lines = start.split(b"\n")
    lines = lines[:-1] or [CUT_LETTER.sub(b"", start)]  # the last line may be cut short, or is empty
    foreign = [line for line in lines if _seems_utf_16(line) or line.decode(errors="replace").encode() != line]
    special = [line for line in lines if _seems_utf_16(line) or not line.isascii()]
    if 2 * len(foreign) <= (len(special) if len(foreign) >= MIN_FOREIGN_LINES else len(lines)):
        return None
    if 2 * sum(b"\0" in line for line in foreign) > len(foreign):
        # The line breaks tell the order of the bytes: in the wrong one they would be U+0A00, which is no character.
        breaks = {code: start.decode(code, "replace").count("\n") for code in ("UTF-16LE", "UTF-16BE")}
        code = max(breaks, key=breaks.__getitem__)
        if NO_TEXT.isdisjoint(start.decode(code, "replace")):
            return code, "UTF-16 without a byte order mark"
    runs = BEYOND_ASCII.findall(start)
    if sum(len(run) == 1 for run in runs) * 2 > len(runs):
        return "WINDOWS-1252", "Latin-1 or Windows-1252 (or Windows-1250 for Central European languages)"
    return "ENCODING", (
        "an encoding of another script, such as WINDOWS-1251 (Cyrillic), GB18030 or BIG5 (Chinese), SHIFT-JIS "
        "(Japanese) or EUC-KR (Korean)"
    )


def _seems_utf_16(line: bytes) -> bool:
    return b"\0" in line and len(CONTROL.findall(line)) > MIN_CONTROL_SHARE * len(line)
