"""Values such as numbers and links that stand on both sides of a pair, though perhaps written differently."""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import regex

from mt.text.placeholders.values import Span

QUANTITY = regex.compile(r"[\p{Sc}+−±-]?\s?\d[\d.,'’٫٬．，\s]*[\p{Sc}%٪‰°]?")
BLANK_BEFORE_UNIT = regex.compile(r"(?<=\d)\s(?=[^\W\d]|°)")
DIGITS = regex.compile(r"\d+")
PLAIN_NUMBER = regex.compile(r"\d{1,3}(?:[.,'’٫٬\u00a0\u202f\u2009 ]\d{3})+(?:[.,٫]\d+)?|\d+(?:[.,٫]\d+)?")
"""A number that counts or measures what follows it: 3, 1,249.99, but neither $5 nor 10:30."""


class Replacement(NamedTuple):
    """A word of a source and its translation, which a placeholder replaces."""

    source: str
    target: str
    is_number: bool
    """Whether it is a placeholder for a number."""


class SharedValue(NamedTuple):
    """A value that stands on both sides."""

    source: Span
    target: Span
    is_number: bool
    """Whether it gets a placeholder for numbers."""


def shared_values(
    texts: Sequence[str], finders: Sequence[Callable[[str], list[Span]]], replacements: Sequence[Replacement]
) -> list[SharedValue]:
    """Return the values that stand on both sides equally often, in the order of the source.

    Args:
        texts: The source and the target.
        finders: Find the values of each.
        replacements: Words that count as values, too, unless they lie inside one. Each occurs once on its side.
    """
    source, target = texts
    sources = _spans_by_key(source, finders[0](source), [words.source for words in replacements])
    if not sources:
        return []
    targets = _spans_by_key(target, finders[1](target), [words.target for words in replacements])
    return sorted(
        SharedValue(
            *spans, replacements[key].is_number if isinstance(key, int) else is_plain_number(source[slice(*spans[0])])
        )
        for key in sources
        if len(sources[key]) == len(targets[key])
        for spans in zip(sources[key], targets[key], strict=True)
    )


def is_plain_number(value: str) -> bool:
    """Return whether a value gets a placeholder for numbers."""
    return PLAIN_NUMBER.fullmatch(value) is not None


def _spans_by_key(text: str, spans: Sequence[Span], words: Sequence[str]) -> defaultdict[str | int, list[Span]]:
    """Return the spans of equal values by their key, and the span of each word by its index."""
    keyed: list[tuple[Span, str | int]] = [(span, _key(text[slice(*span)])) for span in spans]
    for index, word in enumerate(words):
        start = text.index(word)
        keyed.append(((start, start + len(word)), index))
    by_key = defaultdict(list)
    end = 0
    for span, key in sorted(keyed, key=lambda each: (each[0][0], -each[0][1])):
        if span[0] >= end:  # a word may lie inside a value, also at its beginning
            by_key[key].append(span)
            end = span[1]
    return by_key


def _key(value: str) -> str:
    """Return a text that equal values have in common.

    Numbers are equal if their digits are, whatever stands between the groups of three: 1,249.99 and 1 249,99. But 1.5
    is not 15. A currency may stand before or after a number, and a blank may stand before a unit or not.
    """
    if not QUANTITY.fullmatch(value):
        return BLANK_BEFORE_UNIT.sub("", value)
    value = value.replace("−", "-").replace("٪", "%")
    groups = DIGITS.findall(value)
    decimals = len(groups[-1]) if len(groups) > 1 and len(groups[-1]) != 3 else 0
    signs = sorted(sign for sign in value if unicodedata.category(sign) in ("Sc", "So", "Sm") or sign in "%‰-")
    return "".join([*(str(unicodedata.decimal(digit)) for digit in "".join(groups)), f":{decimals}", *signs])
