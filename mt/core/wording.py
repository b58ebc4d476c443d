"""Helpers for messages: suggestions for misspelt names, plurals, values as typed, abbreviation of long texts."""

import difflib
import json
import re
from collections.abc import Mapping, Sequence

MAX_SHOWN_CHARACTERS = 200


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


def brief(text: str) -> str:
    """Abbreviate a text of more than MAX_SHOWN_CHARACTERS characters: its middle becomes "…"."""
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return text
    half = MAX_SHOWN_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]} ({len(text):,} characters)"


def shorten_words(message: str) -> str:
    """Abbreviate each word of a message, such as a path, as ``brief`` does."""
    return re.sub(rf"\S{{{MAX_SHOWN_CHARACTERS},}}", lambda word: brief(word.group()), message)
