"""Accelerators, the marks of keys in menus and buttons: ``&File``, ``Save _As…``, ``E_xit``.

The letter after the mark is the key that chooses the item. The model gets the text without the mark. In the translation
the mark is put before the same letter, or another one if that does not occur.
"""

import re
from typing import NamedTuple

from mt.core.language import TOUCHING

MARK = re.compile(
    r"(?<![\w&])[&_](?=[^\W_])"  # before a word
    r"|(?<=\b[A-Z])[&_](?=[a-z])|(?<=\b[A-Z][a-z])[&_](?=[a-z])|(?<=\b[A-Z][a-z]{2})[&_](?=[a-z])"  # or inside of one
)
MAX_WORDS = 6
NO_KEY = re.compile(r"<[^<>]*>|&\w+;|%\S+|[{][^{}]*[}]|\$\w+")
"""Parts of a text that hold no key."""
FINAL_PUNCTUATION = re.compile(r"\s*[.…:：]*\s*$")


class Accelerator(NamedTuple):
    mark: str
    key: str


def take_accelerator(text: str) -> tuple[str, Accelerator | None]:
    """Remove the mark from a text.

    A text with more than one ``&`` or ``_``, a sentence and a long text have no accelerator: the character means
    something else there.

    Returns:
        The text without the mark, and the accelerator; the text itself and None if it has none.
    """
    match = MARK.search(text)
    if not match or len(text.split()) > MAX_WORDS or re.search(r"[^.][.!?]\s*$", text):
        return text, None
    start, mark, key = match.start(), match.group(), text[match.end()]
    first_letter = next(filter(str.isalpha, text), "")
    if text.count("&") + text.count("_") > 1 or not (key.isdigit() or first_letter.isupper()) or ";" in text[start:]:
        return text, None
    return text[:start] + text[start + 1 :], Accelerator(mark, key)


def put_accelerator(accelerator: Accelerator, translation: str) -> str:
    """Insert the mark before a word that begins with the key, or the key inside a word, or the first letter.

    Chinese, Japanese and Korean write it behind the text, with its key: ``打开(_O)``.
    """
    searched = NO_KEY.sub(lambda match: " " * len(match.group()), translation)
    key = re.escape(accelerator.key)
    if not re.search(rf"[^\W\d_{TOUCHING}]", searched):
        mark = f"({accelerator.mark}{accelerator.key.upper()})"
        return FINAL_PUNCTUATION.sub(lambda match: mark + match.group(), translation, count=1)
    for pattern in (rf"(?<!\w){key}", key, r"(?<!\w)[^\W\d_]"):
        if match := re.search(pattern, searched, re.IGNORECASE):
            return translation[: match.start()] + accelerator.mark + translation[match.start() :]
    return translation
