"""Messages with several texts, one for each number or case: plural and select of ICU.

The texts are translated one by one, and everything else comes back unchanged. Other such messages are recognised, and
not translated: the choice of Java, and the alternatives of vue-i18n (``car | cars``), Laravel and Symfony.
"""

from collections.abc import Iterator
from typing import NamedTuple

import regex
from pyicumessageformat import Parser

from mt.core.splices import Span

MESSAGE = regex.compile(r"\{\s*[\w.]{1,60}\s*,\s*(?:plural|selectordinal|select|(?P<choice>choice))\s*,")
"""The start of an argument with several texts."""
MAX_BRACE_DEPTH = 20


class Argument(NamedTuple):
    """An argument of a message, such as ``{n, plural, one {# dog} other {# dogs}}``."""

    start: int
    end: int
    parts: list[Span]
    """The spans of its texts in the message, without white space at their ends."""


def has_alternatives(text: str) -> bool:
    """Return whether a text has a vertical bar outside of braces, which separates the alternatives of a message."""
    return not MESSAGE.search(text) and "|" in regex.sub(r"\{[^{}]*+\}", "", text)


def message_arguments(text: str) -> list[Argument]:
    """Return the arguments of a message that have several texts, in order; none if a line is no such message.

    An argument inside another one is part of its text.

    Raises:
        ValueError: The line has such an argument, but it is a choice or cannot be parsed, or braces are nested too
            deeply.
    """
    if not MESSAGE.search(text):
        return []
    if any(match["choice"] for match in MESSAGE.finditer(text)):
        raise ValueError("Java's choice is not translated")
    return list(_icu_arguments(text))


def _icu_arguments(text: str) -> Iterator[Argument]:
    tokens: list[dict[str, str]] = []
    try:
        Parser({"require_other": False}).parse(text, tokens)  # Angular writes messages without it
    except SyntaxError as error:
        raise ValueError(str(error)) from None
    position, openings, parts = 0, list[int](), list[Span]()
    for token in tokens:
        if token["type"] == "syntax" and token["text"] == "{":
            openings.append(position)
            if len(openings) > MAX_BRACE_DEPTH:
                raise ValueError(f"braces are nested more than {MAX_BRACE_DEPTH} deep")
        elif token["type"] == "syntax" and token["text"] == "}":
            start = openings.pop()
            if len(openings) == 1:  # a text of the outermost argument
                parts.append((start + 1, position))
            elif not openings and parts:
                yield Argument(start, position + 1, list(_stripped(text, parts)))
                parts = []
        position += len(token["text"])
    if position != len(text):
        raise ValueError("the tokens are not the message")


def _stripped(text: str, spans: list[Span]) -> Iterator[Span]:
    for start, end in spans:
        part = text[start:end]
        if part.strip():
            yield end - len(part.lstrip()), start + len(part.rstrip())
