"""Finds the terms of a glossary in a source, and the words of a translation that render them.

A placeholder replaces each term in the source, and a target form of the term replaces the placeholder in the
translation. The words that render a term are one of its target forms or, if there is none, the words that are aligned
with the term.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

import regex

from mt.config.text import Terms
from mt.core.coded_text import Splice, apply_splices
from mt.core.language import base_language
from mt.text.casing import capitalize, detect_case, to_lowercase, to_uppercase
from mt.text.placement import AlignmentLink
from mt.text.segment import LETTER, Case, Term
from mt.text.sentences import split_sentences
from mt.text.values import WORD_CHARACTER, Span

TERM_TOKEN = regex.compile(rf"(?:{WORD_CHARACTER}|\p{{M}})++|\S")
"""A word, a letter of a language without spaces, or a punctuation mark."""
_NOT_IN_WORD = rf"(?<!{WORD_CHARACTER})", rf"(?!{WORD_CHARACTER}|['’](?!s\b)\p{{L}})"
_NO_HYPHEN = rf"(?<!{WORD_CHARACTER}[-‐‑])", rf"(?![-‐‑]{WORD_CHARACTER})"
_NO_APOSTROPHE = r"(?<!\p{L}['’])"
REST = regex.compile(r"\S(?:.*\S)?")
"""The rest of a value that a term overlaps. Line feeds replace terms."""
WORDS = regex.compile(r"[\p{L}\p{M}\s'’-]+")
SIBILANT = regex.compile(r"(?i)(?:s|x|z|ch|sh|o)$")
CONSONANT_AND_Y = regex.compile(r"(?i)(?<=[^aeiou\W])y$")


class TermFinder:
    """Finds the terms of a glossary in texts.

    The time for a text does not depend on the number of terms, because the words are looked up in a dict.
    """

    def __init__(self, terms: Terms, language: str) -> None:
        """
        Args:
            terms: The glossary.
            language: The source language.
        """
        self._language = language
        self._entries: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        """Maps each prefix of a term that ends with a word to the terms that equal the prefix, with their forms."""
        is_english = base_language(language) == "en"
        plurals = [(plural, forms) for term, forms in terms.items() if is_english for plural in english_plurals(term)]
        for spelling, forms in (*terms.items(), *plurals):
            spelling = _plain(spelling)
            # STRASSE is the same word as Straße.
            for lower in {to_lowercase(text, language) for text in (spelling, to_uppercase(spelling, language))}:
                for match in TERM_TOKEN.finditer(lower):
                    entries = self._entries.setdefault(lower[: match.end()], [])
                entries.append((spelling, forms))  # to the entries of the whole term
        before = _NOT_IN_WORD[0] + (_NO_APOSTROPHE if is_english else "")
        self._borders = [regex.compile(before), regex.compile(_NOT_IN_WORD[1])]
        self._hyphens = list(map(regex.compile, _NO_HYPHEN))

    def find(self, text: str) -> list[tuple[Span, Term]]:
        """Return the terms in a text with their spans, from left to right.

        Of terms that overlap, the longest is returned, and of equally long ones the first.
        """
        if not self._entries:
            return []
        lower = to_lowercase(text, self._language).replace("’", "'")
        words = [match.span() for match in TERM_TOKEN.finditer(lower)]
        spaces = [" " if start > end else "" for (_, end), (start, _) in pairwise([(0, 0), *words])]
        candidates: list[tuple[Span, list[tuple[str, tuple[str, ...]]]]] = []
        for first, (start, _) in enumerate(words):
            key = ""
            for index in range(first, len(words)):
                key = (key + spaces[index] + lower[slice(*words[index])]).lstrip()
                entries = self._entries.get(key)
                if entries is None:
                    break
                if entries:
                    candidates.append(((start, words[index][1]), entries))
        if not candidates:
            return []
        case = detect_case(text)
        starts = list(accumulate(map(len, split_sentences(text, self._language)), initial=0))
        terms: dict[Span, Term] = {}
        occupied = set[int]()
        for span, entries in sorted(candidates, key=lambda candidate: candidate[0][0] - candidate[0][1]):
            if occupied.isdisjoint(range(*span)) and _match_at_ends(self._borders, text, span):
                begins = LETTER.search(text, starts[bisect_right(starts, span[0]) - 1], span[0]) is None
                is_hyphenated = not _match_at_ends(self._hyphens, text, span)
                if term := self._select_term(entries, text[slice(*span)], begins, is_hyphenated, case):
                    occupied.update(range(*span))
                    terms[span] = term
        return sorted(terms.items())

    def _select_term(
        self,
        entries: Sequence[tuple[str, tuple[str, ...]]],
        text: str,
        begins: bool,
        is_hyphenated: bool,
        case: Case | None,
    ) -> Term | None:
        """Return the first of some terms that can be written in this way; None if none can.

        A term in lowercase may be in uppercase, or begin with a capital at the start of a sentence and in a line in
        title case. If it has several words, it may do so anywhere. In a line in uppercase, all terms may be.

        Args:
            entries: Terms and their forms.
            text: The words of these terms, as the line has them.
            begins: Whether a sentence begins with them.
            is_hyphenated: Whether they are a part of a word with a hyphen.
            case: The case of the line.
        """
        written, language = _plain(text), self._language
        for spelling, forms in sorted(entries, key=lambda entry: entry[0] != written):
            is_lowercase = spelling == to_lowercase(spelling, language)
            if written == spelling:
                if not (is_lowercase and is_hyphenated):
                    return Term(text, forms)
                continue
            if written == to_uppercase(spelling, language):
                is_same = case is Case.UPPER or (is_lowercase and (begins or len(written) > 1))
            else:
                is_lowercase = to_lowercase(written, language) == spelling
                is_same = is_lowercase and (begins or case is Case.TITLE or " " in spelling)
            if is_same and not is_hyphenated:
                return Term(text, forms, capitalize(spelling, language) if begins else spelling)
        return None


def english_plurals(term: str) -> Iterator[str]:
    """Yield the regular plurals of an English noun, or of a phrase that ends with a noun. Other terms have none."""
    if not term[-1].isalpha() or len(term) < 2:
        return
    if CONSONANT_AND_Y.search(term):
        yield f"{term[:-1]}ies"
    elif SIBILANT.search(term):
        yield f"{term}es"
    if not SIBILANT.search(term) or term[-1] in "oO":
        yield f"{term}s"


def _plain(text: str) -> str:
    return " ".join(text.replace("’", "'").split())


def _match_at_ends(patterns: Sequence[regex.Pattern[str]], text: str, span: Span) -> bool:
    """Return whether a text matches the first of two patterns at the start of a span, and the second one at its end."""
    return all(pattern.match(text, position) for pattern, position in zip(patterns, span, strict=True))


def values_with_terms(text: str, spans: Sequence[Span], finders: Sequence[TermFinder]) -> list[tuple[Span, str]]:
    """Return the terms and the other values of a text with their spans, in order.

    A value inside a term is skipped. A term that overlaps a value in another way is skipped, unless the value consists
    of words, such as those of a language that the model does not know.

    Args:
        text: The text.
        spans: The spans of the values that are not terms.
        finders: The finders of terms. The terms of the first one take precedence.
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


