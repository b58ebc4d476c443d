"""Numbers that are written as words, such as ten: numbers in digits could stand in the same places."""

import re
from functools import cache

import num2words

from mt.core.language import base_language
from mt.text.lexicon import SIMPLE_WORD

NUM2WORDS_CODES = {"nb": "no", "kk": "kz"}
"""Languages that num2words knows by another code."""
SPELLED_NUMBERS = (*range(2, 21), *range(30, 100, 10), 100, 1000)


@cache
def number_words(language: str) -> dict[str, int]:
    """Map the number words of a language, in small letters, to the numbers of SPELLED_NUMBERS that they stand for.

    Numbers of several words are left out. The result is empty if num2words does not know the language.
    """
    code = base_language(language)
    code = NUM2WORDS_CODES.get(code, code)
    if code not in num2words.CONVERTER_CLASSES:
        return {}
    words = {num2words.num2words(number, lang=code).lower(): number for number in SPELLED_NUMBERS}
    return {word: number for word, number in words.items() if SIMPLE_WORD.fullmatch(word)}


def pattern(language: str) -> str | None:
    """Return an RE2 pattern that matches texts with a number word; None if no number word of the language is known."""
    if not (words := number_words(language)):
        return None
    return rf"(?i)(^|[^\pL])({'|'.join(map(re.escape, words))})([^\pL]|$)"


def shared_numbers(source: str, target: str, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Return (source word, target word) for each number written as a word exactly once on both sides of a pair.

    The words have the casing of the texts. The order is that of the source.
    """
    sources, targets = (
        _number_words(text, language) for text, language in zip((source, target), languages, strict=True)
    )
    pairs = (
        (words[0], targets[number][0])
        for number, words in sources.items()
        if number in targets and len(words) == len(targets[number]) == 1
    )
    return [(word, translation) for word, translation in pairs if source.count(word) == target.count(translation) == 1]


def _number_words(text: str, language: str) -> dict[int, list[str]]:
    """Map each number to the words that write it in a text.

    A number word next to another one, as in thirty five, is listed twice, so that ``shared_numbers`` skips it.
    """
    known = number_words(language)
    matches = [match[0] for match in SIMPLE_WORD.finditer(text)]
    numbers = [None, *(known.get(word.lower()) for word in matches), None]
    words: dict[int, list[str]] = {}
    for word, before, number, after in zip(matches, numbers, numbers[1:], numbers[2:], strict=False):
        if number is not None:
            words.setdefault(number, []).extend([word] * (1 if before is after is None else 2))
    return words
