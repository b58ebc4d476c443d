"""Places brackets and quotation marks that a model has not learned, as tags are placed: around the same words."""

from collections.abc import Mapping, Sequence

import regex

from mt.core.coded_text import Mark, coded_text, nested_pairs
from mt.text.markup_transfer import transfer_markup_untrimmed
from mt.text.placeholders import PLACEHOLDER
from mt.text.placement import AlignmentLink

BRACKET = regex.compile(r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\"'*~_]{1,3}")
"""A value of one to three brackets, quotation marks or marks of emphasis."""
_STYLES = str.maketrans(")]}）］｝”„’‚»›」』】》〉〕⟩", "([{（［｛““‘‘«‹「『【《〈〔⟨")


def bracket_pairs(values: Sequence[str]) -> dict[int, int]:
    """Map the index of each opening bracket among values to that of its closing bracket. They are properly nested."""
    return nested_pairs([_mark(value) for value in values])


def insert_brackets(source: str, brackets: Mapping[str, str], translation: str, links: Sequence[AlignmentLink]) -> str:
    """Insert the placeholders of brackets into a translation.

    Args:
        source: The source, with all its placeholders.
        brackets: The placeholders of brackets with their values, in the order of the source.
        translation: The translation of the source without these placeholders, with all others.
        links: The word alignment of the source without these placeholders and the translation.

    Returns:
        The translation with each of the placeholders once.
    """
    starts = map(source.index, brackets)
    marks = [
        _mark(value)._replace(start=start, end=start + 1)
        for start, value in zip(starts, brackets.values(), strict=True)
    ]
    coded = coded_text(source, marks)
    targets = {match[0]: match.span() for match in PLACEHOLDER.finditer(translation)}
    kept = [AlignmentLink(*match.span(), *targets[match[0]]) for match in PLACEHOLDER.finditer(coded.text)]
    return transfer_markup_untrimmed(coded, translation, links, kept).written()


def _mark(value: str) -> Mark:
    style = "".join(sorted(value.translate(_STYLES))) if BRACKET.fullmatch(value) else ""
    opens, closes = (style * (not regex.search(kind, value)) for kind in (r"\p{Pe}", r"\p{Ps}"))
    return Mark(0, 0, opens, closes)
