"""Keyboards, and the typing errors that are made on them."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from mt.core.language import base_language

QWERTY = "qwertyuiop", "asdfghjkl", "zxcvbnm"
LAYOUTS = {
    "fr": ("azertyuiop", "qsdfghjklm", "wxcvbn"),
    "de": ("qwertzuiopü", "asdfghjklöä", "yxcvbnm"),
    **dict.fromkeys(("cs", "sk", "hu", "sl", "hr", "bs"), ("qwertzuiop", "asdfghjkl", "yxcvbnm")),
    "es": ("qwertyuiop", "asdfghjklñ", "zxcvbnm"),
    "ru": ("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю"),
    "uk": ("йцукенгшщзхї", "фівапролджє", "ячсмитьбю"),
    "be": ("йцукенгшўзх", "фывапролджэ", "ячсмітьбю"),
    "sr": ("љњертзуиопшђ", "асдфгхјклчћ", "ѕџцвбнм"),
    "mk": ("љњертѕуиопшѓ", "асдфгхјклчќ", "зџцвбнм"),
    "el": (" ςερτυθιοπ", "ασδφγηξκλ", "ζχψωβνμ"),
    "he": ("  קראטוןםפ", "שדגכעיחלךף", "זסבהנמצתץ"),
    **dict.fromkeys(
        ("ar", "acm", "aeb", "ajp", "apc", "ars", "ary", "arz"), ("ضصثقفغعهخحجد", "شسيبلاتنمكط", "ئءؤر ىةوزظ")
    ),
}
"""The rows of letters on the keyboards of some languages, from top to bottom, with a blank for a key that has none."""


def neighbours(letter: str, language: str) -> str:
    """Returns the letters on the keys that touch a letter's key, in its case.

    Each row lies half a key further to the right than the row above it. So a key touches the keys to its left and
    right, two of the row above and two of the row below. Other languages than those of LAYOUTS are typed on QWERTY, and
    so are letters that are on no key of the language's own keyboard, such as those of an English name in a Russian
    text. A letter that is not there either, such as é or 好, has no neighbours.
    """
    small = letter.lower()
    found = _touching(LAYOUTS.get(base_language(language), QWERTY)).get(small) or _touching(QWERTY).get(small, "")
    return found.upper() if letter.isupper() else found


def with_a_typo(word: str, random: np.random.Generator, language: str) -> str:
    """Returns a word with a letter dropped, doubled, swapped with the next character (the last one with that before
    it), or replaced by one beside it.

    Args:
        word: Two characters or more, one of them a letter at least.
        random: Decides which letter, and what becomes of it.
        language: Decides which keyboard is typed on.
    """
    kind = random.integers(4)
    letters = [place for place, character in enumerate(word) if character.isalpha()]
    place = letters[int(random.integers(len(letters)))]
    letter = word[place]
    if kind == 0:
        return word[:place] + word[place + 1 :]
    doubled = word[:place] + letter + word[place:]
    if kind == 1:
        return doubled
    beside = neighbours(letter, language)
    if kind == 2 and beside:
        return word[:place] + beside[int(random.integers(len(beside)))] + word[place + 1 :]
    place = min(place, len(word) - 2)
    if word[place] == word[place + 1]:
        return doubled
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def without_a_typo(word: str, language: str, letters: Iterable[str]) -> Iterator[str]:
    """Yields all words of which a single error of ``with_a_typo`` can have made a word, some of them several times.

    Args:
        word: What was typed, in small letters.
        language: Decides which keyboard it was typed on.
        letters: The letters that can have been dropped.
    """
    for place, letter in enumerate(word):
        before, behind = word[:place], word[place + 1 :]
        if behind.startswith(letter):
            yield before + behind
        elif behind:
            yield before + behind[0] + letter + behind[1:]
        for beside in neighbours(letter, language):
            yield before + beside + behind
    for place in range(len(word) + 1):
        for letter in letters:
            yield word[:place] + letter + word[place:]


@cache
def _touching(rows: Sequence[str]) -> dict[str, str]:
    """Returns, for each letter of a keyboard, those on the keys that touch its own."""
    found: dict[str, str] = {}
    for number, row in enumerate(rows):
        for place, letter in enumerate(row):
            beside = [row[max(0, place - 1) : place], row[place + 1 : place + 2]]
            if number:
                beside.append(rows[number - 1][place : place + 2])
            if number + 1 < len(rows):
                beside.append(rows[number + 1][max(0, place - 1) : place + 1])
            found[letter] = "".join(beside).replace(" ", "")
    found.pop(" ", None)
    return found
