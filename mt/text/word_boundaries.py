"""Finds where words and whitespace begin and end in a text of any language.

A position is between two characters: position p is in front of character p.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from mt.core.language import SCRIPTS, writes_spaces

SPACELESS = "".join(script.letters for script in SCRIPTS if not any(map(writes_spaces, script.languages)))
"""The letters of scripts without blanks between words. Between any two of them, a word may end."""
_OTHER_LETTER = re.compile(rf"[^\W_{SPACELESS}]")
_JOINERS = "\u200c\u200d"
_LETTER = rf"[^\W\d_{SPACELESS}]"
_APOSTROPHE_OR_HYPHEN = re.compile(
    rf"(?<!{_LETTER})(?:{_LETTER}{{1,2}}|{_LETTER}{{1,8}}qu)(?P<elision>['’])(?={_LETTER})"
    rf"|(?<={_LETTER})['’‐‑-](?={_LETTER})"
)
"""A sign inside a word, or an apostrophe that ends one, as in l'été and jusqu'ici."""


class WordBoundaries:
    """Where the words and the whitespace around each position of one text begin and end.

    For a position p from 0 to the length of the text:

    - ``blank_start[p]`` and ``blank_end[p]`` are the ends of the whitespace around p, or p if there is none.
    - ``inside_word[p]`` is whether p is between two characters of one word.
    - ``word_start[p]`` and ``word_end[p]`` are the ends of the word that p is inside, or p if it is inside none.
    """

    def __init__(self, text: str) -> None:
        self.text, self.length = text, len(text)
        blank = [character.isspace() for character in text]
        self.blank_start = _walk_left([False, *blank])
        self.blank_end = _walk_right([*blank, False])
        self.inside_word = [index > 0 and _is_one_word(text[index - 1 : index + 1]) for index in range(len(text) + 1)]
        for sign in _APOSTROPHE_OR_HYPHEN.finditer(text):
            self.inside_word[sign.end() - 1] = True
            self.inside_word[sign.end()] = sign["elision"] is None
        self.word_start = _walk_left(self.inside_word)
        self.word_end = _walk_right(self.inside_word)


def _walk_left(goes_on: Sequence[bool]) -> list[int]:
    """For each index, return the nearest index at or before it whose value is false. The first value must be false."""
    reached: list[int] = []
    for position, on in enumerate(goes_on):
        reached.append(reached[-1] if on else position)
    return reached


def _walk_right(goes_on: Sequence[bool]) -> list[int]:
    """For each index, return the nearest index at or after it whose value is false. The last value must be false."""
    last = len(goes_on) - 1
    return [last - position for position in reversed(_walk_left(goes_on[::-1]))]


@lru_cache(maxsize=65536)
def _is_one_word(pair: str) -> bool:
    """Return whether two neighboring characters belong to one word."""
    if len(pair) < 2 or pair[0].isspace() or pair[1].isspace():
        return False
    if pair[0] in _JOINERS or pair[1] in _JOINERS or _is_mark(pair[1]):
        return True
    return all(_OTHER_LETTER.match(character) or _is_mark(character) for character in pair)


def _is_mark(character: str) -> bool:
    """Return whether a character is a combining mark, such as an accent or a vowel sign."""
    return unicodedata.category(character).startswith("M")