WORD_BORDER = regex.compile(rf"(?<!{WORD_CHARACTER})|(?!{WORD_CHARACTER})")
ELISION = regex.compile(r"['’](?!s\b)\p{L}")
"""The apostrophe after an elided word, such as an article, and the first letter of the next word: l'école."""
SPACE_OR_HYPHEN = regex.compile(r"[\s'’‐‑-]*+")
"""The text between two words of one term."""


def find_rendered_terms(terms: Mapping[str, Term], translation: str, language: str) -> dict[str, Span]:
    """Return the spans of the target forms of terms in a translation, or of terms that the model copied, such as names.

    Each term has at most one span.

    Args:
        terms: A map from placeholders to terms.
        translation: The translation of a source in which the terms are words.
        language: The target language.
    """
    forms = [(form, token) for token, term in terms.items() for form in term.forms]
    names = [(term.model_text, token) for token, term in terms.items()]
    spans: dict[str, Span] = {}
    for texts in (forms, names):
        for text, token in sorted(texts, key=lambda pair: -len(pair[0])):
            if token not in spans:
                occurrences = _find_words(text, translation, language)
                free = next((span for span in occurrences if _is_free(span, spans.values())), None)
                spans |= {token: free} if free else {}
    return spans


def find_linked_words(
    position: int, translation: str, links: Sequence[AlignmentLink], occupied: Iterable[Span]
) -> Span | None:
    """Return the longest sequence of words in a translation that are linked to a term; None if no word is.

    Args:
        position: The position of the term's placeholder in the source.
        translation: The translation.
        links: The word alignment of source and translation.
        occupied: The spans of the translation that render other terms.
    """
    runs: list[Span] = []
    linked = {(link.target_start, link.target_end) for link in links if link.source_start <= position < link.source_end}
    for start, end in sorted(linked):
        is_word = LETTER.search(translation, start, end) and not ELISION.match(translation, end)
        if is_word and _is_free((start, end), occupied):
            if runs and SPACE_OR_HYPHEN.fullmatch(translation, runs[-1][1], start):
                runs[-1] = runs[-1][0], end
            else:
                runs.append((start, end))
    return max(runs, key=lambda run: run[1] - run[0], default=None)


def _find_words(form: str, text: str, language: str) -> Iterator[Span]:
    """Yield the spans at which a text has a form as whole words, also capitalized."""
    for spelling in dict.fromkeys((form, capitalize(form, language))):
        start = text.find(spelling)
        while start >= 0:
            end = start + len(spelling)
            if WORD_BORDER.match(text, start) and WORD_BORDER.match(text, end):
                yield start, end
            start = text.find(spelling, end)


def _is_free(span: Span, occupied: Iterable[Span]) -> bool:
    return all(end <= span[0] or start >= span[1] for start, end in occupied)
