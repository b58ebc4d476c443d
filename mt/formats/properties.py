"""Reads Java's property files: ``key = value``."""

import codecs
import re

from mt.formats.document import Document, Languages, replaced_passage
from mt.formats.layout import cut_paragraphs
from mt.formats.string_values import escapes, is_text, unescape

_CONTINUATION = r"\\(?:\r\n|[\r\n])[ \t\f]*+"
_GAP = rf"(?:[ \t\f]|{_CONTINUATION})*+"
LINE = re.compile(
    r"[ \t\f]*+(?:[#!][^\r\n]*+"
    rf"|(?P<key>(?:{_CONTINUATION}|[^ \t\f\r\n\\:=]|\\.|\\\Z)*+){_GAP}[:=]?{_GAP}"
    rf"(?P<value>(?:[^\r\n\\]|{_CONTINUATION}|\\.|\\\Z)*+)"
    r")(?:\r\n|[\r\n]|\Z)",
    re.DOTALL,
)
"""A comment, or a key and its value. Key and value may continue in the next line after a backslash."""
ESCAPES = escapes("\\", "tnrf")
ARGUMENT = re.compile(r"\{\d+[,}]")
"""An argument of java.text.MessageFormat, such as {0}. A text with arguments writes an apostrophe twice."""


def read_properties(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a property file. The values that are texts are passages to translate; keys and comments are kept.

    The file is in UTF-8 or, as before Java 9, in Latin-1 with escapes such as ``\\u20ac``. The translation has the same
    encoding; that of an ASCII file is ASCII, which can be read as either.
    """
    try:
        text, encoding = content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text, encoding = content.decode("latin-1"), "latin-1"
    if text.isascii():
        encoding = "ascii"

    def escape(value: str) -> str:
        value = value.translate(ESCAPES)
        return f"\\{value}" if value.startswith(" ") else value

    def escape_message(value: str) -> str:
        return escape(value.replace("'", "''"))

    passages = []
    for line in LINE.finditer(text):
        value = unescape(line["value"] or "")
        if not is_text(value):
            continue
        write, flag = escape, "java-printf-format"
        if ARGUMENT.search(value) and "'" in value.replace("''", ""):  # a single apostrophe quotes braces
            flag = "java-format"
        elif ARGUMENT.search(value):
            value, write = value.replace("''", "'"), escape_message
        layout = cut_paragraphs(value, accelerators=True)
        passages.append(replaced_passage(*line.span("value"), layout, write, unescape(line["key"]), flag))
    return Document(text, passages, lambda rendered: rendered.encode(encoding, "java_escape"))


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Return escapes such as ``\\u20ac`` for characters that an encoding lacks. This is a codecs error handler."""
    assert isinstance(error, UnicodeEncodeError)
    codes = error.object[error.start : error.end].encode("utf-16-be").hex()
    return re.sub("....", r"\\u\g<0>", codes), error.end


codecs.register_error("java_escape", _escape_unencodable)
