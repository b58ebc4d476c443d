"""Tells whether a translation has the values or the placeholders of its source."""

from collections.abc import Iterator, Sequence
from itertools import chain

import regex

from mt.core.splices import Splice, apply_splices
from mt.text.kinds import KINDS, SYNTAXES
from mt.text.messages import message_arguments

INVENTED = regex.compile("|".join(KINDS[name] for name in ("placeholder in braces", "tag", "directive", "link")))
"""A translation has no match of this unless its source has it."""
_TRIGGER = regex.compile(r"[{<%&]|://|www\.")
"""Every match of INVENTED contains a match of this."""

PROGRAM_PLACEHOLDER = regex.compile(
    rf"'[{{}}]'|{KINDS['placeholder in braces']}|%\w{{1,60}}%"
    rf"|\$\w{{1,60}}\$|(?!%%?(?![\w(<*@.+\#-])){KINDS['directive']}"
)
"""A placeholder of some program. A lone percent sign is none."""


def has_placeholders_of(source: str, translation: str, syntax: str = "") -> bool:
    """Return whether a program can use a translation: it has the placeholders of its source, in any order.

    Of a message with several texts, each is compared with its translation.

    Args:
        syntax: See ``LayoutLine``.
    """
    try:
        (frame, texts), (other_frame, others) = _parts(source), _parts(translation)
    except ValueError:
        return False
    if len(texts) > 1 or len(others) > 1:
        pairs = zip(texts, others, strict=False)
        return frame == other_frame and all(has_placeholders_of(*pair, syntax) for pair in pairs)
    patterns = (PROGRAM_PLACEHOLDER, SYNTAXES.get(syntax, PROGRAM_PLACEHOLDER))
    return all(sorted(pattern.findall(source)) == sorted(pattern.findall(translation)) for pattern in patterns)


def _parts(text: str) -> tuple[list[list[str]], list[str]]:
    """Divide a message. Return the frame of each argument, which is its code between the texts, and the texts: first
    the one around the arguments."""
    arguments = message_arguments(text)
    around = apply_splices(text, [Splice(own.start, own.end, "{}") for own in arguments])
    borders = [[own.start, *chain.from_iterable(own.parts), own.end] for own in arguments]
    frame = [
        ["".join(text[start:end].split()) for start, end in zip(own[::2], own[1::2], strict=True)] for own in borders
    ]
    return frame, [around, *(text[start:end] for own in arguments for start, end in own.parts)]


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
