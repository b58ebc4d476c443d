"""Translates the separate texts of lines of HTML, such as the links of a menu, one by one."""

from collections.abc import Callable, Sequence

from mt.text.markup.tags import MarkupKind, cut_into_blocks
from mt.translation.results import ScoredText

Translate = Callable[..., list[list[ScoredText]]]
"""Returns the translation of each line, given the lines, their numbers and, as ``markup``, the kinds of their tags."""


def cut_into_pieces(lines: Sequence[str], markup: Sequence[MarkupKind | None]) -> list[list[str]]:
    """Return the pieces of each line, whose texts are at even indices; see ``cut_into_blocks``."""
    return [cut_into_blocks(line) if kind == "html" else [line] for line, kind in zip(lines, markup, strict=True)]


def translate_pieces(
    pieces: Sequence[list[str]], numbers: Sequence[int], markup: Sequence[MarkupKind | None], translate: Translate
) -> list[list[ScoredText]]:
    """Return the one translation of each line, given its pieces. A line of several pieces has no score."""
    rows = [row for row, own in enumerate(pieces) for piece in own[::2] if len(own) == 1 or piece.strip()]
    texts = [piece for own in pieces for piece in own[::2] if len(own) == 1 or piece.strip()]
    remaining = iter(translate(texts, [numbers[row] for row in rows], markup=[markup[row] for row in rows]))
    translations: list[list[ScoredText]] = []
    for own in pieces:
        if len(own) == 1:
            translations.append(next(remaining))
            continue
        parts = [
            piece if number % 2 or not piece.strip() else next(remaining)[0].text for number, piece in enumerate(own)
        ]
        translations.append([ScoredText("".join(parts), None)])
    return translations
