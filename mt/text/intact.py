"""Tells whether a translation has the values of its source."""

from collections.abc import Iterator, Sequence

import regex

from mt.formats.kinds import KINDS

INVENTED = regex.compile("|".join(KINDS[name] for name in ("placeholder in braces", "tag", "directive", "link")))
"""A translation has no match of this unless its source has it."""
_TRIGGER = regex.compile(r"[{<%&]|://|www\.")
"""Every match of INVENTED contains a match of this."""


def is_intact(translation: str, values: Sequence[str]) -> bool:
    """Return whether a translation has each value of its source, and no other placeholder, tag or link.

    A value that touches another letter or digit, and so has become part of something longer, does not count.
    """
    for value in sorted(values, key=len, reverse=True):
        start = next(find_value(value, translation), None)
        if start is None:
            return False
        translation = f"{translation[:start]}\ufffc{translation[start + len(value) :]}"
    return not (_TRIGGER.search(translation) and INVENTED.search(translation))


def find_value(value: str, text: str) -> Iterator[int]:
    """Yield each position at which a text has a value that touches no other letter or digit.

    A pattern of the whole value would take cubic time if the value repeats itself.
    """
    before, after = (_like(character) for character in (value[0], value[-1]))
    is_longer = regex.compile(after)
    for match in regex.finditer(f"(?<!{before}){regex.escape(value[0])}", text):
        start = match.start()
        if text.startswith(value, start) and not is_longer.match(text, start + len(value)):
            yield start


def _like(character: str) -> str:
    return r"\d" if character.isdecimal() else "[A-Za-z]" if character.isascii() and character.isalpha() else r"(?!)"
