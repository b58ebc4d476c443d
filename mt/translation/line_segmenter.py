"""Cuts lines into segments, and encodes the segments as the sources that an engine translates."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count

import regex

from mt.config import MAX_SOURCE_TOKENS, DecodingConfig
from mt.core.coded_text import CodedText, joined
from mt.core.splices import Splice
from mt.formats.messages import MESSAGE, message_arguments
from mt.formats.tags import MarkupKind, coded_markup, encode
from mt.text.layer import TextLayer
from mt.text.placing import text_and_elements
from mt.text.segment import Segment
from mt.text.terms import TermFinder
from mt.text.values import Span
from mt.tokenizer.tokenizer import WORD_START
from mt.translation.results import Statistics

INVISIBLE = regex.compile("(?<=\\p{L})[\u00ad\u200b\u2060\ufeff]++(?=\\p{L})")
"""Soft hyphens and the like inside a word, which its translation has no place for."""


@dataclass(frozen=True)
class SeparateTexts:
    """A part of a line with texts to translate one by one: an argument of a message, or HTML with several blocks."""

    pieces: list[CodedText]
    """What comes back unchanged at even indices, and the texts at odd ones."""
    parts: list["SegmentedLine"]
    """The texts."""


@dataclass(frozen=True)
class SegmentedLine:
    """A segmented line with its sources. ``LineSegmenter`` makes it, and ``LineJoiner`` reads it."""

    text: str
    """The text to translate: the line without its tags."""
    is_marked_up: bool
    """Whether it has codes, or is of HTML or XML."""
    segments: list[Segment]
    """The segments of ``text``, in order; none for a blank line."""
    segment_sources: list[list[list[int]]]
    """The sources of each segment: one, or several if the segment has too many tokens, or none if it has none."""
    number: int
    """The number of the line, counted from 0."""
    original: str | CodedText
    """The line as it was given."""
    coded: CodedText
    """The line with stand-ins for its arguments."""
    escape: Callable[[str], str] = str
    """Writes text between tags."""
    is_unparsable: bool = False
    """Whether it is a message that cannot be parsed, and so has no segments."""
    arguments: dict[str, SeparateTexts] = field(default_factory=dict)
    """The parts with separate texts by the stand-ins, such as ``{m0}``, that ``text`` has in their place."""

    def with_parts(self) -> Iterator["SegmentedLine"]:
        """Yield the line, and then the parts of its arguments with their own parts, in order."""
        yield self
        for argument in self.arguments.values():
            for part in argument.parts:
                yield from part.with_parts()

    @property
    def sources(self) -> list[list[int]]:
        """The sources of all segments, flattened, in order; then those of the parts of arguments."""
        return [source for line in self.with_parts() for source in chain.from_iterable(line.segment_sources)]


class LineSegmenter:
    """Cuts lines into segments and sources, with the text layer and the decoding settings of one ``Translator``."""

    def __init__(
        self, layer: TextLayer, config: DecodingConfig, max_length: int | None, statistics: Statistics
    ) -> None:
        """
        Args:
            layer: The model's text layer.
            config: The decoding settings.
            max_length: The model's maximum number of positions, EOS included; None if there is no limit.
            statistics: The translator's counts. Corrections and long sentences are added to them.
        """
        self._layer = layer
        self._config = config
        self._statistics = statistics
        given = config.max_source_length
        max_tokens = MAX_SOURCE_TOKENS if given == "auto" else given
        self.max_tokens = max_tokens if max_length is None else min(max_tokens, max_length - 1)
        """Maximum number of tokens, without EOS, of a source or target."""

    def segment(
        self,
        lines: Sequence[str | CodedText],
        numbers: Sequence[int],
        markup: Sequence[MarkupKind | None],
        syntaxes: Sequence[str] | None = None,
        terms: TermFinder | None = None,
        cut_blocks: bool = False,
    ) -> list[SegmentedLine]:
        """Cut each line into segments and sources, and add to the statistics. A blank line has no segments.

        Args:
            lines: The lines.
            numbers: The number of each line, counted from 0, for the statistics.
            markup: The kind of tags of each line; None for plain text. ``decoding.markup=auto`` finds pairs in it.
            syntaxes: The syntax of the placeholders of each line: a key of SYNTAXES; "" for none.
            terms: Finds further terms in the lines.
            cut_blocks: Whether the texts of HTML are translated one by one; see ``CodedText.separate_texts``.
        """
        prepared = [
            self._prepared(line, number, kind, syntax, terms, cut_blocks)
            for line, number, kind, syntax in zip(lines, numbers, markup, syntaxes or [""] * len(lines), strict=True)
        ]
        # All lines in one call, because SentencePiece starts its threads anew at every call.
        encoded = iter(
            self._layer.tokenizers.source.encode([segment.source for line in prepared for segment in line.segments])
        )
        segmented = []
        for line in prepared:
            self._statistics.count_segments(line.segments, line.number + 1)
            tokens = [(segment, next(encoded)) for segment in line.segments]
            sources = [self._split(own, line.number) if segment.has_words else [] for segment, own in tokens]
            segmented.append(replace(line, segment_sources=sources))
        return segmented

    def _prepared(
        self,
        line: str | CodedText,
        number: int,
        kind: MarkupKind | None,
        syntax: str,
        terms: TermFinder | None,
        cut_blocks: bool,
    ) -> SegmentedLine:
        """Return a line with its segments, but without their sources."""
        layer, config = self._layer, self._config
        coded = self._coded(line, kind)
        arguments: list[tuple[Span, list[CodedText]]] = []
        is_message = bool(layer.config.enabled and MESSAGE.search(coded.text))
        is_unparsable = False
        if is_message:
            try:
                arguments = list(_arguments(coded))
            except ValueError:
                coded, is_unparsable = CodedText(""), True
        elif cut_blocks and any(code.ends_text for code in coded.codes):
            coded, arguments = CodedText(" "), [((0, 1), coded.separate_texts())]
        by_stand_in: dict[str, SeparateTexts] = {}
        if arguments:
            own_syntax = "icu" if is_message else syntax
            coded, by_stand_in = self._separated(coded, arguments, number, kind, own_syntax, terms)
        if layer.config.enabled:
            invisible = (Splice(match.start(), match.end(), "") for match in INVISIBLE.finditer(coded.text))
            coded = coded.spliced(invisible)
        is_marked_up = bool(coded.codes) or kind in ("html", "xml")
        text, elements = text_and_elements(coded) if is_marked_up else (coded.text, [])
        segments = []
        if text.strip() and (is_message or not arguments):
            split, correct = config.split_sentences == "auto", layer.corrects_typos(config.correct_typos)
            max_tokens = None if config.max_source_length == "auto" else self.max_tokens
            segments = layer.segment(text, split, correct, max_tokens, elements, syntax, terms)
        escape = encode if isinstance(line, str) and kind in ("html", "xml") else str
        return SegmentedLine(text, is_marked_up, segments, [], number, line, coded, escape, is_unparsable, by_stand_in)

    def encode_pairs(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Return the tokens of both sides of pairs as they are trained on, but without typing errors in the sources."""
        prepared = [self._layer.prepare_pair(source, target) for source, target in zip(sources, targets, strict=True)]
        if self._layer.spelling and self._layer.corrects_typos(self._config.correct_typos):
            prepared = [(self._layer.spelling.correct(source)[0], target) for source, target in prepared]
        return (
            self._layer.tokenizers.source.encode([source for source, _ in prepared]),
            self._layer.tokenizers.target.encode([target for _, target in prepared]),
        )

    def _coded(self, line: str | CodedText, kind: MarkupKind | None) -> CodedText:
        """Return a line with its tags, or with pairs in plain text, as codes."""
        plain = line if isinstance(line, str) else line.text
        if not isinstance(line, str) and (line.codes or kind in ("html", "xml")):
            return line
        if kind is None and self._config.markup == "auto" and self._layer.config.enabled:
            kind = None if MESSAGE.search(plain) else "auto"  # the texts of a message are searched for pairs
        return coded_markup(plain, kind) if kind else CodedText(plain)

    def _separated(
        self,
        coded: CodedText,
        arguments: Sequence[tuple[Span, list[CodedText]]],
        number: int,
        kind: MarkupKind | None,
        syntax: str,
        terms: TermFinder | None,
    ) -> tuple[CodedText, dict[str, SeparateTexts]]:
        """Return a line with stand-ins for its arguments, and the arguments with their segmented texts by stand-in.

        An argument is given by its span and by its pieces; see ``SeparateTexts``.
        """
        name = next(name for name in map("m".__mul__, count(1)) if f"{{{name}" not in coded.text)
        by_stand_in = {}
        outer = coded.split([span for span, _ in arguments])
        for index, (_, pieces) in enumerate(arguments):
            own = len(pieces) // 2
            parts = self.segment(pieces[1::2], [number] * own, [kind] * own, [syntax] * own, terms)
            stand_in = f"{{{name}{index}}}"
            by_stand_in[stand_in] = SeparateTexts(pieces, parts)
            outer[2 * index + 1] = CodedText(stand_in)
        return joined(outer), by_stand_in

    def _split(self, tokens: list[int], number: int) -> list[list[int]]:
        """Split the tokens of a segment into sources of at most ``max_tokens`` tokens; none for a segment without
        tokens.

        Each source begins with the language token of the segment, if there is one.

        Args:
            tokens: The tokens.
            number: The number of the line, counted from 0. The statistics count a segment with several sources.
        """
        if len(tokens) <= self.max_tokens:
            return [tokens] if tokens else []
        tokenizer = self._layer.tokenizers.source
        subwords = tokenizer.subwords(tokens)
        language = tokenizer.language_of(tokens)  # each list starts with it
        sources, start = [], len(language)
        room = max(1, self.max_tokens - len(language))
        while len(tokens) - start > room:
            end = start + room
            # Cut between words rather than inside one, if a word begins in the second half of the list.
            word_starts = (n for n in range(end, start + room // 2, -1) if subwords[n].startswith(WORD_START))
            end = next(word_starts, end)
            sources.append(language + tokens[start:end])
            start = end
        sources.append(language + tokens[start:])
        self._statistics.count_split_segment(number + 1)
        return sources


def _arguments(coded: CodedText) -> Iterator[tuple[Span, list[CodedText]]]:
    """Yield the span and the pieces of each argument of a message. Raise ValueError if it cannot be parsed."""
    arguments = message_arguments(coded.text)
    texts = coded.split([argument[:2] for argument in arguments])[1::2]
    for (start, end, spans), text in zip(arguments, texts, strict=True):
        borders = [0, *(code.position for code in text.codes), end - start]
        own = []
        for first, last in ((first - start, last - start) for first, last in spans):
            # A code in the white space around the text belongs to it.
            left = bisect_left(borders, first)
            while left and borders[left - 1] and not text.text[borders[left - 1] : first].strip():
                left -= 1
            right = bisect_right(borders, last)
            while right < len(borders) - 1 and not text.text[last : borders[right]].strip():
                right += 1
            own.append((min(first, borders[left]), max(last, borders[right - 1])))
        yield (start, end), text.split(own, True)


def check_lines(lines: Sequence[str | CodedText]) -> None:
    """Raise TypeError unless the value is a list of strings or coded texts."""
    # A string is a sequence of strings, too; each of its characters would be translated by itself.
    if isinstance(lines, str):
        raise TypeError("a list of lines is needed, not one string: pass [line]")
    for number, line in enumerate(lines):
        if not isinstance(line, str | CodedText):
            raise TypeError(f"element {number} of the list of lines is {line!r:.50}: each line must be a string")
