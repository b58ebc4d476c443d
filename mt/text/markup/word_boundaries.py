"""Where words and white space begin and end in a text, in languages with and without blanks between words.

Positions are places between characters. A position p of a text is in front of its character p.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from mt.core.language import SCRIPTS, writes_spaces

SPACELESS = "".join(script.letters for script in SCRIPTS if not any(map(writes_spaces, script.languages)))
"""The letters of scripts without blanks between words. Between any two of them, a word may end."""
_OTHER_LETTER = re.compile(rf"[^\W_{SPACELESS}]")
_JOINERS = "\u200c\u200d"


class WordBoundaries:
    """The borders of the white space and of the words of a text.

    ``blank_start[p]`` and ``blank_end[p]`` bound the white space around position p. ``word_start[p]`` and
    ``word_end[p]`` bound the word that position p is inside of. They are p itself where there is none on that side.
    ``inside_word[p]`` says whether position p is inside a word, neither before its first character nor after its last.
    """

    def __init__(self, text: str) -> None:
        self.length = len(text)
        blank = [character.isspace() for character in text]
        self.blank_start = _walk_left([False, *blank])
        self.blank_end = _walk_right([*blank, False])
        self.inside_word = [index > 0 and _is_one_word(text[index - 1 : index + 1]) for index in range(len(text) + 1)]
        self.word_start = _walk_left(self.inside_word)
        self.word_end = _walk_right(self.inside_word)

    def words(self) -> list[tuple[int, int]]:
        """Return the start and end of each word. A punctuation mark is a word, too."""
        borders = [position for position, inside in enumerate(self.inside_word) if not inside]
        return [(start, end) for start, end in pairwise(borders) if self.blank_end[start] == start]


def _walk_left(goes_on: Sequence[bool]) -> list[int]:
    """Return for each position the nearest one at or before it with a false value. The first value must be false."""
    reached: list[int] = []
    for position, on in enumerate(goes_on):
        reached.append(reached[-1] if on else position)
    return reached


def _walk_right(goes_on: Sequence[bool]) -> list[int]:
    """Return for each position the nearest one at or after it with a false value. The last value must be false."""
    last = len(goes_on) - 1
    return [last - position for position in reversed(_walk_left(goes_on[::-1]))]


@lru_cache(maxsize=65536)
def _is_one_word(pair: str) -> bool:
    """Return whether two neighbouring characters belong to one word."""
    if len(pair) < 2 or pair[0].isspace() or pair[1].isspace():
        return False
    if pair[0] in _JOINERS or pair[1] in _JOINERS or _is_mark(pair[1]):
        return True
    return all(_OTHER_LETTER.match(character) or _is_mark(character) for character in pair)


def _is_mark(character: str) -> bool:
    """Return whether a character, such as an accent or a vowel sign, belongs to the one before it."""
    return unicodedata.category(character).startswith("M")
