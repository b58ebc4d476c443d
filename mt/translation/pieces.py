"""Translates the separate texts of lines of HTML, such as the links of a menu, one by one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mt.text.markup.tags import MarkupKind, cut_into_blocks
from mt.text.placeholders.messages import MESSAGE
from mt.translation.results import LINE_BREAKS, ScoredText


def cut_into_pieces(lines: Sequence[str], markup: Sequence[MarkupKind | None]) -> list[list[str]]:
    """Return the pieces of lines, whose texts are at even indices; see ``cut_into_blocks``. Messages are not cut."""
    return [
        cut_into_blocks(line) if kind == "html" and not MESSAGE.search(line) else [line]
        for line, kind in zip(lines, markup, strict=True)
    ]


def translate_pieces(
    pieces: Sequence[list[str]],
    columns: Mapping[str, Sequence[Any] | None],
    translate: Callable[..., list[list[ScoredText]]],
) -> list[list[ScoredText]]:
    """Return the one translation of each line, given its pieces. A line of several pieces has no score, and
    the lowest confidence of its pieces, unless the glossary inserted a term into one.

    Args:
        pieces: The pieces of each line.
        columns: Further arguments of ``translate`` that have a value for each line, by name.
        translate: Returns the translations of texts.
    """
    rows = [row for row, own in enumerate(pieces) for piece in own[::2] if len(own) == 1 or piece.strip()]
    texts = [piece for own in pieces for piece in own[::2] if len(own) == 1 or piece.strip()]
    arguments = {name: values and [values[row] for row in rows] for name, values in columns.items()}
    remaining = iter(translate(texts, **arguments))
    translations: list[list[ScoredText]] = []
    for own in pieces:
        if len(own) == 1:
            translations.append(next(remaining))
            continue
        parts = [
            ScoredText(LINE_BREAKS.sub(" ", piece), None) if number % 2 or not piece.strip() else next(remaining)[0]
            for number, piece in enumerate(own)
        ]
        is_source = any(part.is_source for part in parts)
        has_inserted_term = any(part.has_inserted_term for part in parts)
        known = [part.confidence for part in parts if part.confidence is not None and not has_inserted_term]
        text = "".join(part.text for part in parts)
        translations.append([ScoredText(text, None, None, is_source, min(known, default=None), has_inserted_term)])
    return translations
