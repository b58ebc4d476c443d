"""Places brackets and quotation marks that a model has not learnt, as tags are placed: around the same words."""

from collections.abc import Mapping, Sequence

import regex

from mt.core.coded_text import Code, CodedText, Mark, nested_pairs
from mt.text.placeholders import PLACEHOLDER
from mt.text.placement import AlignmentLink
from mt.text.placing import placed

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
        translation: The translation of the source without these placeholders.
        links: The word alignment of the source without these placeholders and the translation.

    Returns:
        The translation with each of the placeholders once.
    """
    text = source.translate(dict.fromkeys(map(ord, brackets)))
    partners = bracket_pairs(list(brackets.values()))
    partners |= {closing: opening for opening, closing in partners.items()}
    codes = (
        Code(source.index(mark) - number, mark, number, partners.get(number)) for number, mark in enumerate(brackets)
    )
    others = [mark for mark in PLACEHOLDER.findall(text) if mark in translation]
    kept = [
        AlignmentLink(start, start + 1, target, target + 1)
        for start, target in ((text.index(mark), translation.index(mark)) for mark in others)
    ]
    return placed(CodedText(text, tuple(codes)), translation, links, kept).written()


def _mark(value: str) -> Mark:
    style = "".join(sorted(value.translate(_STYLES))) if BRACKET.fullmatch(value) else ""
    opens, closes = (style * (not regex.search(kind, value)) for kind in (r"\p{Pe}", r"\p{Ps}"))
    return Mark(0, 0, opens, closes)
