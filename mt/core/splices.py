"""Replacements of spans of a text, which leave the rest of it as it is."""

from collections.abc import Iterable
from typing import NamedTuple

Span = tuple[int, int]
"""The start and end of a part of a text."""


class Splice(NamedTuple):
    """A replacement for the characters of a text from ``start`` up to, but without, ``end``."""

    start: int
    end: int
    content: str


def apply_splices(text: str, splices: Iterable[Splice]) -> str:
    """Return the text with all replacements made. They must be sorted by position and must not overlap."""
    parts, done = [], 0
    for start, end, content in splices:
        parts += [text[done:start], content]
        done = end
    return "".join(parts) + text[done:]
