"""Renders the terms of a source by their target forms in its translation.

The model translates a term like any other words, in their context. Where its translation has a target form, nothing
changes. Otherwise a form takes the place of the words that are linked to the term; among several forms, the score of
the translation decides.
"""

from collections.abc import Callable, Mapping, Sequence

from mt.text.markup.placement import AlignmentLink
from mt.text.placeholders.placeholders import replace_spans, with_missing_placeholders
from mt.text.placeholders.term_placement import linked_words, rendered_terms
from mt.text.placeholders.values import Span
from mt.translation.drafts import LinkFunction, SegmentDraft

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
        """Put the placeholder of each term into its draft, in place of the words that render it, and set ``forms``."""
        lacking: list[tuple[SegmentDraft, dict[str, Span]]] = []
        for draft in drafts:
            rendered, copied = rendered_terms(draft.segment.terms, draft.text, self._language)
            draft.forms = {token: draft.text[slice(*span)] for token, span in rendered.items()}
            spans = rendered | copied
            if len(spans) < len(draft.segment.terms):
                lacking.append((draft, spans))
            else:
                _put_placeholders(draft, spans)
        if lacking:
            links = self._align([draft.segment.source for draft, _ in lacking], [draft.text for draft, _ in lacking])
            for (draft, spans), own_links in zip(lacking, links, strict=True):
                _insert_linked(draft, spans, own_links)
        self._choose_forms(drafts)

    def _choose_forms(self, drafts: Sequence[SegmentDraft]) -> None:
        """Set the form of each term that has none yet. If it has several, the best score decides."""
        undecided: list[tuple[SegmentDraft, str, str]] = []
        for draft in drafts:
            others = {token: term.forms for token, term in draft.segment.terms.items() if token not in draft.forms}
            draft.forms |= {token: forms[0] for token, forms in others.items()}
            undecided += [(draft, token, form) for token, forms in others.items() if forms[1:] for form in forms]
        if undecided:
            filled = [
                draft.text.translate({ord(name): text for name, text in (draft.forms | {token: form}).items()})
                for draft, token, form in undecided
            ]
            scores = self._score([draft.segment.source for draft, *_ in undecided], filled)
            for n in sorted(range(len(scores)), key=scores.__getitem__):
                draft, token, form = undecided[n]
                draft.forms[token] = form  # the last one is the best


def _insert_linked(draft: SegmentDraft, spans: dict[str, Span], links: Sequence[AlignmentLink]) -> None:
    """Put the placeholders of terms into a draft: those with a span there, and others in place of the words that are
    linked to the term, or next to the translations of its neighbours if no word is."""
    source_spans = draft.segment.term_spans()
    for token, source_span in source_spans.items():
        if token not in spans and (words := linked_words(source_span, draft.text, links, spans.values())):
            spans[token] = words
    moved = [
        AlignmentLink(*(_moved(n, source_spans) for n in (link.source_start, link.source_end)),
                      *(_moved(n, spans) for n in (link.target_start, link.target_end)))
        for link in links
    ]  # fmt: skip
    _put_placeholders(draft, spans)
    if len(spans) < len(source_spans):
        draft.set_links(moved, draft.segment.masked)
        draft.text = with_missing_placeholders(draft.text, draft.segment.masked, draft.links)


def _put_placeholders(draft: SegmentDraft, spans: Mapping[str, Span]) -> None:
    tokens = sorted(spans, key=spans.__getitem__)
    draft.text = replace_spans(draft.text, [spans[token] for token in tokens], tokens)


def _moved(position: int, spans: Mapping[str, Span]) -> int:
    """Return where a position of a text is when placeholders have replaced the spans. Inside of one, it is the end."""
    return position - sum(min(position, end) - start - 1 for start, end in spans.values() if start < position)
