"""Cuts lines into segments, and encodes the segments as the sources that an engine translates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, count

import regex

from mt.config import MAX_SOURCE_TOKENS, DecodingConfig
from mt.text.layer import TextLayer
from mt.text.markup.extraction import Markup, extract_markup
from mt.text.markup.tags import MarkupKind, cut_into_blocks
from mt.text.placeholders.messages import MESSAGE, Argument, message_arguments
from mt.text.placeholders.placeholders import replace_spans
from mt.text.placeholders.terms import TermFinder
from mt.text.placeholders.values import Span
from mt.text.segmentation.segment import Segment
from mt.text.subwords.tokenizer import WORD_START
from mt.translation.results import Statistics

INVISIBLE = regex.compile("(?:(?<=[<>])|\\A)[^<>]*+>(*SKIP)(*FAIL)|(?<=\\p{L})[\u00ad\u200b\u2060\ufeff]++(?=\\p{L})")
"""Soft hyphens and the like inside a word, which its translation has no place for.

Text that ends with ``>`` may be a tag, and is skipped as a whole."""


@dataclass(frozen=True)
class SeparateTexts:
    """A part of a line with texts to translate one by one: an argument of a message, or HTML with several blocks."""

    text: str
    spans: list[Span]
    """The spans of its parts in ``text``."""
    parts: list["SegmentedLine"]


@dataclass(frozen=True)
class SegmentedLine:
    """A segmented line with its sources. ``LineSegmenter`` makes it, and ``LineJoiner`` reads it."""

    text: str
    """The text to translate: the line without its tags."""
    markup: Markup | None
    """The tags of the line; None for plain text."""
    segments: list[Segment]
    """The segments of ``text``, in order; none for a blank line."""
    segment_sources: list[list[list[int]]]
    """The sources of each segment: one, or several if the segment has too many tokens, or none if it has none."""
    number: int
    """The number of the line, counted from 0."""
    original: str
    """The line as it was given."""
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
        lines: Sequence[str],
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
            cut_blocks: Whether the texts of HTML are translated one by one; see ``cut_into_blocks``.
        """
        layer, config = self._layer, self._config
        split, correct = config.split_sentences == "auto", layer.corrects_typos(config.correct_typos)
        max_tokens = None if config.max_source_length == "auto" else self.max_tokens
        visible = [INVISIBLE.sub("", line) for line in lines] if layer.config.enabled else lines
        default_kind: MarkupKind | None = "auto" if config.markup == "auto" and layer.config.enabled else None
        extracted: list[Markup | None] = []
        messages: list[tuple[str | None, dict[str, SeparateTexts], bool]] = []
        syntaxes = syntaxes or [""] * len(lines)
        for line, original, kind, number, syntax in zip(visible, lines, markup, numbers, syntaxes, strict=True):
            is_message = bool(layer.config.enabled and MESSAGE.search(line))
            text: str | None = line
            arguments: list[Argument] = []
            if is_message:
                syntax = "icu"
                try:
                    arguments = message_arguments(line)
                except ValueError:
                    text = None
            elif kind == "html" and cut_blocks:
                arguments = _blocks(original)
                text = original if arguments else line
            separated: dict[str, SeparateTexts] = {}
            if text and arguments:
                text, separated = self._separated(text, arguments, number, kind, syntax, terms)
            messages.append((text, separated, is_message))
            # The texts of a message are searched for pairs.
            kind = kind or (None if is_message else default_kind)
            tags = extract_markup(text, kind) if kind and text is not None else None
            extracted.append(None if tags and kind == "auto" and len(tags.nodes) == 1 else tags)
        texts = [tags.text if tags else text or "" for (text, *_), tags in zip(messages, extracted, strict=True)]
        segments_by_line = [
            layer.segment(text, split, correct, max_tokens, tags.elements if tags else (), syntax, terms)
            if text.strip() and (is_message or not separated)
            else []
            for text, tags, syntax, (_, separated, is_message) in zip(texts, extracted, syntaxes, messages, strict=True)
        ]
        # All lines in one call, because SentencePiece starts its threads anew at every call.
        encoded = iter(layer.tokenizers.source.encode([segment.source for segment in chain(*segments_by_line)]))
        segmented = []
        for (message, separated, _), text, tags, segments, number, line in zip(
            messages, texts, extracted, segments_by_line, numbers, lines, strict=True
        ):
            self._statistics.count_segments(segments, number + 1)
            tokens = [(segment, next(encoded)) for segment in segments]
            sources = [self._split(own, number) if segment.has_words else [] for segment, own in tokens]
            segmented.append(SegmentedLine(text, tags, segments, sources, number, line, message is None, separated))
        return segmented

    def encode_pairs(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Return the tokens of both sides of pairs as they are trained on, but without typing errors in the sources."""
        prepared = [self._layer.prepare_pair(source, target) for source, target in zip(sources, targets, strict=True)]
        if self._layer.spelling and self._layer.corrects_typos(self._config.correct_typos):
            prepared = [(self._layer.spelling.correct(source)[0], target) for source, target in prepared]
        return (
            self._layer.tokenizers.source.encode([source for source, _ in prepared]),
            self._layer.tokenizers.target.encode([target for _, target in prepared]),
        )

    def _separated(
        self,
        text: str,
        arguments: Sequence[Argument],
        number: int,
        kind: MarkupKind | None,
        syntax: str,
        terms: TermFinder | None,
    ) -> tuple[str, dict[str, SeparateTexts]]:
        """Return a line with stand-ins for its arguments, and the arguments with their segmented texts by stand-in."""
        name = next(name for name in map("m".__mul__, count(1)) if f"{{{name}" not in text)
        by_stand_in = {}
        for index, (start, end, spans) in enumerate(arguments):
            parts = [text[first:last] for first, last in spans]
            own = len(parts)
            segmented_parts = self.segment(parts, [number] * own, [kind] * own, [syntax] * own, terms)
            own_spans = [(first - start, last - start) for first, last in spans]
            by_stand_in[f"{{{name}{index}}}"] = SeparateTexts(text[start:end], own_spans, segmented_parts)
        return replace_spans(text, [argument[:2] for argument in arguments], list(by_stand_in)), by_stand_in

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


def _blocks(page: str) -> list[Argument]:
    """Return HTML as an argument with the texts of its blocks; nothing if it is a single text."""
    pieces = cut_into_blocks(page)
    ends = accumulate(map(len, pieces))
    spans = [(end - len(piece), end) for piece, end in list(zip(pieces, ends, strict=True))[::2] if piece.strip()]
    return [Argument(0, len(page), spans)] if len(pieces) > 1 else []


def check_lines(lines: Sequence[str]) -> None:
    """Raise TypeError unless the value is a list of strings."""
    # A string is a sequence of strings, too; each of its characters would be translated by itself.
    if isinstance(lines, str):
        raise TypeError("a list of lines is needed, not one string: pass [line]")
    for number, line in enumerate(lines):
        if not isinstance(line, str):
            raise TypeError(f"element {number} of the list of lines is {line!r:.50}: each line must be a string")
