"""Finds the terms of a glossary in source text. Each travels as a placeholder, which its target term then replaces."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import regex

from mt.config.text import Terms
from mt.core.language import base_language
from mt.core.splices import Splice, apply_splices
from mt.text.normalization.casing import Case, case_of, in_capitals, in_small_letters, with_capital
from mt.text.placeholders.values import LETTER, WORD_CHARACTER, Span
from mt.text.segmentation.sentences import sentences

WORD = regex.compile(rf"(?:{WORD_CHARACTER}|\p{{M}})++|\S")
"""A word, a letter of a language without spaces, or a punctuation mark."""
_NOT_IN_WORD = rf"(?<!{WORD_CHARACTER})", rf"(?!{WORD_CHARACTER}|['’](?!s\b)\p{{L}})"
_NO_HYPHEN = rf"(?<!{WORD_CHARACTER}[-‐‑])", rf"(?![-‐‑]{WORD_CHARACTER})"
_NO_APOSTROPHE = r"(?<!\p{L}['’])"
REST = regex.compile(r"\S(?:.*\S)?")
"""What a term leaves of a value around it. Terms are line feeds."""
WORDS = regex.compile(r"[\p{L}\p{M}\s'’-]+")
SIBILANT = regex.compile(r"(?i)(?:s|x|z|ch|sh|o)$")
CONSONANT_AND_Y = regex.compile(r"(?i)(?<=[^aeiou\W])y$")


class Term(str):
    """A term as the source has it, which is a value of the text layer, with its target forms."""

    forms: tuple[str, ...]
    plain: str
    """The term as the model reads it: as it is written or, if the glossary has it in another casing, as there."""

    def __new__(cls, written: str, forms: tuple[str, ...], plain: str = "") -> "Term":
        term = super().__new__(cls, written)
        term.forms = forms
        term.plain = plain or written
        return term


class TermFinder:
    """Finds the terms of a glossary. Text layers hold one, and so do requests that bring a glossary of their own.

    The time for a text does not depend on the number of terms, because its words are looked up in a dictionary.
    """

    def __init__(self, terms: Terms, language: str) -> None:
        """
        Args:
            terms: The glossary.
            language: The source language.
        """
        self._language = language
        self._entries: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        """The first words of terms, any number → the terms that have no further words, with their forms."""
        is_english = base_language(language) == "en"
        plurals = [(plural, forms) for term, forms in terms.items() if is_english for plural in english_plurals(term)]
        for spelling, forms in (*terms.items(), *plurals):
            # STRASSE is the same word as Straße.
            for small in {in_small_letters(text, language) for text in (spelling, in_capitals(spelling, language))}:
                entries, key = [], ""
                for word, _ in _words(small):
                    key += word
                    entries = self._entries.setdefault(key, [])
                entries.append((_plain(spelling), forms))
        before = _NOT_IN_WORD[0] + (_NO_APOSTROPHE if is_english else "")
        self._borders = [regex.compile(before), regex.compile(_NOT_IN_WORD[1])]
        self._hyphens = list(map(regex.compile, _NO_HYPHEN))

    def find(self, text: str) -> list[tuple[Span, Term]]:
        """Return the terms in a text with their spans, from left to right. Of several that overlap, the longest counts;
        of those of one length, the first."""
        small = in_small_letters(text, self._language)
        if self._entries.keys().isdisjoint(WORD.findall(small)):
            return []
        words = _words(small)
        line = _Line(text, self._language)
        candidates: list[tuple[Span, Term]] = []
        for first, (_, (start, _)) in enumerate(words):
            key = ""
            for index in range(first, len(words)):
                key = (key + words[index][0]).lstrip()
                if key not in self._entries:
                    break
                span = start, words[index][1][1]
                if term := self._term(self._entries[key], span, line):
                    candidates.append((span, term))
        terms: list[tuple[Span, Term]] = []
        occupied = set[int]()
        for span, term in sorted(candidates, key=lambda candidate: -len(candidate[1])):
            if occupied.isdisjoint(range(*span)):
                occupied.update(range(*span))
                terms.append((span, term))
        return sorted(terms, key=lambda term: term[0])

    def _term(self, entries: Sequence[tuple[str, tuple[str, ...]]], span: Span, line: "_Line") -> Term | None:
        """Return the term at a span; None if none of these terms is written so, or it is a part of a longer word.

        A term in small letters may be in capitals, or begin with a capital at the start of a sentence and in a line in
        title case. If it has several words, it may do so anywhere. In a line in capitals, all terms may be.
        """
        if not entries or not _match(self._borders, line.text, span):
            return None
        text, language = line.text[slice(*span)], self._language
        written, is_in_hyphens = _plain(text), not _match(self._hyphens, line.text, span)
        for spelling, forms in sorted(entries, key=lambda entry: entry[0] != written):
            is_small = spelling == in_small_letters(spelling, language)
            if written == spelling and not (is_small and is_in_hyphens):
                return Term(text, forms)
            if is_in_hyphens:
                continue
            begins = line.is_start(span[0])
            if written == in_capitals(spelling, language):
                is_same = line.case is Case.CAPITALS or (is_small and (begins or len(written) > 1))
            else:
                is_same = in_small_letters(written, language) == spelling and (
                    begins or line.case is Case.TITLE or " " in spelling
                )
            if is_same:
                return Term(text, forms, with_capital(spelling, language) if begins else spelling)
        return None


class _Line:
    """A text, with the properties that only some terms in it need."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self._language = language

    @cached_property
    def case(self) -> Case | None:
        return case_of(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(map(len, sentences(self.text, self._language)), initial=0))

    def is_start(self, position: int) -> bool:
        """Return whether the first word of a sentence begins at a position."""
        start = self._starts[bisect_right(self._starts, position) - 1]
        return LETTER.search(self.text, start, position) is None


