"""Helpers for messages: suggestions for misspelt names, plurals, values as typed, long texts and control characters."""

import difflib
import json
import logging
import re
from collections.abc import Mapping, Sequence

MAX_SHOWN_CHARACTERS = 200

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed; DEL; C1
    "\u2028\u2029"  # line breaks for some programs
    "\u202a-\u202e\u2066-\u2069"  # change the direction of what follows, up to the end of the line
    "\ud800-\udfff]"  # surrogates, from file names that are not UTF-8; no stream can write them
)


def nearest(word: str, choices: Sequence[str], min_similarity: float = 0.6) -> str | None:
    """Return the most similar choice, or None if none has at least ``min_similarity`` (0 to 1)."""
    return next(iter(difflib.get_close_matches(word, choices, n=1, cutoff=min_similarity)), None)


def did_you_mean(word: str, choices: Sequence[str]) -> str:
    """Return the end of a message about a wrong word: ``; did you mean CHOICE?``, or "" if no choice is similar."""
    choice = nearest(word, choices)
    return f"; did you mean {choice}?" if choice else ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 file``, ``2,000 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_value(value: object) -> str:
    """Return a value as one would type it on a command line."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{format_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(format_value(part) for part in value) + "]"
    return str(value)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as lines of text, in which the cells of a column begin at the same position."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def brief(text: str) -> str:
    """Abbreviate a text of more than MAX_SHOWN_CHARACTERS characters: its middle becomes "…"."""
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return text
    half = MAX_SHOWN_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]} ({len(text):,} characters)"


def shorten_words(message: str) -> str:
    """Abbreviate each word of a message, such as a path, as ``brief`` does."""
    return re.sub(rf"\S{{{MAX_SHOWN_CHARACTERS},}}", lambda word: brief(word.group()), message)


def visible(text: str) -> str:
    r"""Escape the characters of a text that control a terminal, as ``\x1b`` or ``\u202e``. Line feeds and tabs stay.

    Corpora, file names and other people's run folders can hold any character, and some sequences clear the screen,
    overwrite lines or type commands.
    """
    return _CONTROL_CHARACTERS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class VisibleFormatter(logging.Formatter):
    """Formats a log record as ``logging.Formatter`` does, then applies ``visible`` to the result."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))
