"""Structured messages: ICU's plural and select, Java's choice, and the alternatives of vue-i18n, ``car | cars``, and of
Symfony, ``{0} no car|]1,Inf[ cars``.

Such a message has several texts, one for each number or case. They are translated one by one, and everything else comes
back unchanged.
"""

from collections.abc import Iterator
from typing import NamedTuple

import regex
from pyicumessageformat import Parser

from mt.text.placeholders.values import Span

MESSAGE = regex.compile(r"\{\s*[\w.]{1,60}\s*,\s*(?:plural|selectordinal|select|choice)\s*,")
"""The start of an argument with several texts."""
CHOICE = regex.compile(r"\{\s*\w{1,60}\s*,\s*choice\s*,")
LIMIT = regex.compile(r"\s*-?(?:[\d.]++|∞)\s*[#<≤]")
"""The smallest number for which a text of a choice is taken."""
MAX_BRACE_DEPTH = 20
ALTERNATIVE = regex.compile(r"(?:(?<=\s\|)|^)[^|]*(?:(?=\|\s)|$)")
_NUMBER = r"\s*(?:\*|[+-]?Inf|-?[\d.]+)\s*"
SYMFONY_ALTERNATIVE = regex.compile(
    rf"\s*(?:\{{[\d.,\s-]+\}}|[\[\]]{_NUMBER},{_NUMBER}[\[\]]|(?:zero|one|two|few|many|some|other|more):(?=\s))?"
    r"(?P<text>(?:\{[^{}]*\}|\([^()]*\)|\|\||[^|])++)"
)
"""An alternative, with the numbers for which it is taken."""


class Argument(NamedTuple):
    """An argument of a message, such as ``{n, plural, one {# dog} other {# dogs}}``."""

    start: int
    end: int
    parts: list[Span]
    """The spans of its texts in the message, without white space at their ends."""
    syntax: str = ""
    """The key in SYNTAXES of what is no text in the parts."""


def message_arguments(text: str, syntax: str = "") -> list[Argument]:
    """Return the arguments of a message that have several texts, in order; none if a line is no such message.

    An argument inside another one is part of its text.

    Args:
        text: The line.
        syntax: ``vue-i18n`` or ``symfony`` if a vertical bar separates alternatives. In the first, a bar without blanks
            does as in Symfony, because Laravel's files look the same.

    Raises:
        ValueError: The line has such an argument, but cannot be parsed, or braces are nested too deeply.
    """
    if MESSAGE.search(text):
        _check_depth(text)
    if CHOICE.search(text):
        arguments = list(_choices(text))
    elif MESSAGE.search(text):
        arguments = list(_icu_arguments(text))
    elif syntax == "vue-i18n" and regex.search(r"\S\s\|\s\S", text):
        arguments = [Argument(0, len(text), [match.span() for match in ALTERNATIVE.finditer(text)])]
    elif syntax in ("symfony", "vue-i18n") and "|" in text:
        parts = [match.span("text") for match in SYMFONY_ALTERNATIVE.finditer(text)]
        are_texts = len(parts) > 1 and all(any(map(str.isalpha, text[start:end])) for start, end in parts)
        arguments = [Argument(0, len(text), parts)] if are_texts else []
    else:
        return []
    return [argument._replace(parts=list(_stripped(text, argument.parts))) for argument in arguments]


def _check_depth(text: str) -> None:
    depth = 0
    for brace in regex.finditer(r"[{}]", text):
        depth = max(0, depth + (1 if brace[0] == "{" else -1))
        if depth > MAX_BRACE_DEPTH:
            raise ValueError(f"braces are nested more than {MAX_BRACE_DEPTH} deep")


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
        elif token["type"] == "syntax" and token["text"] == "}":
            start = openings.pop()
            if len(openings) == 1:  # a text of the outermost argument
                parts.append((start + 1, position))
            elif not openings and parts:
                yield Argument(start, position + 1, parts, "icu")
                parts = []
        position += len(token["text"])
    if position != len(text):
        raise ValueError("the tokens are not the message")


def _choices(text: str) -> Iterator[Argument]:
    end = 0
    for argument in CHOICE.finditer(text):
        if argument.start() < end:  # inside the argument before it
            continue
        depth, start, parts = 0, argument.end(), list[Span]()
        for sign in regex.finditer(r"[{}|]", text, pos=start):
            depth += (sign[0] == "{") - (sign[0] == "}")
            if depth < 0 or (depth == 0 and sign[0] == "|"):
                limit = LIMIT.match(text, start)
                if not limit:
                    raise ValueError(f"no limit in front of {text[start : sign.start()]}")
                parts.append((limit.end(), sign.start()))
                start = sign.end()
            if depth < 0:
                end = start
                yield Argument(argument.start(), end, parts)
                break
        else:
            raise ValueError("a closing brace is missing")


def _stripped(text: str, spans: list[Span]) -> Iterator[Span]:
    for start, end in spans:
        part = text[start:end]
        if part.strip():
            yield end - len(part.lstrip()), start + len(part.rstrip())
