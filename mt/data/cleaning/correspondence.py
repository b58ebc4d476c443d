"""Compares what should be the same on both sides of a pair: numbers; links, tags and placeholders."""

from collections import Counter

import regex

from mt.text.items import KINDS

DIGIT = regex.compile(r"\d")
NUMBER = regex.compile(r"(?<![\d.,])\d{1,3}(?:[,. \u00a0\u202f\u2009'’]\d{3})++(?![\d])|\d++")
"""Digits, or several groups of three of them. What stands behind a decimal point or a colon is a number of its own."""
NO_DIGIT = regex.compile(r"\D")
CONVERSIONS = (1 / 0.3048, 1 / 0.4047, 1 / 0.4536, 1.609, 2.54)
"""Feet in a metre, acres in a hectare, pounds in a kilogram, kilometres in a mile, centimetres in an inch. Translators
convert what readers would otherwise not understand."""
DIGITS_OF_CONVERTED = 2
"""How many digits of a converted number are right at least; those behind may be zeros."""
HOURS = 12
"""By how much the hours of the two clocks differ."""

TAG = r"</?[A-Za-z][A-Za-z0-9]{0,20}(?:\s[^<>]{0,200}=[^<>]{0,1000})?\s?/?>|<!--[^<>]{0,1000}-->"
"""A tag of HTML or XML; its attributes have values. <file object> in a text on programming is none."""
KEPT = (
    "entity", "placeholder in two braces", "placeholder in braces", "placeholder of printf", "link", "e-mail address",
)  # fmt: skip
ITEM = regex.compile(f"(?P<tag>{TAG})|" + "|".join(KINDS[name] for name in KEPT))
MAY_HOLD_ITEMS = regex.compile(r"[<&{%@]|://|www\.")
"""Every item holds a match of this, so a text without one need not be searched."""


def numbers_differ(source: str, target: str) -> bool:
    """Returns whether a number of one side seems to stand as another number on the other side.

    Numbers that both sides have are set aside, however they are grouped: 1,250 and 1 250. Of what is left, each side
    must have equally many, and they must have equally many digits. A number of which the other side has nothing may be
    written in words there, or as another word (6:30, halb sieben). Hours of another clock and converted units are no
    mistakes, and neither is a number that is left out.
    """
    if not (DIGIT.search(source) and DIGIT.search(target)):
        return False
    ours, theirs = (Counter(int(NO_DIGIT.sub("", one)) for one in NUMBER.findall(text)) for text in (source, target))
    left, right = list((ours - theirs).elements()), list((theirs - ours).elements())
    if not left or sorted(len(str(one)) for one in left) != sorted(len(str(one)) for one in right):
        return False
    return not any(_may_be_equal(one, other) for one in left for other in right)


def items_differ(source: str, target: str) -> bool:
    """Returns whether one side has a link, an address, a tag, an entity or a placeholder that the other side lacks.

    Of tags, only the number is compared, because their attributes may be translated.
    """
    if not (MAY_HOLD_ITEMS.search(source) or MAY_HOLD_ITEMS.search(target)):
        return False
    return _items(source) != _items(target)


def _may_be_equal(one: int, other: int) -> bool:
    """Returns whether two numbers can mean the same hour, or the same measure in other units."""
    if abs(one - other) == HOURS and max(one, other) <= 2 * HOURS:
        return True
    low, high = sorted((one, other))
    if low < 10:  # so small numbers have such ratios by chance
        return False
    return any(_rounded(low * factor, high) == high or _rounded(high / factor, low) == low for factor in CONVERSIONS)


def _rounded(value: float, like: int) -> int:
    """Returns a value rounded to as many digits as a number has before its zeros, but at least to a few."""
    digits = max(DIGITS_OF_CONVERTED, len(str(like).rstrip("0")))
    return round(float(f"{value:.{digits - 1}e}"))


def _items(text: str) -> Counter[str]:
    return Counter("tag" if match["tag"] else match.group() for match in ITEM.finditer(text))
