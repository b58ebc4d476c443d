"""Numbers that are written as words, such as ten: where they stand, numbers in digits could stand, too."""

import re
from functools import cache

import num2words
import regex

from mt.core.language import base_language

CODES = {"nb": "no", "kk": "kz"}
"""Languages that num2words knows by another code."""
NUMBERS = (*range(2, 21), *range(30, 100, 10), 100, 1000)
WORD = regex.compile(r"(?<![\w'’-])\p{L}[\p{L}\p{M}]*+(?![\w'’-])")
"""A word in letters alone, no part of a longer one."""


@cache
def number_words(language: str) -> dict[str, int]:
    """Returns the numbers of NUMBERS that a language writes as one word, in small letters; none if num2words does not
    know the language."""
    code = base_language(language)
    code = CODES.get(code, code)
    if code not in num2words.CONVERTER_CLASSES:
        return {}
    words = {num2words.num2words(number, lang=code).lower(): number for number in NUMBERS}
    return {word: number for word, number in words.items() if WORD.fullmatch(word)}


def pattern(language: str) -> str | None:
    """Returns a regular expression (RE2's) that finds texts with a number word; None if none of a language is known."""
    if not (words := number_words(language)):
        return None
    return rf"(?i)(^|[^\pL])({'|'.join(map(re.escape, words))})([^\pL]|$)"


def shared_numbers(source: str, target: str, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Returns the number words that both sides of a pair have once, each with its translation, in the order of the
    source. They are as they are written in the texts."""
    words, others = (_places(text, language) for text, language in zip((source, target), languages, strict=True))
    return [
        (source[word[0]], target[other[0]])
        for number, word in words.items()
        if len(word) == len(other := others.get(number, [])) == 1
        and source.count(source[word[0]]) == target.count(target[other[0]]) == 1
    ]


def _places(text: str, language: str) -> dict[int, list[slice]]:
    """Returns where a text has each number as a word. Words that follow each other, as in thirty five, are one number
    that is not known; the places are given all the same, twice."""
    known = number_words(language)
    words = list(WORD.finditer(text))
    numbers = [known.get(word.group().lower()) for word in words]
    places: dict[int, list[slice]] = {}
    for word, number, *beside in zip(words, numbers, [None, *numbers], [*numbers[1:], None], strict=False):
        if number is not None:
            times = 1 if beside == [None, None] else 2
            places.setdefault(number, []).extend([slice(*word.span())] * times)
    return places
