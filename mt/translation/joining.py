"""Joins the hypotheses of a line's segments to its translation, with score, placeholders, word alignment and tags."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import regex

from mt.config import DecodingConfig
from mt.core.coded_text import CodedText, Span, Splice, joined
from mt.text.brackets import insert_brackets
from mt.text.layer import TextLayer
from mt.text.line import Line
from mt.text.markup_transfer import text_and_elements, transfer_markup
from mt.text.placeholders import insert_missing_placeholders, missing_placeholders, remove_surplus_placeholders
from mt.text.placement import AlignmentLink
from mt.text.values import is_intact
from mt.translation.alignment import word_links
from mt.translation.drafts import (
    LinkFunction,
    ScoreFunction,
    SegmentDraft,
    fill_terms,
    insert_terms,
    nested_drafts,
    set_links,
)
from mt.translation.hypotheses import Hypothesis
from mt.translation.line_segmenter import SegmentedLine
from mt.translation.results import LINE_BREAK_CHARACTERS, LINE_BREAKS, ScoredText, Statistics

APOSTROPHE_BEFORE_SYNTAX = regex.compile(r"'(?=[{}#|])")
"""An apostrophe that quotes the following character of the syntax of a message."""


@dataclass
class _LineDraft:
    """A translation of a line, before its values and tags are restored, and its score."""

    segments: list[SegmentDraft]
    score: float | None


@dataclass(frozen=True)
class LineJoiner:
    """Joins hypotheses to translations of lines. A ``Translator`` holds one."""

    layer: TextLayer
    config: DecodingConfig
    align: LinkFunction
    score: ScoreFunction
    statistics: Statistics
    """The translator's counts, to which placeholders and untranslated lines are added."""

    def join(self, lines: Sequence[SegmentedLine], hypotheses: Sequence[list[Hypothesis]]) -> list[list[ScoredText]]:
        """Return the translations of each line, best first. The alignments of lines with arguments are empty.

        Args:
            lines: The segmented lines.
            hypotheses: The hypotheses of each source, best first. The sources are in the order of ``lines``.
        """
        results = iter(self._join_parts([part for line in lines for part in line.with_parts()], hypotheses))
        translations = [self._insert_arguments(line, results) for line in lines]
        for line, (best, *_) in zip(lines, translations, strict=True):
            if best.is_source:
                self.statistics.count_untranslated(line.line.number + 1)
        return translations

    def _insert_arguments(self, line: SegmentedLine, results: Iterator[list[ScoredText]]) -> list[ScoredText]:
        """Return the translations of a line, with the translated texts of its arguments inserted.

        Args:
            line: The line.
            results: The translations of the line and of its parts, in the order of ``SegmentedLine.with_parts``. They
                are consumed.
        """
        translations = next(results)
        if not line.arguments:
            return translations
        if not line.segments and not line.is_unparsable:
            translations = [replace(translations[0], coded=line.coded)]
        parts: list[ScoredText] = []
        filled: dict[str, CodedText] = {}
        for stand_in, argument in line.arguments.items():
            best = [self._insert_arguments(part, results)[0] for part in argument.parts]
            fragments = list(argument.fragments)
            fragments[1::2] = [part.coded for part in best]
            filled[stand_in] = joined(fragments)
            parts += best
        complete: list[ScoredText] = []
        for translation in translations:
            coded = _fill_stand_ins(translation.coded, filled)
            # An apostrophe of the translation must not quote the syntax after it.
            if not APOSTROPHE_BEFORE_SYNTAX.search(line.line.text.text):
                matches = APOSTROPHE_BEFORE_SYNTAX.finditer(coded.text)
                coded = coded.spliced(Splice(match.start(), match.end(), "’") for match in matches)
            coded = coded.mapped(self.layer.show_symbols)
            complete.append(
                replace(
                    translation,
                    text=translation.text if translation.is_source else _render(line, coded),
                    coded=coded,
                    alignment=translation.alignment and [],
                    is_source=any(part.is_source for part in (translation, *parts)),
                    has_inserted_term=any(part.has_inserted_term for part in (translation, *parts)),
                )
            )
        return complete

    def _join_parts(
        self, lines: Sequence[SegmentedLine], hypotheses: Sequence[list[Hypothesis]]
    ) -> list[list[ScoredText]]:
        """Return the translations of each line or part of an argument, best first; see ``join``."""
        tokens = [hypothesis.tokens for n_best in hypotheses for hypothesis in n_best]
        texts = iter(self.layer.tokenizers.target.decode(tokens))
        candidates = iter([list(zip(n_best, islice(texts, len(n_best)), strict=True)) for n_best in hypotheses])
        drafts = [
            self._line_drafts(line, [list(islice(candidates, len(sources))) for sources in line.segment_sources])
            for line in lines
        ]
        self._repair_placeholders(
            [segment for line_drafts in drafts for draft in line_drafts for segment in draft.segments]
        )
        linked = [
            segment
            for line, line_drafts in zip(lines, drafts, strict=True)
            if line.line.aligned or line.coded.codes
            for draft in line_drafts
            for segment in draft.segments
        ]
        set_links(linked, "text", self.align)
        return [
            [self._finish(line, draft) for draft in line_drafts]
            for line, line_drafts in zip(lines, drafts, strict=True)
        ]

    def _line_drafts(
        self, line: SegmentedLine, candidates: Sequence[list[list[tuple[Hypothesis, str]]]]
    ) -> list[_LineDraft]:
        """Return the translations of a line.

        The first joins the best hypotheses of all sources. The others join the second-best hypotheses, the third-best,
        and so on, and are sorted by score.

        Args:
            line: The line.
            candidates: The hypotheses of each source of each segment with their texts, best first. If a source has
                fewer than others, its last one is used repeatedly.
        """
        drafts: list[_LineDraft] = []
        for rank in range(max((len(n_best) for sources in candidates for n_best in sources), default=1)):
            segments: list[SegmentDraft] = []
            chosen: list[Hypothesis] = []
            for segment, source_candidates in zip(line.segments, candidates, strict=True):
                best = [n_best[min(rank, len(n_best) - 1)] for n_best in source_candidates]
                chosen += [hypothesis for hypothesis, _ in best]
                text = self.layer.between[1].join(filter(None, (text for _, text in best)))
                text = (text if segment.has_words else segment.masked).strip()
                if self.layer.phenomena:
                    text, surplus = remove_surplus_placeholders(text, segment.text)
                    if rank == 0:
                        self.statistics.items += len(segment.values)
                        self.statistics.repaired_items += surplus + len(missing_placeholders(text, segment.source))
                segments.append(SegmentDraft(segment, text))
            length = sum(hypothesis.length for hypothesis in chosen)
            total = sum(hypothesis.log_probability for hypothesis in chosen)
            drafts.append(_LineDraft(segments, total / length**self.config.length_penalty if chosen else None))
        # The length penalty of the joined hypotheses can change the order of the scores.
        return [drafts[0], *sorted(drafts[1:], key=lambda draft: -(draft.score or 0.0))]

    def _repair_placeholders(self, segments: Sequence[SegmentDraft]) -> None:
        """Insert the missing placeholders and brackets of drafts, and choose the target forms of their terms."""
        insert_terms(segments, self.layer.target_language, self.align)
        for are_terms in (True, False):  # terms first, because values can be aligned with their words
            incomplete = []
            for draft in segments:
                missing = missing_placeholders(draft.text, draft.segment.masked)
                if tokens := [token for token in missing if (token in draft.segment.terms) == are_terms]:
                    incomplete.append((draft, tokens))
            set_links([draft for draft, _ in incomplete], "masked", self.align)
            for draft, tokens in incomplete:
                draft.text = insert_missing_placeholders(draft.text, draft.segment.masked, draft.links, tokens)
        fill_terms(segments, self.layer.target_language, self.score)
        for draft in segments:
            draft.text = draft.segment.reorder_symbols(draft.text)
        anchored = [draft for draft in segments if draft.segment.anchors]
        set_links(anchored, "masked", self.align)
        for draft in anchored:
            source = draft.segment.tag + draft.segment.text
            draft.text = insert_brackets(source, draft.segment.anchors, draft.text, draft.links)
            for token in draft.segment.nested:  # moved behind a word that it is inside of, such as s'en
                draft.text = regex.sub(rf"({token})([\p{{L}}\p{{M}}'’-]+)", r"\2\1", draft.text)

    def _finish(self, line: SegmentedLine, draft: _LineDraft) -> ScoredText:
        """Restore the values, casing, tags and whitespace of a draft."""
        layer, original = self.layer, line.line
        parts = nested_drafts(draft.segments)
        restored = self._restore(parts)
        is_repaired = not layer.phenomena or all(map(self._is_intact, draft.segments))
        if line.is_unparsable or (self.config.unrepaired == "source" and not is_repaired):
            return _untranslated(original, draft.score)
        coded = CodedText("".join(restored))
        elements = text_and_elements(line.coded)[1] if line.coded.codes else []
        links, copied = self._links(parts, restored, elements) if original.aligned or line.coded.codes else ([], [])
        alignment = word_links(links, line.text, coded.text) if original.aligned else None
        if line.is_marked_up:
            coded = transfer_markup(line.coded, coded.text, links, copied)
        if layer.phenomena and not coded.codes:
            text = coded.text.strip(LINE_BREAK_CHARACTERS) if not line.is_marked_up else coded.text
            coded = CodedText(text if text.strip() else "")
        if original.is_plain:
            coded = CodedText(coded.written())  # the codes of plain text, such as **, are text again
        if original.escape is str:
            coded = coded.spliced(Splice(*match.span(), " ") for match in LINE_BREAKS.finditer(coded.text))
        coded = coded.mapped(layer.show_symbols)
        has_inserted_term = any(part.has_inserted_term for part in draft.segments)
        return ScoredText(
            _render(line, coded), draft.score, alignment, has_inserted_term=has_inserted_term, coded=coded
        )

    def _restore(self, drafts: Sequence[SegmentDraft]) -> list[str]:
        """Fill in the translations of nested texts, and return the restored translation of each draft."""
        for draft in drafts:
            if draft.nested:
                nested = {token: "".join(self._restore(inner)) for token, inner in draft.nested.items()}
                values = (draft.filled.by_placeholder | nested).values()
                draft.filled = replace(draft.filled, values=tuple(values))
        segments = [draft.filled for draft in drafts]
        restored = [self.layer.restore(draft.filled, draft.text) for draft in drafts]
        return self.layer.adapt_spacing(segments, restored)

    def _is_intact(self, part: SegmentDraft) -> bool:
        """Return whether a draft has each value of its segment exactly once and unchanged."""
        segment, text = part.filled, part.text
        if segment.values:
            text = "".join(self.layer.replacements(segment, text))
        return part.text == segment.text or is_intact(text, segment.values)

    def _links(
        self,
        drafts: Sequence[SegmentDraft],
        restored: Sequence[str],
        elements: Sequence[Span],
        source_start: int = 0,
        target_start: int = 0,
    ) -> tuple[list[AlignmentLink], list[AlignmentLink]]:
        """Return the word alignment of a line, and the links of its copied parts.

        Copied parts are the edges of segments, and values that are not terms.

        Args:
            drafts: The drafts of the line, or of a nested text.
            restored: The restored translation of each draft.
            elements: The spans of the elements of the line. An element around a whole segment is around its whole
                translation.
            source_start, target_start: The position in the line, and in its translation, at which the drafts begin.
        """
        links: list[AlignmentLink] = []
        copied: list[AlignmentLink] = []
        for part, translation in zip(drafts, restored, strict=True):
            segment, text = part.segment, part.segment.text
            source = self.layer.restore(segment, text)
            sources = [source_start + position for position in self.layer.positions(segment, text)]
            targets = [target_start + position for position in self.layer.positions(part.filled, part.text)]
            # The links of added punctuation are empty, because it has been removed again. They connect no words.
            links += [
                AlignmentLink(sources[start], sources[end], targets[first], targets[last])
                for start, end, first, last in part.links
            ]
            ends = [end for start, end in elements if start <= sources[0] < end]
            if ends and min(ends) >= sources[-1] > sources[0]:
                links.append(AlignmentLink(sources[0], sources[0] + 1, targets[0], targets[-1]))
            for token in segment.by_placeholder.keys() - segment.terms:
                if token not in part.text:
                    continue
                index, target = text.index(token), part.text.index(token)
                if nested := part.nested.get(token):
                    inner_links, inner_copied = self._links(
                        nested, self._restore(nested), elements, sources[index], targets[target]
                    )
                    links += inner_links
                    copied += inner_copied
                else:
                    copied.append(AlignmentLink(*sources[index : index + 2], *targets[target : target + 2]))
            for edge, find in ((segment.before.strip(), str.find), (segment.after.strip(), str.rfind)):
                start, first = source_start + find(source, edge), target_start + find(translation, edge)
                if edge and edge in translation:
                    copied.append(AlignmentLink(start, start + len(edge), first, first + len(edge)))
            source_start += len(source)
            target_start += len(translation)
        return links, copied


def _untranslated(line: Line, score: float | None) -> ScoredText:
    """Return the source of a line as its translation."""
    text = line.text.written() if line.original is None else line.original
    coded = CodedText(text) if line.is_plain else line.text
    return ScoredText(LINE_BREAKS.sub(" ", text), score, [] if line.aligned else None, is_source=True, coded=coded)


def _render(line: SegmentedLine, coded: CodedText) -> str:
    return LINE_BREAKS.sub(" ", coded.written(line.line.escape))


def _fill_stand_ins(coded: CodedText, arguments: Mapping[str, CodedText]) -> CodedText:
    """Return a text in which the first occurrence of each stand-in is replaced by its argument."""
    starts = sorted((coded.text.find(stand_in), stand_in) for stand_in in arguments if stand_in in coded.text)
    fragments = coded.split((start, start + len(stand_in)) for start, stand_in in starts)
    fragments[1::2] = (arguments[stand_in] for _, stand_in in starts)
    return joined(fragments)
