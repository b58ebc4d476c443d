"""Numbers that are written as words, such as ten: where they stand, numbers in digits could stand, too."""

import re
from functools import cache

import num2words
import regex

from mt.language import base_language

NUMBERS = (*range(2, 21), *range(30, 100, 10), 100, 1000)
WORD = regex.compile(r"(?<![\w'’-])\p{L}[\p{L}\p{M}]*+(?![\w'’-])")
"""A word in letters alone, no part of a longer one."""


@cache
def number_words(language: str) -> dict[str, int]:
    """Returns the numbers of NUMBERS that a language writes as one word, in small letters; none if num2words does not
    know the language."""
    code = base_language(language)
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
    found: list[dict[int, list[str]]] = []
    for text, language in zip((source, target), languages, strict=True):
        words = number_words(language)
        of_numbers: dict[int, list[str]] = {}
        for word in WORD.findall(text):
            if word.lower() in words:
                of_numbers.setdefault(words[word.lower()], []).append(word)
        found.append(of_numbers)
    return [
        (words[0], others[0])
        for number, words in found[0].items()
        if len(words) == len(others := found[1].get(number, [])) == 1
        and source.count(words[0]) == target.count(others[0]) == 1
    ]
