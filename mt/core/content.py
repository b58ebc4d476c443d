"""Recognises structured and binary content by its beginning, whatever the name of its file."""

import csv
import re

import yaml

from mt.core.encodings import encoding_of_bom

MIN_CONTROL_SHARE = 0.02
"""Content that is not UTF-8 and has at least this share of control characters is binary."""
MIN_CONTROLS = 8
"""The number of control characters that it has at least. A few are found in texts, too."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
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

_XML_START = r"(?:<\?xml\s[^>]*>|<!--.*?-->|<!DOCTYPE (?!html\b)[^>\[]*>|\s)*+"
_HTML_ELEMENT = "(?:[abipsuq]|div|span|[ou]l|dl|table|section|article|blockquote|center|font|em|strong|pre|code)"
_COMMENTS = r"(?:\s|#[^\n]*\n)*+"
_STRING = r'"(?:[^"\\]|\\.)*+"'
STRUCTURES = {
    name: re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for name, pattern in {
        "XLIFF": rf"{_XML_START}<(?:\w+:)?xliff\b",
        "Android strings": rf"{_XML_START}<resources\b",
        "HTML": rf"{_XML_START}<(?:!DOCTYPE )?html\b",
        "XML": rf"<\?xml\s|<!DOCTYPE\s|<(?!{_HTML_ELEMENT}\b)[\w:.-]+(?:\s[^<>]*)?>[ \t]*\r?\n\s*<[\w:.-]+[^<>]*>",
        "PO": rf"{_COMMENTS}(?:msgctxt\s+{_STRING}\s*)?msgid\s+\"",
        "SubRip": r"\s*\d+[ \t]*\r?\n\d+:\d\d:\d\d[,.]\d+[ \t]*-->",
        "WebVTT": r"WEBVTT(?:[ \t][^\n]*)?\r?\n",
        "SubStation Alpha": r"\s*\[Script Info\]",
        "JSON": rf"\s*(?:\{{\s*{_STRING}\s*:|\[\s*(?:\{{\s*[\"}}]|{_STRING}\s*[,\]]))",
        "Apple strings": rf"(?:\s|/\*.*?\*/|//[^\n]*\n)*+{_STRING}\s*=\s*{_STRING}\s*;",
        "TOML or INI": _COMMENTS
        + r'(?:\[{1,2}[\w .:"-]+\]{1,2}[ \t]*\r?\n\s*[\w."-]+[ \t]*=|(?:[\w.-]+[ \t]*=[ \t]*["\[{][^\n]*\n){2})',
        "YAML": r"---[ \t]*\r?\n[^\n]*:(?:\s|$)|" + _COMMENTS + r"[\w.\"'-]+:[ \t]*(?:&\w+[ \t]*)?\r?\n\s+[\w\"'-]",
    }.items()
}
"""Name of a format → a pattern of the beginning of its files."""
_CSV_NAME = re.compile(r"[^\W\d][\w .-]{0,29}")
MAX_CSV_ROWS = 20


def recognise(start: bytes) -> str | None:
    """Return the name of a structured format, a key of STRUCTURES or ``CSV``; None for plain text and binary content.

    Args:
        start: The beginning of a file.
    """
    text = start.decode("utf-8", errors="replace").removeprefix("\ufeff")
    for name, pattern in STRUCTURES.items():
        if pattern.match(text) and (name != "YAML" or _is_nested_yaml(text)):
            return name
    return "CSV" if _is_csv(text) else None


def binary_format(start: bytes) -> str | None:
    """Return the entry of BINARY for the beginning of a file, or None. A tar archive is known by a later mark."""
    if start[257:262] == b"ustar":
        return "a tar archive"
    return next((description for magic, description in BINARY.items() if start.startswith(magic)), None)


def describe_binary(start: bytes) -> str | None:
    """Return the kind of a binary file, as a phrase such as ``a PDF file``; None for a file that can hold text."""
    if description := binary_format(start):
        return description
    try:
        start[: start.rfind(b"\n")].decode()
    except UnicodeDecodeError:
        is_binary = len(_CONTROL.findall(start)) >= max(MIN_CONTROLS, MIN_CONTROL_SHARE * len(start))
        return "binary, and no text" if is_binary and not encoding_of_bom(start) else None
    return None


def _is_nested_yaml(text: str) -> bool:
    """Return whether a text is a YAML mapping with others inside, unlike the lines of a dialogue."""
    try:
        content = yaml.safe_load(text[: text.rfind("\n", 0, 1 << 14) + 1] or text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and any(isinstance(value, dict) for value in content.values())


def _is_csv(text: str) -> bool:
    """Return whether the first line of a text has the names of columns, and the next lines have as many fields."""
    lines = text.splitlines()[: MAX_CSV_ROWS + 1]
    for delimiter in ",;":
        names = lines[0].split(delimiter) if lines else []
        if len(names) > 1 and len(lines) > 1 and all(_CSV_NAME.fullmatch(name.strip('"')) for name in names):
            rows = list(csv.reader(lines[:-1] if len(lines) > MAX_CSV_ROWS else lines, delimiter=delimiter))
            return not any(name.startswith(" ") for name in names) and {len(row) for row in rows if row} == {len(names)}
    return False
