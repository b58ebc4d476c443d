"""Compare the parts of a pair that both sides should share: numbers; links, tags and placeholders."""

from collections import Counter

import regex

from mt.text.placeholders.values import KINDS

DIGIT = regex.compile(r"\d")
NUMBER = regex.compile(r"(?<![\d.,])\d{1,3}(?:[,. \u00a0\u202f\u2009'’]\d{3})++(?![\d])|\d++")
"""Digits, or several groups of three of them. The digits after a decimal point or a colon are a number of their own."""
NO_DIGIT = regex.compile(r"\D")
CONVERSIONS = (1 / 0.3048, 1 / 0.4047, 1 / 0.4536, 1.609, 2.54)
"""Feet in a metre, acres in a hectare, pounds in a kilogram, kilometres in a mile, centimetres in an inch. Translators
convert what readers would otherwise not understand."""
MIN_CONVERTED = 10
"""Smaller numbers have such ratios by chance."""
MIN_CONVERTED_DIGITS = 2
"""The number of leading digits of a converted number that are right. The others may be zeros."""
CLOCK_HOURS = 12
"""The difference between the hours of the two clocks."""

TAG = r"</?[A-Za-z][A-Za-z0-9]{0,20}(?:\s[^<>]{0,200}=[^<>]{0,1000})?\s?/?>|<!--[^<>]{0,1000}-->"
"""A tag of HTML or XML; its attributes have values. <file object> in a text on programming is none."""
COMPARED_KINDS = (
    "entity", "placeholder in braces", "directive", "link", "e-mail address",
)  # fmt: skip
ITEM = regex.compile(f"(?P<tag>{TAG})|" + "|".join(KINDS[name] for name in COMPARED_KINDS))
MAY_HOLD_ITEMS = regex.compile(r"[<&{%@]|://|www\.")
"""Every item has a match of this, so a text without one need not be searched."""


def numbers_differ(source: str, target: str) -> bool:
    """Return whether a number of one side seems to be a different number on the other side.

    Numbers that both sides have are set aside, however they are grouped: 1,250 and 1 250. Of the others, each side must
    have equally many, and they must have equally many digits: a number without a counterpart may be written in words,
    or as another word (6:30, halb sieben). Hours of the other clock, converted units and missing numbers are no
    mistakes.
    """
    if not (DIGIT.search(source) and DIGIT.search(target)):
        return False
    left, right = _numbers(source), _numbers(target)
    left, right = left - right, right - left
    if not left or sorted(len(str(number)) for number in left.elements()) != sorted(
        len(str(number)) for number in right.elements()
    ):
        return False
    return not any(_may_be_equal(number, other) for number in left for other in right)


def items_differ(source: str, target: str) -> bool:
    """Return whether one side has a link, an address, a tag, an entity or a placeholder that the other side lacks.

    Only the number of tags is compared, because their attributes may be translated.
    """
    if not (MAY_HOLD_ITEMS.search(source) or MAY_HOLD_ITEMS.search(target)):
        return False
    return _items(source) != _items(target)


def _numbers(text: str) -> Counter[int]:
    return Counter(int(NO_DIGIT.sub("", number)) for number in NUMBER.findall(text))


def _may_be_equal(number: int, other: int) -> bool:
    """Return whether two numbers can mean the same hour, or the same measure in other units."""
    low, high = sorted((number, other))
    if high - low == CLOCK_HOURS and high <= 2 * CLOCK_HOURS:
        return True
    return low >= MIN_CONVERTED and any(
        _round_like(high, low * factor) == high or _round_like(low, high / factor) == low for factor in CONVERSIONS
    )


def _round_like(number: int, value: float) -> int:
    """Round a value to as many digits as a number has before its final zeros, but at least to a few."""
    digits = max(MIN_CONVERTED_DIGITS, len(str(number).rstrip("0")))
    return round(float(f"{value:.{digits - 1}e}"))


def _items(text: str) -> Counter[str]:
    return Counter("tag" if match["tag"] else match.group() for match in ITEM.finditer(text))
