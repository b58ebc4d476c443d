"""Drafts: translations of segments before their values, casing and tags are restored. Terms are rendered in them.

The model translates a term like any other words, in their context. Where its translation has a target form, nothing
changes. Otherwise a form takes the place of the words that are linked to the term; among several forms, the score of
the translation decides.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import regex

from mt.config.text import FINAL_MARKS
from mt.core.coded_text import Splice, apply_splices
from mt.text.casing import capitalize, to_uppercase
from mt.text.placement import AlignmentLink
from mt.text.segment import LETTER, Case, Segment
from mt.text.terms import find_linked_words, find_rendered_terms

LinkFunction = Callable[[Sequence[str], Sequence[str]], list[list[AlignmentLink]]]
"""Returns the links between the words of each source and target, in characters."""
ScoreFunction = Callable[[Sequence[str], Sequence[str]], list[float]]
"""Returns the score of each target as a translation of its source."""


@dataclass
class SegmentDraft:
    """A translation of one segment, with placeholders, and its word alignment to the segment's text."""

    segment: Segment
    text: str
    links: list[AlignmentLink] = field(default_factory=list)
    forms: dict[str, tuple[str, ...]] = field(init=False)
    """The possible target forms of terms, by their placeholders. ``insert_terms`` sets them."""
    filled: Segment = field(init=False)
    """The segment with the values of the translation: target forms in place of terms, and translations of nested texts.
    ``fill_terms`` and ``nest`` set it."""
    nested: dict[str, list["SegmentDraft"]] = field(default_factory=dict)
    """The drafts of its nested texts, by their placeholders."""
    has_inserted_term: bool = False
    """Whether the model did not write the target form of a term itself."""

    @property
    def first_forms(self) -> dict[str, str]:
        return {token: forms[0] for token, forms in self.forms.items()}


def nested_drafts(drafts: Iterable[SegmentDraft]) -> list[SegmentDraft]:
    """Move the drafts of nested texts into those around them, and return the others.

    Args:
        drafts: The drafts of ``Segment.flatten``.
    """
    remaining = iter(drafts)

    def nest(draft: SegmentDraft) -> SegmentDraft:
        for token, nested in draft.segment.nested.items():
            draft.nested[token] = [nest(next(remaining)) for _ in nested.segments]
        return draft

    return [nest(draft) for draft in remaining]


def set_links(drafts: Sequence[SegmentDraft], kind: Literal["masked", "text"], align: LinkFunction) -> None:
    """Set the word alignment between this text of each segment and its draft. Terms are aligned as words, and the links
    of these are those of the placeholder."""
    sources = [
        with_words(getattr(draft.segment, kind), {token: term.plain for token, term in draft.segment.terms.items()})
        for draft in drafts
    ]
    targets = [with_words(draft.text, draft.first_forms) for draft in drafts]
    texts = ([text for text, _ in side] for side in (sources, targets))
    for draft, (_, source), (_, target), links in zip(drafts, sources, targets, align(*texts), strict=True):
        draft.links = [
            AlignmentLink(
                source[link.source_start],
                source[link.source_end - 1] + 1,
                target[link.target_start],
                target[link.target_end - 1] + 1,
            )
            for link in links
        ]


def with_words(text: str, words: Mapping[str, str]) -> tuple[str, Sequence[int]]:
    """Return a text with words in place of placeholders, and the position in ``text`` that each character is from."""
    parts = [words.get(character, character) for character in text]
    return "".join(parts), [position for position, part in enumerate(parts) for _ in part]


def insert_terms(drafts: Sequence[SegmentDraft], language: str, align: LinkFunction) -> None:
    """Put the placeholders of terms in place of the words that render them, and set ``forms`` and
    ``has_inserted_term``. A term that no word renders remains missing.

    Args:
        drafts: The drafts.
        language: The target language.
        align: Links words.
    """
    for draft in drafts:
        draft.forms = {token: term.forms for token, term in draft.segment.terms.items()}
    rendered = [find_rendered_terms(draft.segment.terms, draft.text, language) for draft in drafts]
    lacking = [draft for draft, own in zip(drafts, rendered, strict=True) if len(own) < len(draft.forms)]
    set_links(lacking, "masked", align)
    for draft, own in zip(drafts, rendered, strict=True):
        models_forms = {
            token: (draft.text[start:end],)
            for token, (start, end) in own.items()
            if draft.text[start:end].lower() in map(str.lower, draft.forms[token])
        }
        draft.has_inserted_term = len(models_forms) < len(draft.forms)
        draft.forms |= models_forms
        for token in [token for token in draft.forms if token not in own]:
            position = draft.segment.masked.index(token)
            if words := find_linked_words(position, draft.text, draft.links, own.values()):
                own[token] = words
        draft.text = apply_splices(draft.text, sorted(Splice(*span, token) for token, span in own.items()))


def fill_terms(drafts: Sequence[SegmentDraft], language: str, score: ScoreFunction) -> None:
    """Choose the form of each term by the score of the translation, and set ``filled``.

    Args:
        drafts: The drafts.
        language: The target language.
        score: Scores translations.
    """
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
        scores = dict(zip(distinct, score(*zip(*distinct, strict=True)), strict=True))
        for (draft, token, form), _ in sorted(zip(choices, pairs, strict=True), key=lambda own: scores[own[1]]):
            draft.forms[token] = (form,)  # the last one is the best
    for draft in drafts:
        draft.filled = draft.segment
        if draft.forms:
            draft.filled = with_forms(draft.segment, draft.first_forms, draft.text, language)


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
        if segment.case is Case.UPPER or (term.isupper() and not term.plain.isupper()):
            form = to_uppercase(form, language)
        elif form.split()[0].islower() and _is_at_start(segment, translation, translation.find(token)):
            form = capitalize(form, language)
        values[token] = form
    return replace(segment, values=tuple(values.values()))


def _is_at_start(segment: Segment, translation: str, position: int) -> bool:
    """Return whether a sentence begins at a position. The first one must not begin with a small letter in the
    source."""
    letter = LETTER.search(segment.source.removeprefix(segment.tag))
    before = SENTENCE_START.search(translation[:position])
    return before is not None and (before.start() > 0 or not (letter and letter[0].islower()))
