"""Reads numbers in digits and in words, and finds numbers in a translation that its source lacks.

This module decides which spellings are the same number: 1,249.99 equals 1 249,99, but 1.5 is not 15. A number in words,
such as ten, equals the number in digits.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from unicodedata import normalize, numeric

import num2words
import regex

from mt.core.language import base_language
from mt.text.segment import Phenomenon

LETTER_RUN = regex.compile(r"\p{L}[\p{L}\p{M}]*")
SIMPLE_WORD = regex.compile(r"(?<![\w'’-])\p{L}[\p{L}\p{M}]*+(?![\w'’-])")
"""A word of letters alone that is not a part of a longer word such as don't or well-known."""
NUM2WORDS_CODES = {"nb": "no", "kk": "kz"}
"""Languages with other codes in num2words."""
SINGLE_WORD_NUMBERS = (*range(2, 21), *range(30, 100, 10), 100, 1000)
ORDINALS, YEARS, THOUSANDS = range(1, 101), range(1100, 2100), range(11_000, 10**6, 1000)
MAX_SMALL, MAX_CARDINAL = 1000, 10_000
"""The largest cardinal number of the small and of the full table of number words. num2words takes up to 0.3 seconds to
make the small table, and up to 1.2 seconds to make the full one."""
MAX_WORDS = 11
"""Maximum number of words of a number in these tables, in any language."""
ONE_IS_ARTICLE = ["ca", "da", "fr", "hu", "nl", "no", "pt", "ro", "sv", "tr", "vi"]
"""Languages whose word for 1 is also an article, so that it does not count as a number."""
HAN_NUMERAL = regex.compile("[〇零一二两兩三四五六七八九十百千万萬亿億]{1,30}+")
HAN_TWO = 2
"""The value of 两, which ``unicodedata.numeric`` lacks."""


def spelled_numbers(text: str, language: str, largest: Decimal) -> Iterator[int]:
    """Yield the values of the numbers in words of a text. The longest match counts: twenty-five is 25, not 20 and 5.

    Numbers in words are Chinese numerals, and the words of num2words for scales, for cardinal numbers to MAX_CARDINAL
    and for THOUSANDS, ORDINALS and YEARS. A number before a scale word, as in two million, is yielded with it and
    without it.

    Args:
        text: The text.
        language: The language of the text.
        largest: The largest number of interest. Up to MAX_SMALL, the small table of number words is used.
    """
    for numeral in HAN_NUMERAL.findall(text):
        yield _han_value([int(numeric(character, HAN_TWO)) for character in numeral])
    table = _number_spellings(language, MAX_SMALL if largest <= MAX_SMALL else MAX_CARDINAL)
    words = _lowercase_words(text)
    while words:
        for size in range(MAX_WORDS, 0, -1):
            phrase = " ".join(words[:size])
            value = table.get(phrase, table.get(phrase[:-1]))  # with or without an ending of one letter
            if value is not None:
                yield from (value, value * scale_words(language).get(" ".join(words[size : size + 1]), 1))
                break
        del words[:size]


def _han_value(values: list[int]) -> int:
    """Return the value of a Chinese numeral, given the values of its characters: 205 for [2, 100, 5], 1984 for
    [1, 9, 8, 4]."""
    largest = max(values, default=0)
    if largest < 10:
        return int("".join(map(str, values)) or 0)
    index = values.index(largest)
    return max(_han_value(values[:index]), 1) * largest + _han_value(values[index + 1 :])


@cache
def scale_words(language: str) -> dict[str, int]:
    """Map the words for hundred, thousand, million and billion, in singular and plural, to their values."""
    words = {
        _spell_number(count * scale, language).removeprefix(_spell_number(count, language)).rpartition(" ")[2]: scale
        for scale in (10**9, 10**6, 1000, 100)
        for count in (1, 2, 5)
    }
    words.pop("", None)
    return words


@cache
def _number_spellings(language: str, max_cardinal: int) -> dict[str, int]:
    """Map the spellings of numbers in words to the numbers."""
    words = scale_words(language) | {_spell_number(number, language, "year"): number for number in YEARS}
    words |= {_spell_number(number, language, "ordinal").removesuffix("o"): number for number in ORDINALS}
    cardinals = {*THOUSANDS, *range(max_cardinal + 1)}
    if base_language(language) in ONE_IS_ARTICLE:
        cardinals.remove(1)
    words |= {_spell_number(number, language): number for number in cardinals}
    words.pop("", None)
    return words


def _spell_number(number: int, language: str, kind: str = "cardinal") -> str:
    """Return a number in the words of ``_lowercase_words``; "" if num2words cannot spell it."""
    code = base_language(language)
    try:
        spelling = num2words.num2words(number, lang=NUM2WORDS_CODES.get(code, code), to=kind)
        return " ".join(_lowercase_words(spelling))
    except Exception:  # some languages lack ordinals, years or large numbers, and raise errors of many kinds
        return ""


def _lowercase_words(text: str) -> list[str]:
    """Return the words of a text in lowercase, without the "and" of English numbers, which is optional."""
    return [word for word in LETTER_RUN.findall(normalize("NFKC", text).lower()) if word != "and"]


@cache
def number_words(language: str) -> dict[str, int]:
    """Map the number words of a language, in lowercase, to their values among SINGLE_WORD_NUMBERS.

    Numbers of several words are skipped. The map is empty if num2words does not support the language.
    """
    words = {_spell_number(number, language): number for number in SINGLE_WORD_NUMBERS}
    return {word: number for word, number in words.items() if SIMPLE_WORD.fullmatch(word)}


