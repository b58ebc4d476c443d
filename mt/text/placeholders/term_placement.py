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


def rendered_terms(
    terms: Mapping[str, Term], translation: str, language: str
) -> tuple[dict[str, Span], dict[str, Span]]:
    """Return the spans of a translation that are target forms of terms, and those of terms that were left untranslated,
    such as names. Each term has one span at most.

    Args:
        terms: The terms by their placeholders.
        translation: The translation of a source in which the terms are words.
        language: The target language.
    """
    forms = [(form, token) for token in terms for form in terms[token].forms]
    spans: dict[str, Span] = {}
    rendered: list[dict[str, Span]] = []
    for texts in (forms, [(term.plain, token) for token, term in terms.items()]):
        before = set(spans)
        for text, token in sorted(texts, key=lambda own: -len(own[0])):
            free = [span for span in _occurrences(text, translation, language) if _is_free(span, spans.values())]
            if free and token not in spans:
                spans[token] = free[0]
        rendered.append({token: span for token, span in spans.items() if token not in before})
    return rendered[0], rendered[1]


def linked_words(term: Span, translation: str, links: Sequence[AlignmentLink], occupied: Iterable[Span]) -> Span | None:
    """Return the longest run of words in a translation that are linked to a term; None if none is.

    Args:
        term: The span of the term in the source.
        translation: The translation.
        links: The word alignment of source and translation.
        occupied: Spans of the translation that render other terms.
    """
    runs: list[Span] = []
    linked = (link for link in links if link.source_start < term[1] and link.source_end > term[0])
    for start, end in sorted({(link.target_start, link.target_end) for link in linked}):
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
