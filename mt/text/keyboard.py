"""Keyboard layouts, and a model of the typing errors that people make on them."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import compress

import numpy as np

from mt.core.coded_text import Splice, apply_splices
from mt.core.language import base_language
from mt.text.numbers import LETTER_RUN

TYPO_SHARE = 1 / 8
"""The probability that ``add_typos`` changes a word."""
QWERTY = "qwertyuiop|asdfghjkl|zxcvbnm"
_LAYOUTS = {
    "fr": "azertyuiop|qsdfghjklm|wxcvbn",
    "de": "qwertzuiopü|asdfghjklöä|yxcvbnm",
    "cs sk hu sl hr bs": "qwertzuiop|asdfghjkl|yxcvbnm",
    "es": "qwertyuiop|asdfghjklñ|zxcvbnm",
    "ru": "йцукенгшщзхъ|фывапролджэ|ячсмитьбю",
    "uk": "йцукенгшщзхї|фівапролджє|ячсмитьбю",
    "be": "йцукенгшўзх|фывапролджэ|ячсмітьбю",
    "sr": "љњертзуиопшђ|асдфгхјклчћ|ѕџцвбнм",
    "mk": "љњертѕуиопшѓ|асдфгхјклчќ|зџцвбнм",
    "el": " ςερτυθιοπ|ασδφγηξκλ|ζχψωβνμ",
    "he": "  קראטוןםפ|שדגכעיחלךף|זסבהנמצתץ",
    "ar acm aeb ajp apc ars ary arz": "ضصثقفغعهخحجد|شسيبلاتنمكط|ئءؤر ىةوزظ",
}
"""The letters on the keyboards of some languages in rows from top to bottom, with a space for a key without a
letter."""
LAYOUTS = {language: layout for languages, layout in _LAYOUTS.items() for language in languages.split()}


def adjacent_letters(letter: str, language: str) -> str:
    """Return the letters on the keys adjacent to a letter's key, in the case of the letter.

    Each row is half a key further to the right than the row above it. So a key is adjacent to the keys on its left and
    right, to two keys of the row above and to two of the row below. The layout is QWERTY for languages that are not in
    LAYOUTS, and for letters that the language's own keyboard lacks, such as those of an English name in a Russian text.
    A letter that QWERTY lacks, too, such as é or 好, has no adjacent letters.
    """
    lower = letter.lower()
    layout = LAYOUTS.get(base_language(language), QWERTY)
    adjacent = _adjacency(layout).get(lower) or _adjacency(QWERTY).get(lower, "")
    return adjacent.upper() if letter.isupper() else adjacent


def add_typo(word: str, random: np.random.Generator, language: str) -> str:
    """Return a word with one random typing error at a random letter.

    The letter is deleted, doubled, swapped with the next character (at the end of the word, with the previous
    one), or replaced by an adjacent letter of the keyboard.

    Args:
        word: At least two characters, at least one of them a letter.
        random: The source of the random decisions.
        language: The language whose keyboard layout is used.
    """
    kind = random.integers(4)
    letters = [index for index, character in enumerate(word) if character.isalpha()]
    index = letters[int(random.integers(len(letters)))]
    letter = word[index]
    if kind == 0:
        return word[:index] + word[index + 1 :]
    doubled = word[:index] + letter + word[index:]
    if kind == 1:
        return doubled
    others = adjacent_letters(letter, language)
    if kind == 2 and others:
        return word[:index] + others[int(random.integers(len(others)))] + word[index + 1 :]
    index = min(index, len(word) - 2)
    if word[index] == word[index + 1]:
        return doubled
    return word[:index] + word[index + 1] + word[index] + word[index + 2 :]


def add_typos(text: str, random: np.random.Generator, language: str) -> str:
    """Return a text with a typing error in about every eighth word, and in at least one.

    Args:
        text: The text. It is returned unchanged if it has no word of two letters.
        random: The source of the random decisions.
        language: The language whose keyboard layout is used.
    """
    words = [word for word in LETTER_RUN.finditer(text) if len(word[0]) > 1]
    if not words:
        return text
    has_typo = random.random(len(words)) < TYPO_SHARE
    has_typo[random.integers(len(words))] = True
    return apply_splices(
        text,
        (Splice(word.start(), word.end(), add_typo(word[0], random, language)) for word in compress(words, has_typo)),
    )


def correction_candidates(word: str, language: str, letters: Iterable[str]) -> Iterator[str]:
    """Yield each word that one typing error of ``add_typo`` turns into the typed word. A word may be yielded
    repeatedly.

    Args:
        word: The typed word in lowercase.
        language: The language whose keyboard layout is used.
        letters: The letters that may have been deleted.
    """
    for index, letter in enumerate(word):
        head, tail = word[:index], word[index + 1 :]
        if tail.startswith(letter):
            yield head + tail
        elif tail:
            yield head + tail[0] + letter + tail[1:]
        for other in adjacent_letters(letter, language):
            yield head + other + tail
    for index in range(len(word) + 1):
        for letter in letters:
            yield word[:index] + letter + word[index:]


@cache
def _adjacency(layout: str) -> dict[str, str]:
    """Map each letter of a keyboard layout to its adjacent letters."""
    rows = ["", *layout.split("|"), ""]
    adjacency = {
        letter: "".join(
            [
                row[max(0, column - 1) : column],
                row[column + 1 : column + 2],
                above[column : column + 2],
                below[max(0, column - 1) : column + 1],
            ]
        ).replace(" ", "")
        for above, row, below in zip(rows, rows[1:], rows[2:], strict=False)
        for column, letter in enumerate(row)
    }
    adjacency.pop(" ", None)
    return adjacency
