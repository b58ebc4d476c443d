"""Tells whether a translation has the values of its source, each once and in one piece."""

from collections.abc import Sequence

import regex

from mt.text.placeholders.kinds import KINDS

INVENTED = regex.compile("|".join(KINDS[name] for name in ("placeholder in braces", "tag", "directive", "link")))
"""A translation has no match of this unless its source has it."""


def is_intact(translation: str, values: Sequence[str]) -> bool:
    """Return whether a translation has each value of its source, and no other placeholder, tag or link.

    A value that touches another letter or digit, and so has become part of something longer, does not count.
    """
    for value in sorted(values, key=len, reverse=True):
        before, after = (_like(character) for character in (value[0], value[-1]))
        match = regex.search(f"(?<!{before}){regex.escape(value)}(?!{after})", translation)
        if not match:
            return False
        translation = f"{translation[: match.start()]}\ufffc{translation[match.end() :]}"
    return not INVENTED.search(translation)


def _like(character: str) -> str:
    return r"\d" if character.isdecimal() else "[A-Za-z]" if character.isascii() and character.isalpha() else r"(?!)"
