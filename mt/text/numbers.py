"""Numbers that a translation invents.

A number in digits in a translation needs a counterpart in the source: the same digits, however they are separated
(1,000 and 1 000), the number as a word that num2words tells (ten, twenty-one, third, hundreds, nineteen eighty-four),
or as a Chinese numeral (二十, 一九八四). With p.m., the hour plus twelve counts as well. Number words of a translation
are not checked, and articles of the source are no numbers.
"""

from collections import Counter
from functools import lru_cache

import num2words
import regex

from mt.core.language import base_language
from mt.text.number_words import NUM2WORDS_CODES

NUMERIC = regex.compile(r"\p{N}")
OTHER_NUMERIC = regex.compile(r"(?V1)[\p{N}--\p{Nd}]")
DIGIT_RUN = regex.compile(r"\p{Nd}+")
DIGIT_GROUPS = regex.compile(r"\p{Nd}+(?:[.,'’٫٬．，\s]\p{Nd}+)*")
LETTERS = regex.compile(r"\p{L}[\p{L}\p{M}]*")
AFTERNOON = regex.compile(r"(?i)\d\s?pm\b|\bp\.\s?m\b")
ONE_IS_ARTICLE = frozenset({"ca", "da", "fr", "hu", "nl", "no", "pt", "ro", "sv", "tr", "vi"})
ENDINGS = {"cardinal": "s?", "year": "", "ordinal": r"\w?"}
"""How num2words writes numbers, and what may follow: the plural, and the case of German dritten."""
HAN_DIGITS = "〇一二三四五六七八九"
HAN_VARIANTS = str.maketrans("两兩萬亿", "二二万億", "零")


def invented_numbers(source: str, target: str, language: str) -> list[str]:
    """Return the numbers in digits of a translation that the source lacks, or has less often.

    Args:
        source: The source, in ``language``.
        target: The translation.
        language: The language of the source.
    """
    readings = [values for match in DIGIT_GROUPS.finditer(source) for values in _readings(match[0])]
    digits = Counter(value for values in readings for value in values)
    words = _in_words(source)
    left: Counter[int] = Counter()
    invented = []
    for match in DIGIT_GROUPS.finditer(target):
        for values in _readings(match[0]):
            for value in set(values) - left.keys():
                hours = (value, value - 12) if 12 < value < 24 and AFTERNOON.search(source) else (value,)
                left[value] = sum(digits[hour] + _occurrences(hour, source, words, language) for hour in hours)
            if Counter(values) <= left:
                left.subtract(values)
                break
        else:
            invented.append(match[0])
    others = Counter(OTHER_NUMERIC.findall(target)) - Counter(OTHER_NUMERIC.findall(source))
    return invented + list(others.elements())


def _readings(group: str) -> list[list[int]]:
    """Return the readings of digits with separators: as one number, and as several."""
    parts = DIGIT_RUN.findall(group)
    return [[int("".join(parts))], list(map(int, parts))][: len(parts)]


def _occurrences(value: int, source: str, words: str, language: str) -> int:
    """Count a number in words (``_in_words``) and in Chinese numerals of a source."""
    pattern = _pattern(value, base_language(language))
    positional = "".join(HAN_DIGITS[int(digit)] for digit in str(value))
    numerals = {positional, _spelled(value, "ja", "cardinal")}
    return len(pattern.findall(words)) + sum(map(source.translate(HAN_VARIANTS).count, numerals - {""}))


@lru_cache(4096)
def _pattern(value: int, language: str) -> regex.Pattern[str]:
    """Return a pattern of a number in words, as ``_in_words`` writes them."""
    code = NUM2WORDS_CODES.get(language, language)
    forms = {
        regex.escape(words.removesuffix("o" if kind == "ordinal" else "")) + ending
        for kind, ending in ENDINGS.items()
        if (words := _spelled(value, code, kind))
    }
    two, twice = _spelled(2, code, "cardinal"), _spelled(2 * value, code, "cardinal")
    if value > 1 and two and twice.startswith(two):  # the word of 1000 is the rest of "two thousand"
        forms.add(regex.escape(twice.removeprefix(two).strip()) + "s?")
    if value == 1 and language in ONE_IS_ARTICLE:
        forms = set()
    return regex.compile(rf"\b(?:{'|'.join(forms)})\b" if forms else r"(?!)")


@lru_cache(4096)
def _spelled(number: int, language: str, kind: str) -> str:
    """Return a number as ``_in_words`` writes it; "" if num2words cannot tell."""
    if language not in num2words.CONVERTER_CLASSES:
        return ""
    try:
        return _in_words(num2words.num2words(number, lang=language, to=kind))
    except Exception:  # some languages lack ordinals, years or large numbers, and raise errors of many kinds
        return ""


def _in_words(text: str) -> str:
    """Return the words of a text in small letters, without the "and" of English numbers, which not all people write."""
    return " ".join(word for word in LETTERS.findall(text.lower()) if word != "and")
