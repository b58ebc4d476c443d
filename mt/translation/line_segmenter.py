"""Cuts lines into segments, and encodes the segments as the sources that an engine translates."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import regex

from mt.config import MAX_SOURCE_TOKENS, DecodingConfig
from mt.core.coded_text import CodedText, Splice, joined
from mt.formats.messages import MESSAGE, message_arguments
from mt.formats.tags import coded_markup
from mt.text.layer import TextLayer
from mt.text.line import Line
from mt.text.markup_transfer import text_and_elements
from mt.text.segment import Segment
from mt.text.values import Span
from mt.tokenizer.tokenizer import WORD_START
from mt.translation.results import Statistics

INVISIBLE = regex.compile("(?<=\\p{L})[\u00ad\u200b\u2060\ufeff]++(?=\\p{L})")
"""Invisible characters inside a word, such as soft hyphens. They are removed before translation."""

Sources = list[list[int]]
"""The token ids of several sources, or targets."""


class SeparateTexts(NamedTuple):
    """A part of a line whose texts are translated one by one: an argument of a message, or HTML with several blocks."""

    fragments: list[CodedText]
    """The part, divided: the texts are at odd indices, and the unchanged fragments between them at even indices."""
    parts: list["SegmentedLine"]
    """The segmented texts."""


@dataclass(frozen=True)
class SegmentedLine:
    """A segmented line with its sources. ``LineSegmenter`` makes it, and ``LineJoiner`` reads it."""

    line: Line
    """The line as it was given."""
    coded: CodedText
    """The line with stand-ins for its arguments."""
    text: str
    """The text to translate: the line without its tags."""
    is_marked_up: bool
    """Whether the line has codes, or is HTML or XML."""
    segments: list[Segment]
    """The segments of ``text``, each followed by those of its nested texts, in order; none for a blank line."""
    arguments: dict[str, SeparateTexts]
    """The arguments of the line by their stand-ins in ``text``, such as ``{m0}``."""
    is_unparsable: bool
    """Whether the line is a message that cannot be parsed. It has no segments."""
    segment_sources: list[Sources] = field(default_factory=list)
    """The sources of each segment: one, several if the segment has too many tokens, or none if it has no tokens."""

    def with_parts(self) -> Iterator["SegmentedLine"]:
        """Yield the line, and then the parts of its arguments, each with its own parts, in order."""
        yield self
        for argument in self.arguments.values():
            for part in argument.parts:
                yield from part.with_parts()

    @property
    def sources(self) -> Sources:
        """The sources of all segments, and then those of the parts of arguments, in order."""
        return [source for line in self.with_parts() for source in chain.from_iterable(line.segment_sources)]


@dataclass
class LineSegmenter:
    """Cuts lines into segments and sources, with the text layer and the decoding settings of one ``Translator``."""

    layer: TextLayer
    config: DecodingConfig
    max_length: int | None
    """The model's maximum number of positions, EOS included; None if there is no limit."""
    statistics: Statistics
    """The translator's counts. Corrections and long sentences are added to them."""

    def __post_init__(self) -> None:
        setting = self.config.max_source_length
        max_tokens = MAX_SOURCE_TOKENS if setting == "auto" else setting
        self.max_tokens = max_tokens if self.max_length is None else min(max_tokens, self.max_length - 1)
        """Maximum number of tokens, without EOS, of a source or target."""

    def segment(self, lines: Sequence[Line]) -> list[SegmentedLine]:
        """Cut each line into segments and sources, and add to the statistics. A blank line has no segments."""
        segmented = list(map(self._segment_line, lines))
        parts = [part for line in segmented for part in line.with_parts()]
        # All lines are encoded in one call, because SentencePiece starts its threads anew at every call.
        encoded = iter(
            self.layer.tokenizers.source.encode([segment.source for part in parts for segment in part.segments])
        )
        for part in parts:
            number = part.line.number
            self.statistics.count_segments(part.segments, number + 1)
            tokens = [(segment, next(encoded)) for segment in part.segments]
            part.segment_sources.extend(
                self._split_tokens(ids, number) if segment.has_words else [] for segment, ids in tokens
            )
        return segmented

    def _segment_line(self, line: Line) -> SegmentedLine:
        """Return a segmented line, still without sources."""
        layer, config = self.layer, self.config
        coded = line.text.mapped(layer.hide_symbols)
        if line.is_plain and config.markup == "auto" and not coded.codes:
            coded = coded_markup(coded.text, "auto")
        separate_texts: list[tuple[Span, list[CodedText]]] = []
        is_message = bool(layer.phenomena and MESSAGE.search(coded.text))
        is_unparsable = False
        if is_message:
            try:
                separate_texts = list(_message_arguments(coded))
            except ValueError:
                coded, is_unparsable = CodedText(""), True
        elif line.n_best == 1 and not line.aligned and any(code.ends_text for code in coded.codes):
            # The blocks of HTML are translated one by one. Such a line has one translation and no alignment.
            coded, separate_texts = CodedText(" "), [((0, 1), coded.separate_texts())]
        arguments: dict[str, SeparateTexts] = {}
        if separate_texts:
            part = line._replace(original=None, n_best=1, aligned=False, syntax="icu" if is_message else line.syntax)
            coded, arguments = self._replace_arguments(coded, separate_texts, part)
        if layer.phenomena and INVISIBLE.search(coded.text):
            coded = coded.spliced(Splice(match.start(), match.end(), "") for match in INVISIBLE.finditer(coded.text))
        is_marked_up = bool(coded.codes) or not line.is_plain
        text, elements = text_and_elements(coded) if is_marked_up else (coded.text, [])
        segments = []
        if text.strip() and (is_message or not arguments):
            split, correct = config.split_sentences == "auto", layer.corrects_typos(config.correct_typos)
            max_tokens = None if config.max_source_length == "auto" else self.max_tokens
            prepared = layer.segment(text, split, correct, max_tokens, elements, line.syntax, line.terms)
            segments = [nested for segment in prepared for nested in segment.flatten()]
        return SegmentedLine(line, coded, text, is_marked_up, segments, arguments, is_unparsable)

    def encode_pairs(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[Sources, Sources]:
        """Return the tokens of both sides of pairs as in training, with corrected typing errors in the sources."""
        prepared = [self.layer.prepare_pair(source, target) for source, target in zip(sources, targets, strict=True)]
        if self.layer.spelling and self.layer.corrects_typos(self.config.correct_typos):
            prepared = [(self.layer.spelling.correct(source)[0], target) for source, target in prepared]
        return (
            self.layer.tokenizers.source.encode([source for source, _ in prepared]),
            self.layer.tokenizers.target.encode([target for _, target in prepared]),
        )

    def _replace_arguments(
        self, coded: CodedText, arguments: Sequence[tuple[Span, list[CodedText]]], part: Line
    ) -> tuple[CodedText, dict[str, SeparateTexts]]:
        """Replace the arguments of a line by stand-ins. Return the new line, and the segmented arguments by stand-in.

        Args:
            coded: The line.
            arguments: The span and the fragments of each argument; see ``SeparateTexts``.
            part: A line with the options of the texts of arguments.
        """
        prefix = "{m"
        while prefix in coded.text:
            prefix += "m"
        by_stand_in = {}
        outer = coded.split([span for span, _ in arguments])
        for index, (_, fragments) in enumerate(arguments):
            stand_in = f"{prefix}{index}}}"
            parts = [self._segment_line(part._replace(text=text)) for text in fragments[1::2]]
            by_stand_in[stand_in] = SeparateTexts(fragments, parts)
            outer[2 * index + 1] = CodedText(stand_in)
        return joined(outer), by_stand_in

    def _split_tokens(self, tokens: list[int], number: int) -> Sources:
        """Split the tokens of a segment into sources of at most ``max_tokens`` tokens. No tokens give no source.

        Each source begins with the language token of the segment, if there is one. A segment with several sources is
        counted in the statistics.

        Args:
            tokens: The tokens.
            number: The number of the line, counted from 0.
        """
        if len(tokens) <= self.max_tokens:
            return [tokens] if tokens else []
        tokenizer = self.layer.tokenizers.source
        subwords = tokenizer.subwords(tokens)
        language = tokenizer.language_prefix(tokens)
        sources, start = [], len(language)
        room = max(1, self.max_tokens - len(language))
        while len(tokens) - start > room:
            end = start + room
            # Cut before a word rather than inside one, if a word begins in the second half of the source.
            word_starts = (n for n in range(end, start + room // 2, -1) if subwords[n].startswith(WORD_START))
            end = next(word_starts, end)
            sources.append(language + tokens[start:end])
            start = end
        sources.append(language + tokens[start:])
        self.statistics.count_split_segment(number + 1)
        return sources


def _message_arguments(coded: CodedText) -> Iterator[tuple[Span, list[CodedText]]]:
    """Yield the span and the fragments of each argument of a message; see ``SeparateTexts``.

    Raises:
        ValueError: The message cannot be parsed.
    """
    arguments = message_arguments(coded.text)
    texts = coded.split([argument[:2] for argument in arguments])[1::2]
    for (start, end, spans), text in zip(arguments, texts, strict=True):
        positions = [code.position for code in text.codes]
        text_spans = []
        for first, last in ((first - start, last - start) for first, last in spans):
            # Codes in the whitespace around a text belong to the text.
            left = bisect_left(positions, len(text.text[:first].rstrip()))
            right = bisect_right(positions, end - start - len(text.text[last:].lstrip()))
            text_spans.append((min([first, *positions[left:right]]), max([last, *positions[left:right]])))
        yield (start, end), text.split(text_spans, True)


def check_lines(lines: Sequence[str | Line]) -> None:
    """Raise TypeError unless the value is a list of strings or lines."""
    # A string is a sequence of strings, too, and each of its characters would be translated as a line.
    if isinstance(lines, str):
        raise TypeError("a list of lines is needed, not one string: pass [line]")
    for number, line in enumerate(lines):
        if not isinstance(line, str | Line):
            raise TypeError(f"element {number} of the list of lines is {line!r:.50}: each line must be a string")
