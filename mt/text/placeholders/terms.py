"""Finds the terms of a glossary in source text. Each travels as a placeholder, which its target term then replaces."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import regex

from mt.config.text import Terms
from mt.core.language import base_language
from mt.text.normalization.casing import in_capitals, in_small_letters, is_in_title_case, with_capital
from mt.text.placeholders.shared_values import Replacement
from mt.text.placeholders.values import LETTER, WORD_CHARACTER, Span
from mt.text.segmentation.sentences import sentences

WORD = regex.compile(rf"(?:{WORD_CHARACTER}|\p{{M}})++|\S")
"""A word, a letter of a language without spaces, or a punctuation mark."""
_NOT_IN_WORD = rf"(?<!{WORD_CHARACTER})", rf"(?!{WORD_CHARACTER}|['’](?!s\b)\p{{L}})"
_NO_HYPHEN = rf"(?<!{WORD_CHARACTER}[-‐‑])", rf"(?![-‐‑]{WORD_CHARACTER})"
_NO_APOSTROPHE = r"(?<!\p{L}['’])"
TRIMMED = regex.compile(r"\S(?:.*\S)?")
WORDS = regex.compile(r"[\p{L}\p{M}\s'’-]+")
SIBILANT = regex.compile(r"(?i)(?:s|x|z|ch|sh|o)$")
CONSONANT_AND_Y = regex.compile(r"(?i)(?<=[^aeiou\W])y$")


class Term(str):
    """A term as the source has it, which is a value of the text layer, with its target forms."""

    forms: tuple[str, ...]
    plain: str
    """The term as the model reads it: in the casing of the glossary if the source has it in capitals or title case."""
    is_in_capitals: bool
    """Whether the source has it in capitals, and the glossary in small letters."""

    def __new__(cls, written: str, forms: tuple[str, ...], plain: str = "", is_in_capitals: bool = False) -> "Term":
        term = super().__new__(cls, written)
        term.forms = forms
        term.plain = plain or written
        term.is_in_capitals = is_in_capitals
        return term


class _Entry(NamedTuple):
    """One spelling of a term: the term itself or its plural."""

    spelling: str
    forms: tuple[str, ...]


class TermFinder:
    """Finds the terms of a glossary. Text layers hold one, and so do requests that bring a glossary of their own.

    The time for a text does not depend on the number of terms: each word is looked up in a dictionary, and tells how
    many words the terms that begin with it have.
    """

    def __init__(self, terms: Terms, language: str) -> None:
        """
        Args:
            terms: The glossary.
            language: The source language.
        """
        self._language = language
        self._entries: dict[str, list[_Entry]] = {}
        self._lengths: dict[str, list[int]] = {}
        """First word → the numbers of words of terms, the greatest first."""
        is_english = base_language(language) == "en"
        for term, forms in terms.items():
            self._add(term, forms)
        for term, forms in terms.items() if is_english else ():
            for plural in english_plurals(term):
                self._add(plural, forms)
        before = _NOT_IN_WORD[0] + (_NO_APOSTROPHE if is_english else "")
        self._borders = [regex.compile(before), regex.compile(_NOT_IN_WORD[1])]
        self._hyphens = list(map(regex.compile, _NO_HYPHEN))

    def _add(self, spelling: str, forms: tuple[str, ...]) -> None:
        words = self._words(spelling)
        keys = [key for key, _ in words]
        self._entries.setdefault("".join(keys).strip(), []).append(_Entry(_plain(spelling), forms))
        lengths = self._lengths.setdefault(keys[0].strip(), [])
        if len(keys) not in lengths:
            lengths.append(len(keys))
            lengths.sort(reverse=True)

    def find(self, text: str) -> list[tuple[Span, Term]]:
        """Return the terms in a text with their spans, from left to right. Of several at one place, the longest."""
        if not self._entries:
            return []
        words = self._words(text)
        line = _Line(text, self._language)
        terms: list[tuple[Span, Term]] = []
        position = 0
        while position < len(words):
            step = 1
            for length in self._lengths.get(words[position][0].strip(), ()):
                if position + length > len(words):
                    continue
                key = "".join(key for key, _ in words[position : position + length]).strip()
                span = words[position][1][0], words[position + length - 1][1][1]
                if term := self._term(key, span, line):
                    terms.append((span, term))
                    step = length
                    break
            position += step
        return terms

    def pairs(self, source: str, target: str) -> list[Replacement]:
        """Return the terms of a sentence pair whose target has one of their forms, each once on its side."""
        replacements = []
        for _, term in self.find(source):
            forms = [form for usual in term.forms for form in (usual, with_capital(usual, ""))]
            present = [form for form in forms if target.count(form) == 1 and _is_whole_word(form, target)]
            if present and source.count(term) == 1:
                replacements.append(Replacement(str(term), max(present, key=len), False))
        return replacements

    def _words(self, text: str) -> list[tuple[str, Span]]:
        """Return the words of a text in small letters, behind a blank if there is white space, with their spans."""
        small = in_small_letters(text, self._language).replace("’", "'")
        end = 0
        words = []
        for match in WORD.finditer(small):
            words.append((match[0] if match.start() == end else f" {match[0]}", match.span()))
            end = match.end()
        return words

    def _term(self, key: str, span: Span, line: "_Line") -> Term | None:
        """Return the term at a span; None if it has not the spelling of one, or is a part of a longer word.

        A term in small letters may begin with a capital at the start of a sentence, and may be in capitals or in a line
        in title case.
        """
        entries = self._entries.get(key, ())
        if not entries or not _match(self._borders, line.text, span):
            return None
        text = line.text[slice(*span)]
        written = _plain(text)
        for spelling, forms in sorted(entries, key=lambda entry: entry.spelling != written):
            if written == spelling != spelling.lower():
                return Term(text, forms)
            if spelling != spelling.lower() or not _match(self._hyphens, line.text, span):
                continue
            if len(written) > 1 and written == in_capitals(spelling, self._language) != spelling:
                return Term(text, forms, spelling, is_in_capitals=True)
            is_capitalised = written == with_capital(spelling, self._language) and line.is_start(span[0])
            if written == spelling or is_capitalised:
                return Term(text, forms)
            if line.is_title:
                return Term(text, forms, spelling)
        return None


class _Line:
    """A text, with the properties that only some terms in it need."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self._language = language

    @cached_property
    def is_title(self) -> bool:
        """Whether all words of the text begin with capitals."""
        return is_in_title_case(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(map(len, sentences(self.text, self._language)), initial=0))

    def is_start(self, position: int) -> bool:
        """Return whether the first word of a sentence begins at a position."""
        start = max(start for start in self._starts if start <= position)
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


