"""Inserts brackets and quotation marks into translations whose model has not learned them, around the same words.

They are inserted like tags, by word alignment (``mt.text.markup_transfer``).
"""

from collections.abc import Mapping, Sequence

import regex

from mt.core.coded_text import Mark, coded_text, nested_pairs
from mt.text.markup_transfer import transfer_markup_untrimmed
from mt.text.placeholders import PLACEHOLDER
from mt.text.placement import AlignmentLink

BRACKET = regex.compile(r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\"'*~_]{1,3}")
"""A value of one to three brackets, quotation marks or emphasis characters of Markdown."""
_OPENING_FORMS = str.maketrans(")]}）］｝”„’‚»›」』】》〉〕⟩", "([{（［｛““‘‘«‹「『【《〈〔⟨")


def bracket_pairs(values: Sequence[str]) -> dict[int, int]:
    """Map the index of each opening bracket among values to the index of its closing bracket. Pairs do not cross."""
    return nested_pairs([_bracket_mark(value) for value in values])


def insert_brackets(source: str, brackets: Mapping[str, str], translation: str, links: Sequence[AlignmentLink]) -> str:
    """Insert the placeholders of brackets into a translation.

    Args:
        source: The source, with all its placeholders.
        brackets: The placeholders of brackets with their values, in the order of the source.
        translation: The translation, with all placeholders of the source but those of brackets.
        links: The word alignment of the source without the placeholders of brackets, and the translation.

    Returns:
        The translation with each of the placeholders once.
    """
    starts = map(source.index, brackets)
    marks = [
        _bracket_mark(value)._replace(start=start, end=start + 1)
        for start, value in zip(starts, brackets.values(), strict=True)
    ]
    coded = coded_text(source, marks)
    targets = {match[0]: match.span() for match in PLACEHOLDER.finditer(translation)}
    kept = [AlignmentLink(*match.span(), *targets[match[0]]) for match in PLACEHOLDER.finditer(coded.text)]
    return transfer_markup_untrimmed(coded, translation, links, kept).written()


def _bracket_mark(value: str) -> Mark:
    """Return a mark that opens or closes a pair of brackets of the same kind. Any other value does neither."""
    kind = "".join(sorted(value.translate(_OPENING_FORMS))) if BRACKET.fullmatch(value) else ""
    opens = "" if regex.search(r"\p{Pe}", value) else kind
    return Mark(0, 0, opens, "" if regex.search(r"\p{Ps}", value) else kind)
