"""Escape sequences in files of messages: ``\\n``, ``\\u00e9`` and the like."""

import re

ESCAPE = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|(?:\r\n|[\r\n])[ \t\f]*|(.))", re.DOTALL)
"""An escape sequence: a code point, a line break that is ignored, or a character."""
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def escapes(signs: str, letters: str) -> dict[int, str]:
    """Return the table for ``str.translate`` that puts a backslash before each sign, and writes letters of ESCAPED."""
    return str.maketrans({sign: f"\\{sign}" for sign in signs} | {ESCAPED[letter]: f"\\{letter}" for letter in letters})


def unescape(text: str) -> str:
    """Return a text with its escape sequences replaced, and with each surrogate pair as one character."""
    text = ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else ESCAPED.get(match[2], match[2] or ""), text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
