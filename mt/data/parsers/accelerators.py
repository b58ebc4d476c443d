"""The marks of keys in menus and buttons: ``&File``, ``Save _As…``, ``E_xit``.

The letter behind the mark is the key that chooses the item. The model gets the text without the mark. In the
translation it stands in front of the same letter, or of another if there is none.
"""

import re
from typing import NamedTuple

from mt.core.language import TOUCHING

MARK = re.compile(
    r"(?<![\w&])[&_](?=[^\W_])"  # in front of a word
    r"|(?<=\b[A-Z])[&_](?=[a-z])|(?<=\b[A-Z][a-z])[&_](?=[a-z])|(?<=\b[A-Z][a-z]{2})[&_](?=[a-z])"  # or inside of one
)
MOST_WORDS = 6
NO_KEY = re.compile(r"<[^<>]*>|&\w+;|%\S+|[{][^{}]*[}]|\$\w+")
"""Parts of a text in which no letter is a key."""
LAST_MARKS = re.compile(r"\s*[.…:：]*\s*$")


class Accelerator(NamedTuple):
    mark: str
    key: str


def take_accelerator(text: str) -> tuple[str, Accelerator | None]:
    """Returns a text without its mark, and the mark; the text itself and None if it has none.

    A text with more than one ``&`` or ``_``, a sentence and a long text have none: there the character means something
    else.
    """
    found = MARK.search(text)
    if not found or len(text.split()) > MOST_WORDS or re.search(r"[^.][.!?]\s*$", text):
        return text, None
    start, mark, key = found.start(), found.group(), text[found.end()]
    begins_with = next((letter for letter in text if letter.isalpha()), "")
    if text.count("&") + text.count("_") > 1 or not (key.isdigit() or begins_with.isupper()) or ";" in text[start:]:
        return text, None
    return text[:start] + text[start + 1 :], Accelerator(mark, key)


def put_accelerator(accelerator: Accelerator, translation: str) -> str:
    """Returns a translation with the mark: in front of a word that begins with the key, or of the key inside a word, or
    of the first letter. In Chinese, Japanese and Korean it is written behind the text with its key: ``打开(_O)``."""
    searched = NO_KEY.sub(lambda match: " " * len(match.group()), translation)
    key = re.escape(accelerator.key)
    letters = [rf"(?<!\w){key}", key, r"(?<!\w)[^\W\d_]"]
    if not re.search(rf"[^\W\d_{TOUCHING}]", searched):
        end = LAST_MARKS.search(translation)
        place = end.start() if end else len(translation)
        return f"{translation[:place]}({accelerator.mark}{accelerator.key.upper()}){translation[place:]}"
    for pattern in letters:
        if found := re.search(pattern, searched, re.IGNORECASE):
            return translation[: found.start()] + accelerator.mark + translation[found.start() :]
    return translation
