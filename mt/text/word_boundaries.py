"""Finds where words and whitespace begin and end in a text of any language.

A position is between two characters: position p is in front of character p.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from mt.core.language import SCRIPTS, writes_spaces

SPACELESS = "".join(script.letters for script in SCRIPTS if not any(map(writes_spaces, script.languages)))
"""The letters of scripts without spaces between words. A word may end between any two of them."""
_OTHER_LETTER = re.compile(rf"[^\W_{SPACELESS}]")
_JOINERS = "\u200c\u200d"
_LETTER = rf"[^\W\d_{SPACELESS}]"
_APOSTROPHE_OR_HYPHEN = re.compile(
    rf"(?<!{_LETTER})(?:{_LETTER}{{1,2}}|{_LETTER}{{1,8}}qu)(?P<elision>['’])(?={_LETTER})"
    rf"|(?<={_LETTER})['’‐‑-](?={_LETTER})"
)
"""An apostrophe or hyphen inside a word, or an apostrophe that ends one (``elision``), as in l'été and jusqu'ici."""


class WordBoundaries:
    """The start and end of the word and of the whitespace around each position of one text.

    For a position p from 0 to the length of the text:

    - ``space_start[p]`` and ``space_end[p]`` are the start and end of the whitespace around p, or p if there is none.
    - ``inside_word[p]`` says whether p is between two characters of the same word.
    - ``word_start[p]`` and ``word_end[p]`` are the start and end of the word around p, or p if it is not inside a word.
    """

    def __init__(self, text: str) -> None:
        self.text, self.length = text, len(text)
        is_space = [character.isspace() for character in text]
        self.space_start = _nearest_false_before([False, *is_space])
        self.space_end = _nearest_false_after([*is_space, False])
        self.inside_word = [index > 0 and _is_one_word(text[index - 1 : index + 1]) for index in range(len(text) + 1)]
        for match in _APOSTROPHE_OR_HYPHEN.finditer(text):
            self.inside_word[match.end() - 1] = True
            self.inside_word[match.end()] = match["elision"] is None
        self.word_start = _nearest_false_before(self.inside_word)
        self.word_end = _nearest_false_after(self.inside_word)


def _nearest_false_before(values: Sequence[bool]) -> list[int]:
    """Return the nearest index of a false value at or before each index. The first value must be false."""
    indices: list[int] = []
    for position, value in enumerate(values):
        indices.append(indices[-1] if value else position)
    return indices


def _nearest_false_after(values: Sequence[bool]) -> list[int]:
    """Return the nearest index of a false value at or after each index. The last value must be false."""
    last = len(values) - 1
    return [last - position for position in reversed(_nearest_false_before(values[::-1]))]


@lru_cache(maxsize=65536)
def _is_one_word(pair: str) -> bool:
    """Return whether two adjacent characters belong to the same word."""
    if len(pair) < 2 or pair[0].isspace() or pair[1].isspace():
        return False
    if pair[0] in _JOINERS or pair[1] in _JOINERS or _is_mark(pair[1]):
        return True
    return all(_OTHER_LETTER.match(character) or _is_mark(character) for character in pair)


def _is_mark(character: str) -> bool:
    """Return whether a character is a combining mark, such as an accent or a vowel sign."""
    return unicodedata.category(character).startswith("M")