def english_plurals(term: str) -> Iterator[str]:
    """Yield the regular plurals of an English noun, or of a phrase that ends with it. Other terms have none."""
    if not term[-1].isalpha() or len(term) < 2:
        return
    if CONSONANT_AND_Y.search(term):
        yield f"{term[:-1]}ies"
    elif SIBILANT.search(term):
        yield f"{term}es"
    if not SIBILANT.search(term) or term[-1] in "oO":
        yield f"{term}s"


def _words(text: str) -> list[tuple[str, Span]]:
    """Return the words of a text, behind a blank if there is white space, with their spans."""
    end = 0
    words = []
    for match in WORD.finditer(text.replace("’", "'")):
        words.append((match[0] if match.start() == end else f" {match[0]}", match.span()))
        end = match.end()
    return words


def _plain(text: str) -> str:
    return regex.sub(r"\s+", " ", text.replace("’", "'"))


def _match(borders: Sequence[regex.Pattern[str]], text: str, span: Span) -> bool:
    """Return whether the text matches a pattern at the start of a span, and another one at its end."""
    return all(border.match(text, position) for border, position in zip(borders, span, strict=True))


def values_with_terms(text: str, spans: Sequence[Span], finders: Sequence[TermFinder]) -> list[tuple[Span, str]]:
    """Return the values of a text with their spans, in order: the terms, and the values that are no part of one.

    A term that overlaps a value counts only if it contains the value, or if the value consists of words, such as those
    of a language that the model does not know.

    Args:
        text: The text.
        spans: The spans of the values that are not terms.
        finders: The finders of terms. The terms of the first one come first.
    """
    span_at = {position: span for span in spans for position in range(*span)}
    divisible = {span for span in spans if WORDS.fullmatch(text, *span)}
    values: dict[Span, str] = {}
    occupied = set[int]()
    for finder in finders:
        for (start, end), term in finder.find(text):
            touched = {span_at[position] for position in range(start, end) if position in span_at}
            if occupied.isdisjoint(range(start, end)) and all(
                span in divisible or (start <= span[0] and span[1] <= end) for span in touched
            ):
                occupied.update(range(start, end))
                values[start, end] = term
    outside = apply_splices(text, [Splice(start, end, "\n" * (end - start)) for start, end in sorted(values)])
    for span in spans:
        rests = [span] if occupied.isdisjoint(range(*span)) else (rest.span() for rest in REST.finditer(outside, *span))
        values |= {rest: text[slice(*rest)] for rest in rests}
    return sorted(values.items())
