"""Finds the words of a translation that render terms of its source: target forms, or else what alignment links to a
term."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, pairwise, product

import regex

from mt.text.markup.placement import AlignmentLink
from mt.text.normalization.casing import with_capital
from mt.text.placeholders.terms import WORD, Term
from mt.text.placeholders.values import LETTER, WORD_CHARACTER, Span

WORD_BORDER = regex.compile(rf"(?<!{WORD_CHARACTER})|(?!{WORD_CHARACTER})")
ELISION = regex.compile(r"['’](?!s\b)\p{L}")
"""What follows an elided word, such as an article: l'école."""
BLANK = regex.compile(r"[\s'’‐‑-]*+")
MAX_NEIGHBOURS = 2
"""The most words on a side of a linked word that may belong to the translation of the same term."""


def rendered_terms(terms: Mapping[str, Term], translation: str, language: str) -> dict[str, Span]:
    """Return the spans of a translation that are target forms of terms, one at most for each term.

    Args:
        terms: The terms by their placeholders.
        translation: The translation of a source in which the terms are words.
        language: The target language.
    """
    spans: dict[str, Span] = {}
    forms = sorted(((form, token) for token in terms for form in terms[token].forms), key=lambda own: -len(own[0]))
    for form, token in forms:
        free = [span for span in _occurrences(form, translation, language) if is_free(span, spans.values())]
        if free and token not in spans:
            spans[token] = free[0]
    return spans


def places_for(term: Span, translation: str, links: Sequence[AlignmentLink], taken: Iterable[Span]) -> list[Span]:
    """Return the spans of a translation that may render a term, the most probable first; none if nothing is linked to
    the term.

    These are the words that are linked to it, alone or with neighbours that nothing is linked to: ``mal de`` in front
    of ``tête``.

    Args:
        term: The span of the term in the source.
        translation: The translation.
        links: The word alignment of source and translation.
        taken: Spans of the translation that render other terms.
    """
    words = [
        word.span()
        for word in WORD.finditer(translation)
        if LETTER.match(word[0]) and is_free(word.span(), taken) and not ELISION.match(translation, word.end())
    ]
    by_word = [[link for link in links if link.target_start < end and link.target_end > start] for start, end in words]
    is_linked = [any(link.source_start < term[1] and link.source_end > term[0] for link in own) for own in by_word]
    # Whether only a blank or hyphen is between a word and the one before it.
    continues = [False] + [BLANK.fullmatch(translation, end, start) for (_, end), (start, _) in pairwise(words)]
    runs: list[list[int]] = []
    for n in compress(range(len(words)), is_linked):
        if runs and runs[-1][-1] == n - 1 and continues[n]:
            runs[-1].append(n)
        else:
            runs.append([n])
    if not runs:
        return []
    first, *_, last = 2 * max(runs, key=lambda run: words[run[-1]][1] - words[run[0]][0])
    starts, ends = [first], [last]
    while len(starts) <= MAX_NEIGHBOURS and continues[starts[-1]] and not by_word[starts[-1] - 1]:
        starts.append(starts[-1] - 1)
    while len(ends) <= MAX_NEIGHBOURS and (continues[1:] + [False])[ends[-1]] and not by_word[ends[-1] + 1]:
        ends.append(ends[-1] + 1)
    return [(words[start][0], words[end][1]) for start, end in product(starts, ends)]


def _occurrences(form: str, text: str, language: str) -> Iterator[Span]:
    """Yield the spans at which a text has a form as whole words, perhaps with a capital."""
    for spelling in dict.fromkeys((form, with_capital(form, language))):
        start = text.find(spelling)
        while start >= 0:
            end = start + len(spelling)
            if WORD_BORDER.match(text, start) and WORD_BORDER.match(text, end):
                yield start, end
            start = text.find(spelling, end)


def is_free(span: Span, taken: Iterable[Span]) -> bool:
    return all(end <= span[0] or start >= span[1] for start, end in taken)
