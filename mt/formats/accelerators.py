"""Accelerators, the marked letters in the labels of menus and buttons: ``&File``, ``Save _As…``, ``E_xit``.

The letter after the prefix, ``&`` or ``_``, is the key that chooses the item. The model gets the text without the
prefix. In the translation, the prefix is put before the same letter if it occurs there, otherwise before the first
word.
"""

import re
from typing import NamedTuple

from mt.core.language import TOUCHING

ACCELERATOR_PREFIX = re.compile(
    r"(?<![\w&])[&_](?=[^\W_])"  # before a word
    r"|(?<=\b[A-Z])[&_](?=[a-z])|(?<=\b[A-Z][a-z])[&_](?=[a-z])|(?<=\b[A-Z][a-z]{2})[&_](?=[a-z])"  # or inside of one
)
MAX_LABEL_WORDS = 6
"""A longer text is no label, so it has no accelerator."""
NO_KEY = re.compile(r"<[^<>]*>|&\w+;|%\S+|[{][^{}]*[}]|\$\w+")
"""Matches tags, entities and placeholders: no letter in them can be the key."""
LABEL_END = re.compile(r"\s*[.…:：]*\s*$")


class Accelerator(NamedTuple):
    """The key of a menu item or button, and the prefix that shows it."""

    prefix: str
    """``&`` or ``_``."""
    key: str
    """The letter or digit after the prefix, in the case of the text."""


def take_accelerator(text: str) -> tuple[str, Accelerator | None]:
    """Remove the accelerator's prefix from a text.

    The character is a prefix only in a label: a text without final punctuation, of at most MAX_LABEL_WORDS words, whose
    first letter is a capital or whose key is a digit. A second ``&`` or ``_``, or a later ``;``, rules a prefix out.

    Returns:
        The text without the prefix, and the accelerator. For a text without an accelerator: the same text, and None.
    """
    match = ACCELERATOR_PREFIX.search(text)
    if not match or len(text.split()) > MAX_LABEL_WORDS or re.search(r"[^.][.!?]\s*$", text):
        return text, None
    start, prefix, key = match.start(), match.group(), text[match.end()]
    first_letter = next(filter(str.isalpha, text), "")
    if text.count("&") + text.count("_") > 1 or not (key.isdigit() or first_letter.isupper()) or ";" in text[start:]:
        return text, None
    return text[:start] + text[start + 1 :], Accelerator(prefix, key)


def put_accelerator(accelerator: Accelerator, translation: str) -> str:
    """Return a translation with the prefix of an accelerator inserted.

    The prefix is put before the first word that begins with the key, in capitals or not; if there is none, before the
    key inside a word; if the key does not occur, before the first word. Tags, entities and placeholders are skipped. A
    translation without letters of an alphabet (Chinese, Japanese, Korean) gets the prefix and the key in brackets at
    its end: ``打开(_O)``.
    """
    searched = NO_KEY.sub(lambda match: " " * len(match.group()), translation)
    key = re.escape(accelerator.key)
    if not re.search(rf"[^\W\d_{TOUCHING}]", searched):
        key = f"({accelerator.prefix}{accelerator.key.upper()})"
        return LABEL_END.sub(lambda match: key + match.group(), translation, count=1)
    for pattern in (rf"(?<!\w){key}", key, r"(?<!\w)[^\W\d_]"):
        if match := re.search(pattern, searched, re.IGNORECASE):
            return translation[: match.start()] + accelerator.prefix + translation[match.start() :]
    return translation
