"""Numbers in digits, and the numbers that a translation invents.

This module alone decides which spellings are the same number: 1,249.99 is 1 249,99, but 1.5 is not 15.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from unicodedata import normalize, numeric

from mt.text.number_words import LETTERS, scale_words, spelled_numbers

NUMBER = re.compile(
    r"(?=\d)(?P<whole>[1-9]\d{0,2}(?P<separator>[.,'’٬，\s])\d{3}(?:(?P=separator)\d{3})*+(?!\d)|\d++)"
    r"(?:[.,٫．](?P<fraction>\d++))?"
)
"""A whole number, also in groups of three digits, and the digits behind a point or comma."""
OTHER_DIGIT = re.compile(r"[^\D0-9]")
"""A digit that is not in ASCII."""
SEPARATORS = re.compile(r"\D")
MINUTE_DIGITS = 2
HALF_DAY, DAY = 12, 24
"""The hours of the two kinds of clock."""
CLOCK = re.compile(r"\d\s?(?:[:：h時时点點]|uhr|p\.?\s?m\b)", re.IGNORECASE)
"""A time of day."""


def in_ascii(text: str) -> str:
    """Return a text with the digits of all scripts as those of ASCII."""
    return OTHER_DIGIT.sub(lambda digit: str(int(digit[0])), text)


def find_numbers(text: str) -> Iterator[tuple[re.Match[str], tuple[str, ...]]]:
    """Yield each number in digits of a text, and its digits as those of ASCII: ("1249", "99") for 1,249.99.

    A date such as 3.10.2024 gives two numbers, 3.10 and 2024.
    """
    for match in NUMBER.finditer(in_ascii(text)):
        parts = filter(None, match.group("whole", "fraction"))
        yield match, tuple(SEPARATORS.sub("", part) for part in parts)


def invented_numbers(source: str, target: str, languages: tuple[str, str]) -> list[Decimal]:
    """Return the values of the numbers in digits of a translation that its source has neither in digits nor in words.

    Args:
        source: The source.
        target: The translation.
        languages: The languages of the source and of the translation.
    """
    source, target = normalize("NFKC", source), normalize("NFKC", target)
    known = {value for readings in _readings(source, languages[0]) for values in readings for value in values}
    if CLOCK.search(source) or CLOCK.search(target):
        known |= {(value + HALF_DAY) % DAY for value in known if 0 < value < DAY and value != HALF_DAY}
    unknown = _unknown(_readings(target, languages[1]), known)
    if unknown:
        largest = max(readings[0][0] for readings in unknown)
        known.update(map(Decimal, spelled_numbers(source, languages[0], largest)))
    return [readings[0][0] for readings in _unknown(unknown, known)]


def _readings(text: str, language: str) -> Iterator[list[tuple[Decimal, ...]]]:
    """Yield the possible meanings of each number of a text, as the values that it stands for: first its own value; then
    2,000,000 for 2 million, and 14 and 30 for 14.30."""
    for match, digits in find_numbers(text):
        value = Decimal(".".join(digits))
        readings: list[tuple[Decimal, ...]] = [(value,)]
        word = LETTERS.match(text, match.end() + text.startswith(" ", match.end()))
        if word and (scale := scale_words(language).get(word[0].lower()) or int(numeric(word[0][0], 0))):
            readings.append((value * scale,))
        if len(digits[-1]) == MINUTE_DIGITS:
            readings.append(tuple(map(Decimal, digits)))
        yield readings


def _unknown(numbers: Iterable[list[tuple[Decimal, ...]]], known: set[Decimal]) -> list[list[tuple[Decimal, ...]]]:
    """Return the readings of the numbers without known values."""
    return [readings for readings in numbers if not any(map(known.issuperset, readings))]
