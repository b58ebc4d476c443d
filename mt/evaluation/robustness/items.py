"""Draws items that a translation must keep unchanged, such as numbers and URLs, and finds them in translations."""

import numpy as np

from mt.text.numbers import find_numbers
from mt.text.placeholders.intact import find_value
from mt.text.placeholders.shared_values import is_plain_number

ITEM_KINDS = {
    "number": "A number of five digits",
    "price": "A price such as 19.99 or 19,99",
    "code": "A code such as B-207",
    "url": "A URL",
    "email": "An e-mail address",
    "emoji": "An emoji",
    "placeholder": "A placeholder such as {name}, %d, ${USER} or {{count}}",
}
"""Each kind of item → its description in the report."""

NAMES = "anna", "ben", "clara", "david", "emma", "felix"
SURNAMES = "berg", "lopez", "novak", "rossi", "smith", "weber"
DECIMAL_SEPARATORS = ".", ","
PAGES = "about", "help", "news", "shop", "start", "team"
EMOJI = "😀", "😂", "👍", "🎉", "🙏", "🔥", "😢", "🚀"
PLACEHOLDERS = "{name}", "%d", "%s", "${USER}", "{{count}}", "{0}", "%(total)s"


def draw_item(kind: str, random: np.random.Generator) -> str:
    """Draw a random item of a kind in ITEM_KINDS."""
    match kind:
        case "number":
            return str(random.integers(10_000, 100_000))
        case "price":
            return f"{random.integers(2, 100)}{random.choice(DECIMAL_SEPARATORS)}{random.integers(100):02}"
        case "code":
            return f"{chr(ord('A') + int(random.integers(26)))}-{random.integers(100, 1000)}"
        case "url":
            return f"https://www.example.org/{random.choice(PAGES)}/{random.integers(1, 100)}"
        case "email":
            return f"{random.choice(NAMES)}.{random.choice(SURNAMES)}@example.org"
        case "emoji":
            return str(random.choice(EMOJI))
        case _:
            return str(random.choice(PLACEHOLDERS))


def find_item(text: str, item: str) -> tuple[int, int] | None:
    """Return the start and end of an item in a text, or None unless the text has it exactly once."""
    spans = _spans(text, item)
    return spans[0] if len(spans) == 1 else None


def without_item(text: str, item: str) -> str:
    """Return a text without the first occurrence of an item and the blanks in front of it.

    A text without the item is returned as it is.
    """
    start, end = min(_spans(text, item), default=(0, 0))
    return (text[:start].rstrip() + text[end:]).strip() if end else text


def _spans(text: str, item: str) -> list[tuple[int, int]]:
    """Return the start and end of each occurrence of an item in one piece. A number may have another format."""
    if not is_plain_number(item):
        return [(start, start + len(item)) for start in find_value(item, text)]
    [(_, number)] = find_numbers(item)
    return [match.span() for match, digits in find_numbers(text) if digits == number]
