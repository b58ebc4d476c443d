"""The values of string files: which of them are texts, and their escape sequences."""

import re

import regex

from mt.formats.document import is_translatable
from mt.formats.kinds import NON_TRANSLATABLE
from mt.formats.messages import MESSAGE

CODE = regex.compile(
    r"(?:rgb|hsl)a?\([^()]*\)|(?:url|var|calc)\(.*\)"  # CSS
    r"|(?:text|image|application|audio|video|font|multipart|message)/[\w.+*-]+"  # a media type
    r"|[a-z]{2,3}(?:[-_][A-Z][a-z]{3})?[-_][A-Z]{2}|[a-z]{2,3}[-_](?:Hans|Hant|Latn|Cyrl|Arab)"  # a locale
    # user.name, utf-8, @string/app_name, :year
    r"|[a-z]\w*+(?:[.:]\w++(?:-\w++)*+)++|[a-z]++(?:-\d++)++|[@?]\+?[\w.:]++/[\w.]++|:[a-z_]\w*+"
    r"|[\d.]+\s?(?:r?em|px|pt|v[hw]|m?s|deg)|\#[0-9A-Fa-f]{3,8}"
)
"""A value that a program reads."""
ESCAPE = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|(?:\r\n|[\r\n])[ \t\f]*|(.))", re.DOTALL)
"""An escape sequence: a code point, a line break that is ignored, or a character."""
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def is_text(value: str) -> bool:
    """Return whether a value is a text to translate, and not a code such as a colour, a link, a name or a date."""
    value = value.strip()
    is_code = CODE.fullmatch(value) or NON_TRANSLATABLE.fullmatch(value)
    return is_translatable(value) and (not is_code or MESSAGE.search(value) is not None)


def escapes(signs: str, letters: str) -> dict[int, str]:
    """Return the table for ``str.translate`` that puts a backslash before each sign, and writes letters of ESCAPED."""
    return str.maketrans({sign: f"\\{sign}" for sign in signs} | {ESCAPED[letter]: f"\\{letter}" for letter in letters})


def unescape(text: str) -> str:
    """Return a text with its escape sequences replaced, and with each surrogate pair as one character."""
    text = ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else ESCAPED.get(match[2], match[2] or ""), text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
