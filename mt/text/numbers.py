"""The numbers of a text: in digits, as words and as Chinese numerals; and those that a translation invents.

A number in digits in a translation needs the same value in the source: as digits, whatever separates them (1,000 and
1 000), as a cardinal or ordinal in words (twenty-one, third, hundreds), or as a Chinese numeral (二十). With p.m., the
hour plus twelve counts as well. Number words of a translation are not checked.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product

import num2words
import regex

from mt.core.language import base_language
from mt.text.number_words import CODES

NUMERIC = regex.compile(r"\p{N}")
DIGIT_GROUPS = regex.compile(r"\p{Nd}+(?:[.,'’٫٬．，\s]\p{Nd}+)*")
OTHER_NUMERIC = regex.compile(r"[\p{N}--\p{Nd}]", regex.V1)
LETTERS = regex.compile(r"\p{L}[\p{L}\p{M}]*")
AFTERNOON = regex.compile(r"(?i)\d\s?pm\b|\bp\.\s?m\b")
HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
HAN_DIGITS = dict(zip("〇一二三四五六七八九零两兩壹贰叁", (*range(10), 0, 2, 2, 1, 2, 3), strict=True))
HAN_NUMBER = regex.compile(f"[{''.join((*HAN_SCALES, *HAN_DIGITS))}]+")

SCALES = (100, 10**3, 10**6, 10**9, 10**12)
ORDINAL_ENDINGS = ("", "s", "n", "r", "m")
"""What is added to the ordinals of num2words for cases and plurals, such as German dritten and French troisièmes."""
ONE_IS_ARTICLE = frozenset({"ca", "da", "fr", "hu", "nl", "no", "pt", "ro", "sv", "tr"})
OTHER_WORDS = {"en": {"dozen": 12, "dozens": 12, "once": 1, "twice": 2}, "fr": {"douzaine": 12, "première": 1}}
"""Number words that num2words does not tell."""


def invented_numbers(source: str, target: str, language: str) -> list[str]:
    """Return the numbers in digits of a translation that the source lacks, in order.

    A number that the translation has more often than the source is returned for each surplus occurrence.

    Args:
        source: The source, in ``language``.
        target: The translation.
        language: The language of the source.
    """
    known = Counter(number_values(source, language))
    invented = []
    for match in DIGIT_GROUPS.finditer(target):
        parts = regex.findall(r"\p{Nd}+", match[0])
        for values in ([int("".join(parts))], list(map(int, parts))):
            if Counter(values) <= known:
                known.subtract(values)
                break
        else:
            invented.append(match[0])
    own = Counter(OTHER_NUMERIC.findall(source))
    return invented + list((Counter(OTHER_NUMERIC.findall(target)) - own).elements())


def number_values(text: str, language: str) -> list[int]:
    """Return the values of all numbers of a text. A number of several parts is listed whole and in parts."""
    values: list[int] = []
    for match in DIGIT_GROUPS.finditer(text):
        parts = regex.findall(r"\p{Nd}+", match[0])
        values += map(int, parts if len(parts) == 1 else ["".join(parts), *parts])
    for match in HAN_NUMBER.finditer(text):
        values += {_han_value(match[0]), *map(_han_value, match[0])}
    values += _values_in_words(text, language)
    if AFTERNOON.search(text):
        values += [value + 12 for value in values if 0 < value < 12]
    return values


def _han_value(numeral: str) -> int:
    """Return the value of a Chinese numeral, also of one without 十, 百 and the like, such as 二〇一九."""
    if HAN_SCALES.keys().isdisjoint(numeral):
        return int("".join(str(HAN_DIGITS[character]) for character in numeral))
    total = section = digit = 0
    for character in numeral:
        scale = HAN_SCALES.get(character)
        if scale is None:
            digit = HAN_DIGITS[character]
        elif scale < 10**4:
            section, digit = section + (digit or 1) * scale, 0
        else:
            total, section, digit = (total + section + digit or 1) * scale, 0, 0
    return total + section + digit


def _values_in_words(text: str, language: str) -> list[int]:
    """Return the values of the numbers in words, and of the longer numbers that adjacent ones form."""
    known = _phrases(language)
    words = [part for word in LETTERS.findall(text.lower()) for part in _parts(word, language)]
    longest = max(map(len, known), default=1)
    runs: list[list[int]] = [[]]
    start = 0
    while start < len(words):
        for end in range(min(len(words), start + longest), start, -1):
            value = known.get(tuple(words[start:end]))
            if value is not None:
                runs[-1].append(value)
                break
        else:
            runs.append([])
        start = end
    return [value for run in runs for value in {*run, *_sums(run)}]


def _parts(word: str, language: str) -> list[str]:
    """Cut a number such as zweitausendfünfhundert before and behind its scales; return any other word alone."""
    known, scales = _phrases(language), _scales(language)
    parts = [part for part in scales.split(word) if part] if scales and (word,) not in known else []
    return parts if parts and all((part,) in known for part in parts) else [word]


@cache
def _scales(language: str) -> regex.Pattern[str] | None:
    """Return a pattern of the words for 100 and 1000; None if there are none."""
    names = [words[0] for words, value in _phrases(language).items() if value in SCALES[:2] and len(words) == 1]
    return regex.compile(f"({'|'.join(names)})") if names else None


def _sums(values: Sequence[int]) -> Iterable[int]:
    """Return the number that adjacent number words form: ten, thousand, five hundred are 10,500."""
    total = section = 0
    for value in values:
        if value in SCALES and section < value:
            section = (section or 1) * value
            if value > SCALES[0]:
                total, section = total + section, 0
        else:
            section += value
    return [total + section] if not set(SCALES).isdisjoint(values) else []


@cache
def _phrases(language: str) -> dict[tuple[str, ...], int]:
    """Map the numbers of a language in small letters, as sequences of words, to their values."""
    code = base_language(language)
    spoken = CODES.get(code, code)
    phrases: dict[tuple[str, ...], int] = {(word,): value for word, value in OTHER_WORDS.get(code, {}).items()}
    if spoken not in num2words.CONVERTER_CLASSES:
        return phrases
    for value in range(1, 101):
        if words := _spelled(value, spoken, "ordinal"):
            forms = {words[-1] + ending for ending in ORDINAL_ENDINGS} | {words[-1].removesuffix("o") + "a"}
            phrases |= {(*words[:-1], form): value for form in forms}
    for scale, count in product(SCALES, (1, 2, 5)):
        # The word of 1000 is the last one of "two thousand", or the rest of "zweitausend" behind "zwei".
        *first, last = _spelled(count * scale, spoken) or [""]
        factor = _spelled(count, spoken)[-1]
        if not first and not last.startswith(factor):
            phrases[last,] = count * scale
        else:
            phrases |= {(last.removeprefix(factor) + ending,): scale for ending in ("", "s") if last}
    phrases |= {
        tuple(_spelled(value, spoken)): value for value in range(1000) if value != 1 or code not in ONE_IS_ARTICLE
    }
    return {words: value for words, value in phrases.items() if any(words)}


def _spelled(number: int, language: str, kind: str = "cardinal") -> list[str]:
    """Return the words of a number in small letters; none if num2words cannot tell."""
    try:
        return LETTERS.findall(num2words.num2words(number, lang=language, to=kind).lower())
    except Exception:  # some languages lack ordinals or large numbers, and raise errors of many kinds
        return []
