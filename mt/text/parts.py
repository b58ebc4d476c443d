"""Splits sentences into parts to translate separately: labels, direct speech, remarks in brackets, alternatives.

A model that has seldom seen ``:``, ``"``, ``(``, ``/`` or ``&`` in training mixes the words on both sides. So a
sentence is split at such a punctuation mark between two parts. A remark or an alternative inside a sentence is
extracted, translated separately, and inserted by word alignment. Punctuation marks that are frequent in the training
text do not split sentences.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

import regex

from mt.core.coded_text import Span
from mt.text.brackets import bracket_pairs
from mt.text.placeholders import fill_placeholders
from mt.text.segment import IN_WORD, LETTER, Pairs, Phenomenon, Request, Segment

MARKS = ':;/|&"“„«「『([（［'
"""Punctuation marks between parts. Of brackets and quotation marks, only the opening one is listed."""
MARK = regex.compile(f"[{regex.escape(MARKS)}]")
MAX_DEPTH = 3
"""How often parts are split again, as in ``Note: (laughs) he/she``. It bounds the time for a line of many marks."""
MIN_MARK_SHARE = 0.02
"""A mark that occurs in at least this share of the training sources is known to the model, and does not split."""
APOSTROPHE = {ord("'"): "\ufffc"}
_WORD = r"\p{L}[\p{L}\p{M}]*+(?:['’-]\p{L}[\p{L}\p{M}]*+)*+"
_BEFORE_MORE = r"\s+\p{L}{4,}+(?=\s+\p{Ll})"
SEPARATOR = regex.compile(rf"[:;]\p{{P}}{{0,3}}+\s+|[：；]\s*|(?<=\s)(?:\||/(?!{_BEFORE_MORE}))\s+|(?<=^\s*)\]\s+")
"""A punctuation mark between two parts, with the whitespace after it."""
LABEL = regex.compile(r"[\p{L}\p{N}]+:")
SPEECH_END = regex.compile(r"(?r)[\p{Po}\p{Pd}]\s*$")
"""The punctuation mark at the end of direct speech. Titles in quotation marks have none. (?r): searched from the
end."""
SENTENCE = regex.compile(r"\s*\p{Lu}\S*\s+\S")
SPEECH_START = regex.compile(r"(?r)[,，]\s*$")
"""The end of a text that introduces direct speech."""
OPENING_BRACKET, MAX_SPACE = regex.compile(r"[(\[{（［｛【]"), 20
BRACKET_OR_QUOTE = regex.compile(r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\"']")
PART_END = regex.compile(r"(?:\p{Po}*\s+)?")
ALTERNATIVE = regex.compile(
    rf"(?<![^\s\p{{Ps}}\p{{Pi}}\"/]){_WORD}((?:/{_WORD}){{1,9}}+|\s+(?:&\s+{_WORD}|/{_BEFORE_MORE}))(?=[^\w\s=/&@]*+(?:\s|$))"
)
"""A word, followed by other words, each with a slash or an ampersand before it (group 1)."""


class Parts(Phenomenon):
    """Splits sentences at labels, speech and brackets, and extracts remarks and alternatives from them."""

    @staticmethod
    def learn(pairs: Pairs, language: str) -> dict[str, object]:
        sources = [source for source, _ in pairs()]
        min_count = MIN_MARK_SHARE * len(sources)
        return {
            "known_marks": [
                mark
                for mark in MARKS
                if sum(f" {mark}" in f" {source}" or f"{mark} " in source for source in sources) >= min_count
            ]
        }

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        parts = [segment]
        for _ in range(MAX_DEPTH):
            parts = [new for part in parts for new in self._split(part)]
        return parts

    def _split(self, segment: Segment) -> list[Segment]:
        """Split a segment at labels, direct speech and brackets; or else replace remarks and alternatives by values."""
        if not segment.values and MARK.search(segment.text) is None:
            return [segment]
        known = dict.fromkeys(map(ord, self.layer.config.known_marks), "\ufffc")
        # Apostrophes that are quotation marks are values, and visible. Others are hidden.
        text = fill_placeholders(segment.text.translate(APOSTROPHE), map(_visible_character, segment.values))
        text = text.translate(known)
        pairs = [
            (start, end)
            for start, end in _outer_pairs(text)
            if LETTER.search(text, start, end) and (IN_WORD.search(text, 0, start) or IN_WORD.search(text, end))
        ]
        borders = {match.end() for match in SEPARATOR.finditer(text) if not _is_inside(match.start(), pairs)}
        remarks: list[Span] = []
        marks: list[Span] = []
        for start, end in pairs:
            before = text[max(0, start - MAX_SPACE) : start]
            inside, part_end = text[start + 1 : end - 1], PART_END.match(text, end).end()
            cuts: set[int] = set()
            if not OPENING_BRACKET.match(text, start):
                is_sentence = SPEECH_END.search(inside) and (IN_WORD.search(text, end) or SENTENCE.match(inside))
                if is_sentence or SPEECH_START.search(before):
                    cuts = {start, part_end}
            elif part_end > end and not IN_WORD.search(text, 0, start):
                cuts = {part_end}
            elif not IN_WORD.search(text, end) and not IN_WORD.match(text, start - 1):
                cuts = {start, end}
            elif start and text[start - 1].isspace() and not IN_WORD.match(text, end):
                remarks.append((start - len(before) + len(before.rstrip()), end))
            if cuts:
                borders |= cuts
                ends = (start, start + 1), (end - 1, end)
                marks += [span for span in ends if BRACKET_OR_QUOTE.match(segment.text, span[0])]
        if starts := sorted(borders - {0, len(text)}):
            parts = segment.with_values(marks, are_nested=False).split_at([0, *starts])
            return [replace(part, is_sentence_start=True, is_continued=False) for part in parts]
        alternatives = [match.span(1) for match in ALTERNATIVE.finditer(text)]
        remarks += [span for span in alternatives if not _is_inside(span[0], remarks)]
        return [segment.with_values(sorted(remarks), are_nested=True) if remarks else segment]


def _visible_character(value: str) -> str:
    """Return a character that stands for a value while parts are found: a colon for a label, a bracket for itself."""
    if LABEL.fullmatch(value):
        return ":"
    return value if len(value) == 1 else "]" if value.startswith("[") else "\ufffc"


def _is_inside(position: int, spans: Sequence[Span]) -> bool:
    """Return whether a position is inside one of some spans, which are in order."""
    index = bisect_right(spans, (position, 0)) - 1
    return index >= 0 and position < spans[index][1]


def _outer_pairs(text: str) -> Iterator[Span]:
    """Yield the spans of the outermost pairs of brackets or quotation marks of a text."""
    marks = list(BRACKET_OR_QUOTE.finditer(text))
    end = 0
    for opening, closing in sorted(bracket_pairs([mark[0] for mark in marks]).items()):
        if marks[opening].start() >= end:
            end = marks[closing].end()
            yield marks[opening].start(), end
