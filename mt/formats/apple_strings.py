"""Reads Apple's string files: ``"key" = "value";``."""

import re

from mt.core.errors import InputError
from mt.formats.document import Document, Languages, decode_declared, line_number, replaced_passage
from mt.formats.layout import cut_paragraphs
from mt.formats.string_values import escapes, is_text, unescape

_GAP = r"(?:\s|/\*.*?\*/|//[^\n]*)*+"
_STRING = r'"(?:[^"\\]|\\.)*+"'
ENTRY = re.compile(
    rf"(?P<key>{_STRING}|[\w.$/:-]++){_GAP}=?{_GAP}(?P<value>{_STRING}|[\w.$/:-]++)?{_GAP};|/\*.*?\*/|//[^\n]*|\s+|\ufeff",
    re.DOTALL,
)
"""An entry, a comment or white space."""
OCTAL = re.compile(r"(\\\\)|\\(?:([0-7]{1,3})|(?=[\r\n]))")
ESCAPES = escapes('"\\', "ntr")


def read_apple_strings(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a string file. The values in quotation marks that are texts are passages to translate.

    The file is in UTF-8, or in UTF-16 with a byte order mark. So is the translation.

    Raises:
        InputError: The content is no string file.
    """
    text, encoding = decode_declared(content, "utf-8")
    passages = []
    position = 0
    while position < len(text):
        statement = ENTRY.match(text, position)
        if statement is None:
            shown = text[position : position + 60].split("\n")[0]
            raise InputError(f'line {line_number(text, position)} is not like "key" = "value"; — correct it: {shown}')
        if statement["value"] and statement["value"].startswith('"'):
            value, key = _unescape(statement["value"][1:-1]), _unescape(statement["key"].strip('"'))
            if is_text(value):
                layout = cut_paragraphs(value, syntax="printf")
                passages.append(replaced_passage(*statement.span("value"), layout, _quote, key, "objc-format"))
        position = statement.end()
    return Document(text, passages, lambda changed: changed.encode(encoding))


def _quote(value: str) -> str:
    return f'"{value.translate(ESCAPES)}"'


def _unescape(text: str) -> str:
    return unescape(OCTAL.sub(lambda match: match[1] or (match[2] and f"\\u{int(match[2], 8):04x}") or "", text))
