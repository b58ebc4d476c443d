"""Numbers that a translation invents.

A number in digits in a translation needs a counterpart in the source: the same digits, however they are separated
(1,000 and 1 000), the number as a word that num2words tells (ten, twenty-one, third, hundreds, nineteen eighty-four),
or as a Chinese numeral (二十, 一九八四). With p.m., the hour plus twelve counts as well. Each number of the source
counts as one value: 10.5 is neither 10 nor 105, and twenty-five is not 20. Number words of a translation are not
checked, and articles of the source are no numbers.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from unicodedata import decimal, normalize

import num2words
import regex

from mt.core.language import base_language
from mt.text.number_words import NUM2WORDS_CODES

NUMERIC = regex.compile(r"\p{N}")
OTHER_NUMERIC = regex.compile(r"(?V1)[\p{N}--\p{Nd}]")
DIGIT_RUN = regex.compile(r"\p{Nd}+")
GROUPED = r"[1-9]\d{0,2}(?P<separator>[.,'’٬，\s])\d{3}(?:(?P=separator)\d{3})*+(?!\d)(?:(?!(?P=separator))[.,٫]\d++)?"
DIGIT_NUMBER = regex.compile(rf"(?<!\d)(?:{GROUPED}|\d++(?:[.,٫．，]\d++)*+)")
"""A number in digits: with separators of thousands, or with a decimal separator, or a date or version such as 1.2.3."""
CLOCK_HOURS, CLOCK_MINUTES = 24, 60
MIN_SCALE = 1000
MIN_LARGE_SCALE = 10**6
SPELLED_CENTURIES = range(13, 21)
MAX_SPELLED_DIGITS = 30
MAX_NEIGHBOUR_WORDS = 4
LETTERS = regex.compile(r"\p{L}[\p{L}\p{M}]*")
AFTERNOON = regex.compile(r"(?i)(?:\d|\b)\s?pm\b|\bp\.\s?m\b")
NO_NUMBERS = {"en": regex.compile(r"(?<=\bno )one\b|\bseconds\b|(?<=\b(?:a|per|split) )second\b")}
"""Words of a language that look like numbers, in the text of ``_in_words``."""
ONE_IS_ARTICLE = frozenset({"ca", "da", "fr", "hu", "nl", "no", "pt", "ro", "sv", "tr", "vi"})
ENDINGS = {"cardinal": "s?", "year": "", "ordinal": r"\w?"}
"""How num2words writes numbers, and what may follow: the plural, and the case of German dritten."""
HAN_DIGITS = "〇一二三四五六七八九"
HAN_NUMERAL = regex.compile(rf"[{HAN_DIGITS}十百千万億]+")
HAN_ONE = regex.compile("一(?=[十百千])")
"""The digit that Chinese writes, and Japanese does not."""
HAN_VARIANTS = str.maketrans("两兩萬亿", "二二万億", "零")


def invented_numbers(source: str, target: str, language: str) -> list[str]:
    """Return the numbers in digits of a translation that the source lacks, or has less often.

    Args:
        source: The source, in ``language``.
        target: The translation.
        language: The language of the source.
    """
    numbers = [number for text in (source, _fractions(source)) for number in _numbers(text, base_language(language))]
    words = _in_words(source)
    if language_exceptions := NO_NUMBERS.get(base_language(language)):
        words = language_exceptions.sub("·", words)
    is_afternoon = AFTERNOON.search(source) is not None
    in_words: dict[str, int] = {}

    def take(value: str) -> bool:
        """Use up a number of the source that has a value."""
        hours = [value]
        if is_afternoon and regex.fullmatch(r"\d\d", value) and 12 < int(value) < CLOCK_HOURS:
            hours.append(str(int(value) - 12))
        for hour in hours:
            if any(number.take(hour, part=False) for number in numbers):
                return True
            if hour.isdecimal() and len(hour) <= MAX_SPELLED_DIGITS and hour not in in_words:
                in_words[hour] = _occurrences(int(hour), source, words, language)
            if in_words.get(hour, 0) > 0:
                in_words[hour] -= 1
                return True
            if any(number.take(hour, part=True) for number in numbers):
                return True
        return False

    invented = [
        number.written
        for number in _numbers(target)
        if not take(number.value) and not (number.parts and all([take(part) for part in number.parts]))
    ]
    others = Counter(OTHER_NUMERIC.findall(target)) - Counter(OTHER_NUMERIC.findall(source))
    return invented + list(others.elements())


@dataclass
class _Number:
    """A number in digits of a text. It is used as a whole or in parts."""

    written: str
    value: str
    scaled: str = ""
    """The value with the word behind it, as in 2 million."""
    parts: list[str] = field(default_factory=list)
    """The unused parts, if the digits can be several numbers, such as a time or a date."""
    is_used: bool = False

    def take(self, value: str, part: bool) -> bool:
        """Use the number, or a part of it, for a value. Return whether it has this value."""
        if part:
            if value not in self.parts:
                return False
            self.parts.remove(value)
            self.is_used = True
            return True
        if self.is_used or value not in (self.value, self.scaled):
            return False
        self.is_used, self.parts = True, []
        return True


def _numbers(text: str, language: str | None = None) -> list[_Number]:
    """Return the numbers in digits of a text, with the scale words of its language if that is given."""
    numbers = []
    for match in DIGIT_NUMBER.finditer(text):
        runs = [in_ascii(run) for run in DIGIT_RUN.findall(match[0])]
        separator = match["separator"]
        parts: list[str] = []
        if separator:
            decimals = runs.pop() if DIGIT_RUN.sub("", match[0])[-1] != separator else ""
            if separator.isspace() and not decimals and not any(run.startswith("0") for run in runs):
                parts = runs  # 5 100 may be two numbers
            value = _decimal("".join(runs), decimals)
        elif len(runs) == 1:
            value = _without_zero(runs[0])
        elif len(runs) == 2:
            value = _decimal(*runs)
            if len(runs[0]) <= 2 == len(runs[1]) and int(runs[0]) < CLOCK_HOURS and int(runs[1]) < CLOCK_MINUTES:
                parts = [*map(_without_zero, runs)]
        else:
            value = ".".join(runs)
            parts = [*map(_without_zero, runs)]
        scaled = ""
        following = LETTERS.match(text, match.end() + 1) if language else None
        if following and text[match.end()].isspace() and regex.fullmatch(r"\d{1,15}(?:\.\d{1,15})?", value):
            scale = _neighbours(language or "").get(following[0].lower(), 0)
            if scale >= MIN_SCALE:
                scaled = f"{(Decimal(value) * scale).normalize():f}"
        numbers.append(_Number(match[0], value, scaled, parts))
    return numbers


def in_ascii(digits: str) -> str:
    """Return the digits of any script as those of ASCII."""
    return "".join(map(_digit_in_ascii, digits))


def _digit_in_ascii(digit: str) -> str:
    first = ord(digit)
    while decimal(digit, -1) < 0 and regex.match(r"\d", chr(first - 1)):  # newer than Python's table of characters
        first -= 1
    return str(decimal(digit, (ord(digit) - first) % 10))


def _without_zero(digits: str) -> str:
    """Return the digits of a number, 5 for 05."""
    return digits[1:] if len(digits) == 2 and digits[0] == "0" else digits


def _decimal(integer: str, decimals: str) -> str:
    decimals = decimals.rstrip("0")
    return f"{integer}.{decimals}" if decimals else integer


def _fractions(text: str) -> str:
    """Return the fractions of a text that are one character, such as ½, in digits."""
    digits = (normalize("NFKD", character) for character in OTHER_NUMERIC.findall(text))
    return " / ".join(fraction.replace("⁄", " / ") for fraction in digits if "⁄" in fraction)


def _occurrences(value: int, source: str, words: str, language: str) -> int:
    """Count a number in words (``_in_words``) and in Chinese numerals of a source."""
    code = base_language(language)
    matches = _pattern(value, code).finditer(words)
    in_words = sum(not _is_part(words, match.span(), value, code) for match in matches)
    positional = "".join(HAN_DIGITS[int(digit)] for digit in str(value))
    numerals = {positional, HAN_ONE.sub("", _spelled(value, "ja", "cardinal"))}
    runs = [HAN_ONE.sub("", run) for run in HAN_NUMERAL.findall(source.translate(HAN_VARIANTS))]
    pairs = [digit for run in runs if len(run) == 2 and set(run) <= set(HAN_DIGITS) for digit in run]  # seven, eight
    return in_words + sum(run in numerals for run in [*runs, *pairs])


def _is_part(words: str, span: tuple[int, int], value: int, language: str) -> bool:
    """Return whether the words of a number are part of a longer one, as twenty is of twenty-five."""
    neighbours = _neighbours(language)
    written = words[slice(*span)]
    before, after = words[: span[0]].split()[-MAX_NEIGHBOUR_WORDS:], words[span[1] :].split()[:MAX_NEIGHBOUR_WORDS]
    for left in range(len(before) + 1):
        for right in range(len(after) + 1):
            if (left or right) and " ".join([*before[len(before) - left :], written, *after[:right]]) in neighbours:
                return True
    for size in range(1, MAX_NEIGHBOUR_WORDS + 1):
        for skipped in (0, 1):  # a word for "and"
            if size + skipped <= len(after):
                other = neighbours.get(" ".join(after[skipped : size + skipped]))
                longer = " ".join([written, *after[: size + skipped]])
                is_unit = other is None or other >= MIN_LARGE_SCALE  # 2 million may stay so
                if other and not is_unit and _is_spelled(_combined(value, other), longer, language, str.startswith):
                    return True
            if size + skipped <= len(before):
                first = len(before) - size - skipped
                other = neighbours.get(" ".join(before[first : first + size]))
                longer = " ".join([*before[first:], written])
                if other and _is_spelled(_combined(other, value), longer, language, str.endswith):
                    return True
    return False


def _combined(first: int, second: int) -> set[int]:
    """Return the numbers that two neighbouring numbers can be parts of."""
    year = {100 * first + second} if first in SPELLED_CENTURIES and second < 100 else set()
    return {first + second, first * second} | year


def _is_spelled(values: set[int], words: str, language: str, test: Callable[[str, str], bool]) -> bool:
    spelled = (_spelled(value, language, kind) for value in values for kind in ENDINGS)
    return any(test(text, words) for text in spelled)


@lru_cache(64)
def _neighbours(language: str) -> dict[str, int]:
    """Map the words of the numbers that longer numbers consist of to their values."""
    values = [*range(1, 100), *range(100, 1000, 100), 1000, 10**6, 10**9]
    words = {_spelled(value, language, kind): value for kind in ("ordinal", "cardinal") for value in values}
    two = _spelled(2, language, "cardinal")
    for scale in (100, 1000, 10**6, 10**9):
        if two and (twice := _spelled(2 * scale, language, "cardinal")).startswith(f"{two} "):
            words[twice.removeprefix(two).strip()] = scale
    words.pop("", None)
    return words


@lru_cache(4096)
def _pattern(value: int, language: str) -> regex.Pattern[str]:
    """Return a pattern of a number in words, as ``_in_words`` writes them."""
    forms = {
        regex.escape(words.removesuffix("o" if kind == "ordinal" else "")) + ending
        for kind, ending in ENDINGS.items()
        if (words := _spelled(value, language, kind))
    }
    two, twice = _spelled(2, language, "cardinal"), _spelled(2 * value, language, "cardinal")
    if value > 1 and two and twice.startswith(two):  # the word of 1000 is the rest of "two thousand"
        forms.add(regex.escape(twice.removeprefix(two).strip()) + "s?")
    if value == 1 and language in ONE_IS_ARTICLE:
        forms = set()
    return regex.compile(rf"\b(?:{'|'.join(forms)})\b" if forms else r"(?!)")


@lru_cache(4096)
def _spelled(number: int, language: str, kind: str) -> str:
    """Return a number as ``_in_words`` writes it; "" if num2words cannot tell."""
    code = NUM2WORDS_CODES.get(language, language)
    if code not in num2words.CONVERTER_CLASSES:
        return ""
    try:
        return _in_words(num2words.num2words(number, lang=code, to=kind))
    except Exception:  # some languages lack ordinals, years or large numbers, and raise errors of many kinds
        return ""


def _in_words(text: str) -> str:
    """Return the words of a text in small letters, without the "and" of English numbers, which not all people write."""
    return " ".join(word for word in LETTERS.findall(text.lower()) if word != "and")
