"""Finds the values, such as numbers and URLs, that occur on both sides of a pair, even if written differently."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mt.core.splices import Span
from mt.text.numbers import NUMBER, find_numbers, in_ascii

SAME_SIGNS = str.maketrans("−٪", "-%")


class Replacement(NamedTuple):
    """A source word and its translation. In a training pair, one placeholder replaces both."""

    source: str
    target: str
    is_number: bool
    """Whether the placeholder is one for plain numbers."""


class SharedValue(NamedTuple):
    """The position of a value in the source and in the target of a pair."""

    source: Span
    target: Span
    is_number: bool
    """Whether it gets a placeholder for numbers."""


def shared_values(
    texts: Sequence[str], finders: Sequence[Callable[[str], list[Span]]], replacements: Sequence[Replacement]
) -> list[SharedValue]:
    """Return the values that occur equally often on both sides, in the order of the source.

    Args:
        texts: The source and the target.
        finders: For the source and for the target, a function that returns the spans of a text's values.
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
    """Return whether a value gets a placeholder for numbers: 3 or 1,249.99, but neither $5 nor 10:30."""
    return NUMBER.fullmatch(in_ascii(value)) is not None


def _spans_by_key(text: str, spans: Sequence[Span], words: Sequence[str]) -> defaultdict[str | int, list[Span]]:
    """Map the key of each value to the spans of all equal values, and the index of each word to its span.

    A word that overlaps a value is left out.
    """
    keyed: list[tuple[Span, str | int]] = [(span, _key(text[slice(*span)])) for span in spans]
    for index, word in enumerate(words):
        start = text.index(word)
        keyed.append(((start, start + len(word)), index))
    by_key = defaultdict(list)
    end = 0
    for span, key in sorted(keyed, key=lambda item: (item[0][0], -item[0][1])):
        if span[0] >= end:  # a word may lie inside a value, also at its beginning
            by_key[key].append(span)
            end = span[1]
    return by_key


def _key(value: str) -> str:
    """Return a key that is the same for equal values: those with the same numbers, and the same text around them.

    A currency or other sign may stand before or after a number, and blanks are ignored.
    """
    digits = (part for _, digits in find_numbers(value) for part in digits)
    text = "".join(NUMBER.sub("0", in_ascii(value)).split()).translate(SAME_SIGNS)
    has_letters = any(map(str.isalpha, text))
    return " ".join([*digits, text if has_letters else "".join(sorted(text))])
