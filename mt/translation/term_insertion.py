"""Renders the terms of a source by their target forms in its translation.

The model translates a term like any other words, in their context. Where its translation has a target form, nothing
changes. Otherwise the form takes the place of the words that are linked to the term. Among several forms, and several
places, the score of the translation decides.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mt.text.placeholders.placeholders import missing_placeholders, replace_spans, with_missing_placeholders
from mt.text.placeholders.term_placement import is_free, places_for, rendered_terms
from mt.text.placeholders.values import Span
from mt.translation.drafts import LinkFunction, SegmentDraft

ScoreFunction = Callable[[Sequence[str], Sequence[str]], list[float]]
"""Returns the score of each target as a translation of its source."""


class _Rendering(NamedTuple):
    """One way to render a term in a draft."""

    draft: SegmentDraft
    spans: dict[str, Span]
    """The spans of the draft's text that are taken by terms, by their placeholders."""
    token: str
    span: Span
    form: str

    @property
    def text(self) -> str:
        """The text with the form, and with all other words of the model."""
        return replace_spans(self.draft.text, [self.span], [self.form])


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
            spans = rendered_terms(draft.segment.terms, draft.text, self._language)
            draft.forms = {token: draft.text[slice(*span)] for token, span in spans.items()}
            if len(spans) < len(draft.segment.terms):
                lacking.append((draft, spans))
            else:
                _put_placeholders(draft, spans)
        if lacking:
            self._render(lacking)
            for draft, spans in lacking:
                _put_placeholders(draft, spans)
            self._insert_unlinked([draft for draft, spans in lacking if len(spans) < len(draft.segment.terms)])

    def _render(self, lacking: Sequence[tuple[SegmentDraft, dict[str, Span]]]) -> None:
        """Choose words that the other terms take the place of, and their forms."""
        links = self._align([draft.segment.source for draft, _ in lacking], [draft.text for draft, _ in lacking])
        renderings: list[_Rendering] = []
        for (draft, spans), own_links in zip(lacking, links, strict=True):
            terms = draft.segment.terms
            for token, source_span in draft.segment.term_spans().items():
                if token not in spans and (places := places_for(source_span, draft.text, own_links, spans.values())):
                    spans[token], draft.forms[token] = places[0], terms[token].forms[0]
                    ways = [(place, form) for place in places for form in terms[token].forms]
                    renderings += [_Rendering(draft, spans, token, *way) for way in ways if len(ways) > 1]
        chosen: set[tuple[int, str]] = set()
        for draft, spans, token, span, form in self._best_first(renderings):
            others = (other for name, other in spans.items() if name != token)
            if (id(draft), token) not in chosen and is_free(span, others):
                chosen.add((id(draft), token))
                spans[token], draft.forms[token] = span, form

    def _insert_unlinked(self, drafts: Sequence[SegmentDraft]) -> None:
        """Insert the terms that are linked to no word next to the translations of their neighbours."""
        sources = [draft.segment.masked for draft in drafts]
        links = self._align(sources, [draft.text for draft in drafts])
        renderings: list[_Rendering] = []
        for draft, source, own_links in zip(drafts, sources, links, strict=True):
            unlinked = missing_placeholders(draft.text, source)
            draft.text = with_missing_placeholders(draft.text, source, own_links)
            for token in unlinked:
                forms, start = draft.segment.terms[token].forms, draft.text.index(token)
                draft.forms[token] = forms[0]
                renderings += [_Rendering(draft, {}, token, (start, start + 1), form) for form in forms if forms[1:]]
        for draft, _, token, _, form in reversed(self._best_first(renderings)):
            draft.forms[token] = form  # the last one is the best

    def _best_first(self, renderings: Sequence[_Rendering]) -> list[_Rendering]:
        """Sort ways to render terms by the scores of the translations."""
        if not renderings:
            return []
        plain = [
            one.text.translate({ord(token): form for token, form in one.draft.forms.items()}) for one in renderings
        ]
        scores = self._score([one.draft.segment.source for one in renderings], plain)
        order = sorted(range(len(renderings)), key=lambda n: -scores[n])
        return [renderings[n] for n in order]


def _put_placeholders(draft: SegmentDraft, spans: dict[str, Span]) -> None:
    tokens = sorted(spans, key=spans.__getitem__)
    draft.text = replace_spans(draft.text, [spans[token] for token in tokens], tokens)
