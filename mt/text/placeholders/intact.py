"""Tells whether a translation has the values of its source, each once and in one piece."""

from collections.abc import Sequence

import regex

from mt.text.placeholders.kinds import KINDS

INVENTED = regex.compile("|".join(KINDS[name] for name in ("placeholder in braces", "tag", "directive", "link")))
"""A translation has no match of this unless its source has it."""
_TRIGGER = regex.compile(r"[{<%&]|://|www\.")
"""Every match of INVENTED contains a match of this."""


def is_intact(translation: str, values: Sequence[str]) -> bool:
    """Return whether a translation has each value of its source, and no other placeholder, tag or link.

    A value that touches another letter or digit, and so has become part of something longer, does not count.
    """
    for value in sorted(values, key=len, reverse=True):
        start = _start_of(value, translation)
        if start is None:
            return False
        translation = f"{translation[:start]}\ufffc{translation[start + len(value) :]}"
    return not (_TRIGGER.search(translation) and INVENTED.search(translation))


def _start_of(value: str, text: str) -> int | None:
    """Return where a text has a value that touches no other letter or digit; None if nowhere.

    A pattern of the whole value would take cubic time if the value repeats itself.
    """
    before, after = (_like(character) for character in (value[0], value[-1]))
    is_longer = regex.compile(after)
    for match in regex.finditer(f"(?<!{before}){regex.escape(value[0])}", text):
        start = match.start()
        if text.startswith(value, start) and not is_longer.match(text, start + len(value)):
            return start
    return None


def _like(character: str) -> str:
    return r"\d" if character.isdecimal() else "[A-Za-z]" if character.isascii() and character.isalpha() else r"(?!)"
