"""The attributes of tags, with their positions."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mt.text.tags import ATTRIBUTE, Kind, Token, decode


class Attribute(NamedTuple):
    """An attribute of a tag."""

    tag: Token
    name: str
    value: str
    start: int
    """The start of the value in the document, quotation marks included."""
    end: int


def read_attributes(text: str, tag: Token, kind: Kind) -> Iterator[Attribute]:
    """Yield the attributes of a tag that have values."""
    offset = tag.start + 1
    for match in re.finditer(ATTRIBUTE, text[offset : tag.end], re.ASCII):
        group = match.lastindex or 0
        if group > 1:
            start, end = (offset + position for position in match.span(group))
            quotes = int(group != 4)
            name = match[1].lower() if kind == "html" else match[1]
            yield Attribute(tag, name, decode(match[group], kind), start - quotes, end + quotes)
