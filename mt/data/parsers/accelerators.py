"""Accelerators, the marked letters in the labels of menus and buttons: ``&File``, ``Save _As…``, ``E_xit``.

The letter after the mark is the key that chooses the item. The model gets the text without the mark. In the translation
the mark is put before the same letter if it occurs there, otherwise before the first word.
"""

import re
from typing import NamedTuple

from mt.core.language import TOUCHING

ACCELERATOR_MARK = re.compile(
    r"(?<![\w&])[&_](?=[^\W_])"  # before a word
    r"|(?<=\b[A-Z])[&_](?=[a-z])|(?<=\b[A-Z][a-z])[&_](?=[a-z])|(?<=\b[A-Z][a-z]{2})[&_](?=[a-z])"  # or inside of one
)
MAX_LABEL_WORDS = 6
"""A longer text is no label, so it has no accelerator."""
NO_KEY = re.compile(r"<[^<>]*>|&\w+;|%\S+|[{][^{}]*[}]|\$\w+")
"""Matches tags, entities and placeholders: no letter in them can be the key."""
LABEL_END = re.compile(r"\s*[.…:：]*\s*$")


class Accelerator(NamedTuple):
    """The key of a menu item or button, and its mark."""

    mark: str
    """``&`` or ``_``."""
    key: str
    """The letter or digit after the mark, in the case of the text."""


def take_accelerator(text: str) -> tuple[str, Accelerator | None]:
    """Remove the accelerator's mark from a text.

    In a sentence, in a text of more than MAX_LABEL_WORDS words, and beside a second ``&`` or ``_``, the character is no
    mark.

    Returns:
        The text without the mark, and the accelerator. For a text without an accelerator: the same text, and None.
    """
    match = ACCELERATOR_MARK.search(text)
    if not match or len(text.split()) > MAX_LABEL_WORDS or re.search(r"[^.][.!?]\s*$", text):
        return text, None
    start, mark, key = match.start(), match.group(), text[match.end()]
    first_letter = next(filter(str.isalpha, text), "")
    if text.count("&") + text.count("_") > 1 or not (key.isdigit() or first_letter.isupper()) or ";" in text[start:]:
        return text, None
    return text[:start] + text[start + 1 :], Accelerator(mark, key)


def put_accelerator(accelerator: Accelerator, translation: str) -> str:
    """Return a translation with the mark of an accelerator inserted.

    The mark is put before the first word that begins with the key; if there is none, before the key inside a word; if
    the key does not occur, before the first word. A translation without letters of an alphabet (Chinese, Japanese,
    Korean) gets the mark and the key in brackets at its end: ``打开(_O)``.
    """
    searched = NO_KEY.sub(lambda match: " " * len(match.group()), translation)
    key = re.escape(accelerator.key)
    if not re.search(rf"[^\W\d_{TOUCHING}]", searched):
        mark = f"({accelerator.mark}{accelerator.key.upper()})"
        return LABEL_END.sub(lambda match: mark + match.group(), translation, count=1)
    for pattern in (rf"(?<!\w){key}", key, r"(?<!\w)[^\W\d_]"):
        if match := re.search(pattern, searched, re.IGNORECASE):
            return translation[: match.start()] + accelerator.mark + translation[match.start() :]
    return translation
