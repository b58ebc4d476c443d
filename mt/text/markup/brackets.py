"""Places brackets and quotation marks that a model has not learnt, as tags are placed: around the same words."""

from collections.abc import Mapping, Sequence

import regex

from mt.text.markup.extraction import Markup, insert_markup
from mt.text.markup.marks import Mark, nested_pairs
from mt.text.markup.placement import AlignmentLink, Node
from mt.text.placeholders.placeholders import PLACEHOLDER

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
    marks = list(brackets)
    positions = [source.index(mark) - index for index, mark in enumerate(marks)]
    text = source.translate(str.maketrans("", "", "".join(marks)))
    pairs = bracket_pairs(list(brackets.values()))
    nodes, inside = [Node("", "", 0, 0, len(text))], [0]
    for index, (mark, position) in enumerate(zip(marks, positions, strict=True)):
        if index in pairs.values():
            inside.pop()
        elif index in pairs:
            closing = pairs[index]
            nodes.append(Node(mark, marks[closing], inside[-1], position, positions[closing]))
            inside.append(len(nodes) - 1)
        else:
            before, after = text[:position][-1:].isspace(), text[position:][:1].isspace()
            nodes.append(Node(mark, None, inside[-1], position, position, before, after))
    others = [mark for mark in PLACEHOLDER.findall(text) if mark in translation]
    kept = [
        AlignmentLink(start, start + 1, target, target + 1)
        for start, target in ((text.index(mark), translation.index(mark)) for mark in others)
    ]
    return insert_markup(Markup("auto", text, "", "", nodes), translation, links, kept)


def _mark(value: str) -> Mark:
    style = "".join(sorted(value.translate(_STYLES))) if BRACKET.fullmatch(value) else ""
    opens, closes = (style * (not regex.search(kind, value)) for kind in (r"\p{Pe}", r"\p{Ps}"))
    return Mark(0, 0, opens, closes)
