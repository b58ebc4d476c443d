"""Tells which values of a file of messages are texts. The others are codes, which a program reads."""

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


def is_text(value: str) -> bool:
    """Return whether a value is a text to translate, and not a code such as a colour, a link, a name or a date."""
    value = value.strip()
    is_code = CODE.fullmatch(value) or NON_TRANSLATABLE.fullmatch(value)
    return is_translatable(value) and (not is_code or MESSAGE.search(value) is not None)
