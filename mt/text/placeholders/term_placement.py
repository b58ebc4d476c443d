"""Finds the words of a translation that render terms of its source: target forms, or else words that
alignment links to a term."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import regex

from mt.text.markup.placement import AlignmentLink
from mt.text.normalization.casing import with_capital
from mt.text.placeholders.terms import Term
from mt.text.placeholders.values import LETTER, WORD_CHARACTER, Span

WORD_BORDER = regex.compile(rf"(?<!{WORD_CHARACTER})|(?!{WORD_CHARACTER})")
ELISION = regex.compile(r"['’](?!s\b)\p{L}")
"""What follows an elided word, such as an article: l'école."""
BLANK = regex.compile(r"[\s'’‐‑-]*+")
"""What may be between the words of one term."""


def rendered_terms(terms: Mapping[str, Term], translation: str, language: str) -> dict[str, Span]:
    """Return the spans of a translation that are target forms of terms, or else terms that were left untranslated, such
    as names. Each term has one span at most.

    Args:
        terms: The terms by their placeholders.
        translation: The translation of a source in which the terms are words.
        language: The target language.
    """
    forms = [(form, token) for token, term in terms.items() for form in term.forms]
    names = [(term.plain, token) for token, term in terms.items()]
    spans: dict[str, Span] = {}
    for texts in (forms, names):
        for text, token in sorted(texts, key=lambda own: -len(own[0])):
            if token not in spans:
                occurrences = _occurrences(text, translation, language)
                free = next((span for span in occurrences if _is_free(span, spans.values())), None)
                spans |= {token: free} if free else {}
    return spans


def linked_words(
    position: int, translation: str, links: Sequence[AlignmentLink], occupied: Iterable[Span]
) -> Span | None:
    """Return the longest run of words in a translation that are linked to a term; None if none is.

    Args:
        position: The position of the term's placeholder in the source.
        translation: The translation.
        links: The word alignment of source and translation.
        occupied: Spans of the translation that render other terms.
    """
    runs: list[Span] = []
    linked = {(link.target_start, link.target_end) for link in links if link.source_start <= position < link.source_end}
    for start, end in sorted(linked):
        is_word = LETTER.search(translation, start, end) and not ELISION.match(translation, end)
        if is_word and _is_free((start, end), occupied):
            if runs and BLANK.fullmatch(translation, runs[-1][1], start):
                runs[-1] = runs[-1][0], end
            else:
                runs.append((start, end))
    return max(runs, key=lambda run: run[1] - run[0], default=None)


def _occurrences(form: str, text: str, language: str) -> Iterator[Span]:
    """Yield the spans at which a text has a form as whole words, perhaps with a capital."""
    for spelling in dict.fromkeys((form, with_capital(form, language))):
        start = text.find(spelling)
        while start >= 0:
            end = start + len(spelling)
            if WORD_BORDER.match(text, start) and WORD_BORDER.match(text, end):
                yield start, end
            start = text.find(spelling, end)


def _is_free(span: Span, occupied: Iterable[Span]) -> bool:
    return all(end <= span[0] or start >= span[1] for start, end in occupied)