def _plain(text: str) -> str:
    return regex.sub(r"\s+", " ", text.replace("’", "'"))


def _match(borders: Sequence[regex.Pattern[str]], text: str, span: Span) -> bool:
    """Return whether the text matches a pattern at the start of a span, and another one at its end."""
    return all(border.match(text, position) for border, position in zip(borders, span, strict=True))


def _is_whole_word(form: str, text: str) -> bool:
    return regex.search(rf"(?<!{WORD_CHARACTER}){regex.escape(form)}(?!{WORD_CHARACTER})", text) is not None


def values_with_terms(text: str, spans: Sequence[Span], finders: Sequence[TermFinder]) -> list[tuple[Span, str]]:
    """Return the values of a text with their spans, in order: the terms, and the values that are no part of one.

    A term that overlaps a value counts only if it contains the value, or if the value consists of words, such as those
    of a language that the model does not know.

    Args:
        text: The text.
        spans: The spans of the values that are not terms.
        finders: The finders of terms. The terms of the first one come first.
    """
    values: list[tuple[Span, str]] = [(span, text[slice(*span)]) for span in spans]
    for finder in finders:
        for (start, end), term in finder.find(text):
            touched = [value for value in values if value[0][0] < end and value[0][1] > start]
            if all(
                not isinstance(value, Term) and ((a >= start and b <= end) or WORDS.fullmatch(value))
                for (a, b), value in touched
            ):
                rests = [
                    word.span()
                    for (first, last), _ in touched
                    for side in ((first, start), (end, last))
                    for word in TRIMMED.finditer(text, *side)
                ]
                others = [value for value in values if value not in touched]
                values = sorted([*others, ((start, end), term), *((rest, text[slice(*rest)]) for rest in rests)])
    return values
