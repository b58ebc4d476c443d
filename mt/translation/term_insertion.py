"""Renders the terms of a source by their target forms in its translation.

The model translates a term like any other words, in their context. Where its translation has a target form, nothing
changes. Otherwise a form takes the place of the words that are linked to the term; among several forms, the score of
the translation decides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import regex

from mt.config.text import FINAL_MARKS
from mt.text.casing import in_capitals, with_capital
from mt.text.placeholders import WORD_OR_PLACEHOLDER, insertion_position, replace_spans
from mt.text.segment import LETTER, Case, Segment
from mt.text.terms import linked_words, rendered_terms
from mt.translation.drafts import LinkFunction, SegmentDraft, set_links, with_words

ScoreFunction = Callable[[Sequence[str], Sequence[str]], list[float]]
"""Returns the score of each target as a translation of its source."""


class TermInserter:
    """Puts terms into drafts, for one ``LineJoiner``."""

    def __init__(self, language: str, align: LinkFunction, score: ScoreFunction) -> None:
        """
        Args:
            language: The target language.
            align: Links words.
            score: Scores translations.
        """
        self._language = language
        self._align = align
        self._score = score

    def insert(self, drafts: Sequence[SegmentDraft]) -> None:
        """Put the placeholders of terms in place of the words that render them, and set ``forms`` and
        ``has_inserted_term``. A term that no word renders is put beside the translation of its nearest neighbour."""
        drafts = [draft for draft in drafts if draft.forms and draft.segment.has_words]
        rendered = [rendered_terms(draft.segment.terms, draft.text, self._language) for draft in drafts]
        lacking = [draft for draft, own in zip(drafts, rendered, strict=True) if len(own) < len(draft.forms)]
        set_links(lacking, "masked", self._align)
        for draft, own in zip(drafts, rendered, strict=True):
            models_forms = {
                token: (draft.text[start:end],)
                for token, (start, end) in own.items()
                if draft.text[start:end].lower() in map(str.lower, draft.forms[token])
            }
            draft.has_inserted_term = len(models_forms) < len(draft.forms)
            draft.forms |= models_forms
            source = draft.segment.masked
            for token in draft.forms:
                position = source.index(token)
                if token not in own and (words := linked_words(position, draft.text, draft.links, own.values())):
                    own[token] = words
            written = {token: token for token in draft.forms}
            to_words = [link for link in draft.links if LETTER.search(draft.text, link.target_start, link.target_end)]
            for token in draft.forms:
                if token not in own:
                    position = insertion_position(token, draft.text, source, to_words)
                    position = next((end for start, end in own.values() if start < position < end), position)
                    terms = [written[other] for other, span in own.items() if span == (position, position)]
                    own[token] = position, position
                    before, after = [draft.text[:position], *terms][-1], draft.text[position:]
                    blanks = [" " * bool(WORD_OR_PLACEHOLDER.match(side)) for side in (before[-1:], after)]
                    written[token] = token.join(blanks)
            spans = sorted(own.items(), key=lambda term: term[1])  # terms at one position stay in order
            draft.text = replace_spans(draft.text, [span for _, span in spans], [written[token] for token, _ in spans])

    def fill(self, drafts: Sequence[SegmentDraft]) -> None:
        """Choose the form of each term by the score of the translation, and set ``filled``."""
        drafts = [draft for draft in drafts if draft.forms]
        choices = [
            (draft, token, form)
            for draft in drafts
            for token, forms in draft.forms.items()
            if forms[1:] and draft.segment.has_words
            for form in forms
        ]
        if choices:
            pairs = [
                (draft.segment.source, with_words(draft.text, draft.first_forms | {token: form})[0])
                for draft, token, form in choices
            ]
            distinct = dict.fromkeys(pairs)  # every first form is in the same translation
            scores = dict(zip(distinct, self._score(*zip(*distinct, strict=True)), strict=True))
            for (draft, token, form), _ in sorted(zip(choices, pairs, strict=True), key=lambda own: scores[own[1]]):
                draft.forms[token] = (form,)  # the last one is the best
        for draft in drafts:
            draft.filled = with_forms(draft.segment, draft.first_forms, draft.text, self._language)


SENTENCE_START = regex.compile(rf"(?r)(?:^|[{FINAL_MARKS}][\p{{P}}\s]*\s)[^\p{{L}}\p{{N}}\p{{Co}}]*$")
"""The end of a text behind which a sentence begins, searched from the end."""


def with_forms(segment: Segment, forms: Mapping[str, str], translation: str, language: str) -> Segment:
    """Return a segment with target forms as the values of its terms, in the casing that a translation needs.

    Args:
        segment: The segment.
        forms: The target form of each placeholder of a term.
        translation: The translation, with placeholders.
        language: The target language.
    """
    values = dict[str, str](segment.by_placeholder)
    for token, term in segment.terms.items():
        form = forms[token]
        if segment.case is Case.CAPITALS or (term.isupper() and not term.plain.isupper()):
            form = in_capitals(form, language)
        elif form.split()[0].islower() and _is_at_start(segment, translation, translation.find(token)):
            form = with_capital(form, language)
        values[token] = form
    return replace(segment, values=tuple(values.values()))


def _is_at_start(segment: Segment, translation: str, position: int) -> bool:
    """Return whether a sentence begins at a position. The first one must not begin with a small letter in the
    source."""
    letter = LETTER.search(segment.source)
    before = SENTENCE_START.search(translation[:position])
    return before is not None and (before.start() > 0 or not (letter and letter[0].islower()))
