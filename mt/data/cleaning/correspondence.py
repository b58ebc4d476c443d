"""Compare the parts of a pair that both sides should have in common: numbers, links, tags and placeholders."""

from collections import Counter

import regex

from mt.text.numbers import DAY, HALF_DAY, find_numbers
from mt.text.placeholders.kinds import KINDS

CONVERSIONS = (1 / 0.3048, 1 / 0.4047, 1 / 0.4536, 1.609, 2.54)
"""Feet in a metre, acres in a hectare, pounds in a kilogram, kilometres in a mile, centimetres in an inch. Translators
convert measures for their readers."""
MIN_CONVERTED = 10
"""The smallest number that can be a converted measure. Smaller numbers have the ratios in CONVERSIONS by chance."""
MIN_CONVERTED_DIGITS = 2
"""The number of leading digits that must be right in a converted measure. The others may be rounded to zeros."""
DIGITS = regex.compile(r"\d+")
MAX_DIGITS = 15

TAG = r"</?[A-Za-z][A-Za-z0-9]{0,20}(?:\s[^<>]{0,200}=[^<>]{0,1000})?\s?/?>|<!--[^<>]{0,1000}-->"
"""A pattern for a tag of HTML or XML. Its attributes must have values, so <file object> in a text is no tag."""
COMPARED_KINDS = (
    "entity", "placeholder in braces", "directive", "link", "e-mail address",
)  # fmt: skip
ITEM = regex.compile(f"(?P<tag>{TAG})|" + "|".join(KINDS[name] for name in COMPARED_KINDS))
MAY_HOLD_ITEMS = regex.compile(r"[<&{%@]|://|www\.")
"""Matches in every text with an item. A text without a match is not searched further, which saves time."""


def numbers_differ(source: str, target: str) -> bool:
    """Return whether a number of the source was probably mistranslated as another number.

    Numbers that both sides have are ignored, also if they are grouped differently (1,250 and 1 250). The result is True
    only if both sides have equally many other numbers, with equally many digits, and none of them can be the same hour
    or the same measure in other units. Otherwise a number may be missing because it is written in words (6:30, halb
    sieben).
    """
    if sorted(DIGITS.findall(source)) == sorted(DIGITS.findall(target)):
        return False  # which saves time
    left, right = _numbers(source), _numbers(target)
    left, right = left - right, right - left
    if not left or sorted(len(str(number)) for number in left.elements()) != sorted(
        len(str(number)) for number in right.elements()
    ):
        return False
    return not any(_may_be_equal(number, other) for number in left for other in right)


def items_differ(source: str, target: str) -> bool:
    """Return whether one side has a link, an e-mail address, a tag, an entity or a placeholder that the other side
    lacks. Of tags, only the number is compared, because their attributes may be translated.
    """
    if not (MAY_HOLD_ITEMS.search(source) or MAY_HOLD_ITEMS.search(target)):
        return False
    return _items(source) != _items(target)


def _numbers(text: str) -> Counter[int]:
    """Return the numbers in a text, and how often each occurs. The digits after a decimal separator are another number.
    Numbers of more than MAX_DIGITS digits are left out."""
    return Counter(int(part) for _, digits in find_numbers(text) for part in digits if len(part) <= MAX_DIGITS)


def _may_be_equal(number: int, other: int) -> bool:
    """Return whether two different numbers can mean the same hour, or the same measure in other units."""
    low, high = sorted((number, other))
    if high - low == HALF_DAY and high <= DAY:
        return True
    return low >= MIN_CONVERTED and any(
        _round_like(high, low * factor) == high or _round_like(low, high / factor) == low for factor in CONVERSIONS
    )


def _round_like(number: int, value: float) -> int:
    """Return a value rounded to as many digits as ``number`` has before its final zeros, but at least to
    MIN_CONVERTED_DIGITS."""
    digits = max(MIN_CONVERTED_DIGITS, len(str(number).rstrip("0")))
    return round(float(f"{value:.{digits - 1}e}"))


def _items(text: str) -> Counter[str]:
    """Return the items in a text, and how often each occurs. All tags count as the same item."""
    return Counter("tag" if match["tag"] else match.group() for match in ITEM.finditer(text))
