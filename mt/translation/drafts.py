"""Drafts, which are translations of segments before values, casing and tags are restored, and the terms in them.

The model translates a term like other words, in context. If the translation has a target form of the term, nothing
changes. Otherwise, a target form replaces the words that are linked to the term. If there are several forms, the one
with the best score of the translation is chosen.
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
"""Returns the word alignment of each source and target, as links between spans of characters."""
ScoreFunction = Callable[[Sequence[str], Sequence[str]], list[float]]
"""Returns the score of each target as a translation of its source."""


@dataclass
class SegmentDraft:
    """A translation of one segment, with placeholders, and its word alignment with the text of the segment."""

    segment: Segment
    text: str
    links: list[AlignmentLink] = field(default_factory=list)
    forms: dict[str, tuple[str, ...]] = field(init=False)
    """The possible target forms of terms, by their placeholders. ``insert_terms`` sets them."""
    filled: Segment = field(init=False)
    """The segment whose values are those of the translation: target forms of terms, and translations of nested texts.
    ``fill_terms`` sets it, and ``LineJoiner`` adds nested texts."""
    nested: dict[str, list["SegmentDraft"]] = field(default_factory=dict)
    """The drafts of nested texts, by their placeholders."""
    has_inserted_term: bool = False
    """Whether the model did not write a target form of one of the terms."""

    @property
    def first_forms(self) -> dict[str, str]:
        """The first target form of each term, by its placeholder."""
        return {token: forms[0] for token, forms in self.forms.items()}


def nested_drafts(drafts: Iterable[SegmentDraft]) -> list[SegmentDraft]:
    """Set ``nested`` of the drafts, and return those that are not nested.

    Args:
        drafts: The drafts of the segments of ``Segment.flatten``, in its order.
    """
    remaining = iter(drafts)

    def with_nested(draft: SegmentDraft) -> SegmentDraft:
        for token, nested in draft.segment.nested.items():
            draft.nested[token] = [with_nested(next(remaining)) for _ in nested.segments]
        return draft

    return [with_nested(draft) for draft in remaining]


def set_links(drafts: Sequence[SegmentDraft], kind: Literal["masked", "text"], align: LinkFunction) -> None:
    """Set the links between a text of each segment and its draft.

    Terms are aligned as words, and their links become those of their placeholders.

    Args:
        drafts: The drafts.
        kind: The attribute of a segment that is its text: ``text``, or ``masked``.
        align: Aligns words.
    """
    sources = [
        substitute_words(
            getattr(draft.segment, kind), {token: term.model_text for token, term in draft.segment.terms.items()}
        )
        for draft in drafts
    ]
    targets = [substitute_words(draft.text, draft.first_forms) for draft in drafts]
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


def substitute_words(text: str, words: Mapping[str, str]) -> tuple[str, Sequence[int]]:
    """Return a text with words in place of placeholders, and the position in ``text`` of the origin of each character.

    ``words`` maps placeholders to words.
    """
    parts = [words.get(character, character) for character in text]
    return "".join(parts), [position for position, part in enumerate(parts) for _ in part]


def insert_terms(drafts: Sequence[SegmentDraft], language: str, align: LinkFunction) -> None:
    """Replace the words that translate a term by its placeholder, and set ``forms`` and ``has_inserted_term``.

    The placeholder of a term that no word translates remains missing.

    Args:
        drafts: The drafts.
        language: The target language.
        align: Aligns words.
    """
    for draft in drafts:
        draft.forms = {token: term.forms for token, term in draft.segment.terms.items()}
    rendered = [find_rendered_terms(draft.segment.terms, draft.text, language) for draft in drafts]
    incomplete = [draft for draft, spans in zip(drafts, rendered, strict=True) if len(spans) < len(draft.forms)]
    set_links(incomplete, "masked", align)
    for draft, spans in zip(drafts, rendered, strict=True):
        forms_of_model = {
            token: (draft.text[start:end],)
            for token, (start, end) in spans.items()
            if draft.text[start:end].lower() in map(str.lower, draft.forms[token])
        }
        draft.has_inserted_term = len(forms_of_model) < len(draft.forms)
        draft.forms |= forms_of_model
        for token in [token for token in draft.forms if token not in spans]:
            position = draft.segment.masked.index(token)
            if span_of_words := find_linked_words(position, draft.text, draft.links, spans.values()):
                spans[token] = span_of_words
        draft.text = apply_splices(draft.text, sorted(Splice(*span, token) for token, span in spans.items()))


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
            (draft.segment.source, substitute_words(draft.text, draft.first_forms | {token: form})[0])
            for draft, token, form in choices
        ]
        distinct = dict.fromkeys(pairs)  # the first forms of several terms give the same pair
        scores = dict(zip(distinct, score(*zip(*distinct, strict=True)), strict=True))
        # In ascending order of scores, so that the best form of a term is set last.
        for (draft, token, form), _ in sorted(zip(choices, pairs, strict=True), key=lambda choice: scores[choice[1]]):
            draft.forms[token] = (form,)
    for draft in drafts:
        draft.filled = draft.segment
        if draft.forms:
            draft.filled = fill_forms(draft.segment, draft.first_forms, draft.text, language)


SENTENCE_START = regex.compile(rf"(?r)(?:^|[{FINAL_MARKS}][\p{{P}}\s]*\s)[^\p{{L}}\p{{N}}\p{{Co}}]*$")
"""Matches the end of a text if a sentence can begin after it. It is searched from the end."""


def fill_forms(segment: Segment, forms: Mapping[str, str], translation: str, language: str) -> Segment:
    """Return a segment with target forms as the values of its terms, cased as their positions in a translation require.

    Args:
        segment: The segment.
        forms: The target form of each term, by its placeholder.
        translation: The translation, with placeholders.
        language: The target language.
    """
    values = dict[str, str](segment.by_placeholder)
    for token, term in segment.terms.items():
        form = forms[token]
        if segment.case is Case.UPPER or (term.isupper() and not term.model_text.isupper()):
            form = to_uppercase(form, language)
        elif form.split()[0].islower() and _is_sentence_start(segment, translation, translation.find(token)):
            form = capitalize(form, language)
        values[token] = form
    return replace(segment, values=tuple(values.values()))


def _is_sentence_start(segment: Segment, translation: str, position: int) -> bool:
    """Return whether a capitalized sentence begins at a position of a translation.

    The first sentence is not capitalized if the source begins with a lowercase letter.
    """
    first_letter = LETTER.search(segment.source.removeprefix(segment.tag))
    before = SENTENCE_START.search(translation[:position])
    return before is not None and (before.start() > 0 or not (first_letter and first_letter[0].islower()))
