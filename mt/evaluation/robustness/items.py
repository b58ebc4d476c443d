"""Draws items that a translation must keep unchanged, such as numbers and URLs, and finds them in translations."""

import re
from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np

from mt.core.language import SCRIPTS, base_language

Kind = Literal["number", "price", "code", "url", "email", "emoji", "placeholder"]
ITEM_KINDS: tuple[Kind, ...] = get_args(Kind)
DESCRIPTIONS: dict[Kind, str] = {
    "number": "A number of five digits",
    "price": "A price such as 19.99",
    "code": "A code such as B-207",
    "url": "A URL",
    "email": "An e-mail address",
    "emoji": "An emoji",
    "placeholder": "A placeholder such as {name}, %d, ${USER} or {{count}}",
}
"""Each kind of item → its description in the report."""

NAMES = "anna", "ben", "clara", "david", "emma", "felix"
SURNAMES = "berg", "lopez", "novak", "rossi", "smith", "weber"
PAGES = "about", "help", "news", "shop", "start", "team"
EMOJI = "😀", "😂", "👍", "🎉", "🙏", "🔥", "😢", "🚀"
PLACEHOLDERS = "{name}", "%d", "%s", "${USER}", "{{count}}", "{0}", "%(total)s"
DECIMAL_COMMA = {
    "af", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fr", "gl", "hr", "hu", "hy", "id",
    "is", "it", "ka", "kk", "lt", "lv", "mk", "nb", "nl", "nn", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr",
    "sv", "tr", "uk", "vi",
}  # fmt: skip
"""The languages that write 19,99 for 19.99."""

_LETTERS = "".join(script.letters for script in SCRIPTS)
UNDIVIDED = re.compile(f"[{_LETTERS}]")
"""A letter that may stand directly beside an item: one of a script without spaces between words, such as Chinese and
Thai, or one of Korean, which adds particles to words."""
_IN_WORD = rf"[^\W{_LETTERS}]"
"""A digit, underscore or letter beside an item, which makes it part of a longer word."""
_BEFORE_WORD = re.compile(rf"(?<!{_IN_WORD})(?<!{_IN_WORD}[./@_-])(?<!\d[,:])")
"""Matches the start of an item that begins with a letter or a digit."""
_BEFORE_SIGN = re.compile(r"(?<![{$%])")
_AFTER_WORD = re.compile(rf"(?!{_IN_WORD}|[./@_]{_IN_WORD}|[,:-]\d)")
"""Matches the end of an item that ends with a letter or a digit. Letters may follow a hyphen or colon, because some
languages add endings so: B-207-et, 19,99:n."""
_AFTER_BRACE = re.compile(r"(?!\})")
_ANYTHING = re.compile("")


def draw_item(kind: Kind, random: np.random.Generator, source_language: str, target_language: str) -> tuple[str, ...]:
    """Draw a random item of a kind.

    Returns:
        The spellings that count as the item in a translation. The first one is for the source sentence. Only a price
        can have a second one, that of the target language: 19.99 and 19,99.
    """

    def choose(choices: tuple[str, ...]) -> str:
        return choices[int(random.integers(len(choices)))]

    match kind:
        case "number":
            return (str(random.integers(10_000, 100_000)),)
        case "price":
            units, cents = random.integers(2, 100), random.integers(100)
            points = [
                "," if base_language(code) in DECIMAL_COMMA else "." for code in (source_language, target_language)
            ]
            return tuple(dict.fromkeys(f"{units}{point}{cents:02}" for point in points))
        case "code":
            return (f"{chr(ord('A') + int(random.integers(26)))}-{random.integers(100, 1000)}",)
        case "url":
            return (f"https://www.example.org/{choose(PAGES)}/{random.integers(1, 100)}",)
        case "email":
            return (f"{choose(NAMES)}.{choose(SURNAMES)}@example.org",)
        case "emoji":
            return (choose(EMOJI),)
        case "placeholder":
            return (choose(PLACEHOLDERS),)


def find_item(text: str, forms: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the start and end of an item in a text, or None unless the text has it exactly once.

    An item does not count inside something longer: 12345 in 123456, in 12345,6 or in A12345; a URL in a longer URL;
    {name} in {{name}}.

    Args:
        forms: The spellings of the item, as ``draw_item`` returns them.
    """
    if sum(text.count(form) for form in forms) != 1:
        return None
    return next(_occurrences(text, forms), None)


def without_item(text: str, forms: tuple[str, ...]) -> str:
    """Return a text without the first complete occurrence of an item and the blanks in front of it.

    A text without the item is returned as it is.

    Args:
        forms: The spellings of the item, as ``draw_item`` returns them.
    """
    start, end = min(_occurrences(text, forms), default=(0, 0))
    return (text[:start].rstrip() + text[end:]).strip() if end else text


def _occurrences(text: str, forms: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each occurrence of an item that is not part of something longer: first those of
    ``forms[0]``, then those of the next."""
    for form in forms:
        start = text.find(form)
        while start >= 0:
            end = start + len(form)
            before = _BEFORE_WORD if re.match(r"\w", form[0]) else _BEFORE_SIGN if form[0] in "{$%" else _ANYTHING
            after = _AFTER_WORD if re.match(r"\w", form[-1]) else _AFTER_BRACE if form[-1] == "}" else _ANYTHING
            if before.match(text, start) and after.match(text, end):
                yield start, end
            start = text.find(form, start + 1)
