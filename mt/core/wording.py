"""Helpers for messages: the nearest right name, a value as one would type it, a long text cut short."""

import difflib
import re
from collections.abc import Mapping, Sequence

LONGEST_SHOWN = 200
"""The most characters of a value that a message shows."""


def nearest(word: str, choices: Sequence[str], likeness: float = 0.6) -> str | None:
    """Returns the choice that was probably meant, or None if no choice is at least as alike as ``likeness`` (0 to
    1)."""
    return next(iter(difflib.get_close_matches(word, choices, n=1, cutoff=likeness)), None)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 file``, ``2,000 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_value(value: object) -> str:
    """Returns a value as one would type it on a command line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{format_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(format_value(part) for part in value) + "]"
    return str(value)


def brief(text: str) -> str:
    """Returns a text for a message. If it is long, its middle is left out."""
    if len(text) <= LONGEST_SHOWN:
        return text
    half = LONGEST_SHOWN // 2
    return f"{text[:half]} … {text[-half:]} ({len(text):,} characters)"


def shorten_words(message: str) -> str:
    """Returns a message in which the middle of each long word, such as a path, is left out."""
    return re.sub(rf"\S{{{LONGEST_SHOWN},}}", lambda word: brief(word.group()), message)