def number_word_pattern(language: str) -> str | None:
    """Return a pattern that matches texts with a number word, in the syntax of RE2, which pyarrow uses.

    Return None if no number word of the language is known.
    """
    if not (words := number_words(language)):
        return None
    return rf"(?i)(^|[^\pL])({'|'.join(words)})([^\pL]|$)"


def shared_numbers(source: str, target: str, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Return (source word, target word) for each number that is written in one word exactly once on both sides of a
    pair.

    The words have the casing of the texts. The order is that of the source. Consecutive number words, as in thirty
    five, are skipped.
    """
    words, translations = map(_unique_number_words, (source, target), languages)
    return [(word, translations[number]) for number, word in words.items() if number in translations]


def _unique_number_words(text: str, language: str) -> dict[int, str]:
    """Map the value of each number word that occurs once in a text, and not beside another one, to the word."""
    words = SIMPLE_WORD.findall(text)
    numbers = [None, *(number_words(language).get(word.lower()) for word in words), None]
    return {
        number: word
        for word, before, number, after in zip(words, numbers, numbers[1:], numbers[2:], strict=False)
        if number and before is None and after is None and numbers.count(number) == 1 and text.count(word) == 1
    }


NUMBER = re.compile(
    r"(?=\d)(?P<whole>[1-9]\d{0,2}(?P<separator>[.,'’٬，\s])\d{3}(?:(?P=separator)\d{3})*+(?!\d)|\d++)"
    r"(?:[.,٫．](?P<fraction>\d++))?"
)
"""A whole number, possibly in groups of three digits, and the digits after a decimal point or comma."""
OTHER_DIGIT = re.compile(r"[^\D0-9]")
"""A digit outside of ASCII."""
SEPARATORS = re.compile(r"\D")
MINUTE_DIGITS = 2
HOURS_PER_HALF_DAY, HOURS_PER_DAY = 12, 24
"""The hours of the 12-hour clock and of the 24-hour clock."""
CLOCK = re.compile(r"\d\s?(?:[:：h時时点點]|uhr|p\.?\s?m\b)", re.IGNORECASE)
"""A time of day."""


def in_ascii(text: str) -> str:
    """Return a text with the digits of all scripts replaced by ASCII digits."""
    return OTHER_DIGIT.sub(lambda digit: str(int(digit[0])), text)


def is_plain_number(value: str) -> bool:
    """Return whether a value gets a number placeholder: 3 or 1,249.99, but neither $5 nor 10:30."""
    return NUMBER.fullmatch(in_ascii(value)) is not None


def find_numbers(text: str) -> Iterator[tuple[re.Match[str], tuple[str, ...]]]:
    """Yield the match of each number in digits of a text, and its ASCII digits: ("1249", "99") for 1,249.99.

    A date such as 3.10.2024 gives two numbers, 3.10 and 2024.
    """
    for match in NUMBER.finditer(in_ascii(text)):
        parts = filter(None, match.group("whole", "fraction"))
        yield match, tuple(SEPARATORS.sub("", part) for part in parts)


class Numbers(Phenomenon):
    """Rejects translations with numbers that the source lacks."""

    def rejects(self, source: str, translation: str) -> bool:
        languages = self.layer.source_language, self.layer.target_language
        return bool(invented_numbers(source, translation, languages))


def invented_numbers(source: str, target: str, languages: tuple[str, str]) -> list[Decimal]:
    """Return the values of the numbers in digits of a translation that its source lacks, in digits and in words.

    Args:
        source: The source.
        target: The translation.
        languages: The languages of the source and of the translation.
    """
    source, target = normalize("NFKC", source), normalize("NFKC", target)
    known = {value for readings in _possible_values(source, languages[0]) for values in readings for value in values}
    if CLOCK.search(source) or CLOCK.search(target):
        known |= {
            (value + HOURS_PER_HALF_DAY) % HOURS_PER_DAY
            for value in known
            if 0 < value < HOURS_PER_DAY and value != HOURS_PER_HALF_DAY
        }
    unknown = _without_known_values(_possible_values(target, languages[1]), known)
    if unknown:
        largest = max(readings[0][0] for readings in unknown)
        known.update(map(Decimal, spelled_numbers(source, languages[0], largest)))
    return [readings[0][0] for readings in _without_known_values(unknown, known)]


def _possible_values(text: str, language: str) -> Iterator[list[tuple[Decimal, ...]]]:
    """Yield the readings of each number in digits of a text.

    The first reading is the value of the digits. Others are the value with the following scale word, 2,000,000 in 2
    million, and the two parts of a time or date, 14 and 30 in 14.30.
    """
    for match, digits in find_numbers(text):
        value = Decimal(".".join(digits))
        readings: list[tuple[Decimal, ...]] = [(value,)]
        word = LETTER_RUN.match(text, match.end() + text.startswith(" ", match.end()))
        if word and (scale := scale_words(language).get(word[0].lower()) or int(numeric(word[0][0], 0))):
            readings.append((value * scale,))
        if len(digits[-1]) == MINUTE_DIGITS:
            readings.append(tuple(map(Decimal, digits)))
        yield readings


def _without_known_values(
    numbers: Iterable[list[tuple[Decimal, ...]]], known: set[Decimal]
) -> list[list[tuple[Decimal, ...]]]:
    """Return the readings of the numbers of which no reading has only known values."""
    return [readings for readings in numbers if not any(map(known.issuperset, readings))]
