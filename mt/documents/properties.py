"""Java's property files: ``key = value``."""

import re

from mt.data.parsers.document import Document, Languages, in_place, is_text
from mt.data.parsers.layout import cut

_GOES_ON = r"\\(?:\r\n|[\r\n])[ \t\f]*+"
_GAP = rf"(?:[ \t\f]|{_GOES_ON})*+"
LINE = re.compile(
    r"[ \t\f]*+(?:[#!][^\r\n]*+"
    rf"|(?:{_GOES_ON}|[^ \t\f\r\n\\:=]|\\.|\\\Z)*+{_GAP}[:=]?{_GAP}(?P<value>(?:[^\r\n\\]|{_GOES_ON}|\\.|\\\Z)*+)"
    r")(?:\r\n|[\r\n]|\Z)",
    re.DOTALL,
)
"""A comment; or a key and its value, each of which may go on in the next line behind a backslash."""
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(?:\r\n|[\r\n])[ \t\f]*|(.))", re.DOTALL)
ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
SPELT = str.maketrans({"\\": "\\\\"} | {value: f"\\{key}" for key, value in ESCAPED.items()})
ARGUMENT = re.compile(r"\{\d+[,}]")
"""An argument of MessageFormat. In a text with arguments an apostrophe is written twice."""


def read_properties(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Reads a file of properties, of which all values are translated.

    It is in UTF-8 or, as it was before Java 9, in Latin-1, in which other characters are written ``\\u20ac``. A file
    that has nothing but ASCII is written so that it is the same in both.
    """
    try:
        text, encoding = content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text, encoding = content.decode("latin-1"), "latin-1"
    encoding = "ascii" if text.isascii() else encoding

    def spelt(value: str) -> str:
        value = value.translate(SPELT)
        value = f"\\{value}" if value.startswith(" ") else value
        units = (character.encode("utf-16-be").hex() for character in value if _lacks(encoding, character))
        if encoding == "utf-8":
            return value
        return "".join(
            re.sub("....", r"\\u\g<0>", next(units)) if _lacks(encoding, character) else character
            for character in value
        )

    passages = []
    place = 0
    while place < len(text):
        line = LINE.match(text, place)
        assert line, "whatever is no comment is a key with a value, both of which may be empty"
        place = line.end()
        if line["value"]:
            value = ESCAPE.sub(_character, line["value"])
            doubled = ARGUMENT.search(value) is not None and "'" not in value.replace("''", "")
            layout = cut(value.replace("''", "'") if doubled else value, accelerators=True)
            write = (lambda one: spelt(one.replace("'", "''"))) if doubled else spelt
            if is_text(value):
                passages.append(in_place(*line.span("value"), layout, write))
    return Document(
        text, tuple(passages), lambda written: written.encode("latin-1" if encoding == "ascii" else encoding)
    )


def _lacks(encoding: str, character: str) -> bool:
    return ord(character) >= {"ascii": 0x80, "latin-1": 0x100}.get(encoding, 0x110000)


def _character(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    if code:
        return chr(int(code, 16))
    return ESCAPED.get(letter, letter) if letter else ""
