"""Cuts lines into segments, and encodes the segments as the sources that an engine translates."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import regex

from mt.config import MAX_SOURCE_TOKENS, DecodingConfig
from mt.text.layer import TextLayer
from mt.text.markup.extraction import Markup, extract_markup
from mt.text.markup.tags import MarkupKind
from mt.text.segmentation.segment import Segment
from mt.text.subwords.sampling import WORD_START
from mt.translation.results import Statistics

INVISIBLE = regex.compile("(?<=\\p{L})[\u00ad\u200b\u2060\ufeff]+(?=\\p{L})(?![^<>]*>)")
"""Soft hyphens and the like inside a word, which its translation has no place for."""

logger = logging.getLogger(__name__)


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

    @property
    def sources(self) -> list[list[int]]:
        """The sources of all segments, flattened, in order."""
        return list(chain.from_iterable(self.segment_sources))


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
            statistics: The translator's counts, to which corrections and long sentences are added.
        """
        self._layer = layer
        self._config = config
        self._statistics = statistics
        given = config.max_source_length
        max_tokens = MAX_SOURCE_TOKENS if given == "auto" else given
        self.max_tokens = max_tokens if max_length is None else min(max_tokens, max_length - 1)
        """Maximum number of tokens, without EOS, of a source or target."""
        self._limited_by = (
            "the model's positions" if max_length == self.max_tokens + 1 else "decoding.max_source_length"
        )

    def cut(
        self, lines: Sequence[str], numbers: Sequence[int], markup: Sequence[MarkupKind | None]
    ) -> list[SegmentedLine]:
        """Cut each line into segments and sources, and add to the statistics.

        Args:
            lines: The lines.
            numbers: The number of each line, counted from 0, for messages.
            markup: The kind of tags of each line; None for plain text. ``decoding.markup=auto`` finds pairs in it.
        """
        layer, config = self._layer, self._config
        split, correct = config.split_sentences == "auto", layer.corrects_typos(config.correct_typos)
        max_tokens = None if config.max_source_length == "auto" else self.max_tokens
        if layer.config.enabled:
            lines = [INVISIBLE.sub("", line) for line in lines]
        found: MarkupKind | None = "auto" if config.markup == "auto" and layer.config.enabled else None
        extracted: list[Markup | None] = []
        for line, kind in zip(lines, markup, strict=True):
            kind = kind or found
            tags = kind and extract_markup(line, kind)
            extracted.append(None if tags and kind == "auto" and len(tags.nodes) == 1 else tags or None)
        texts = [line if tags is None else tags.text for line, tags in zip(lines, extracted, strict=True)]
        marked = [
            layer.cut(text, split, correct, max_tokens, tags.elements if tags else ()) if text.strip() else []
            for text, tags in zip(texts, extracted, strict=True)
        ]
        # All lines in one call, because SentencePiece starts its threads anew at every call.
        encoded = iter(layer.tokenizers.source.encode([segment.source for segments in marked for segment in segments]))
        cut = []
        for text, tags, segments, number in zip(texts, extracted, marked, numbers, strict=True):
            self._statistics.count_segments(segments, number + 1)
            cut.append(SegmentedLine(text, tags, segments, [self._split(next(encoded), number) for _ in segments]))
        return cut

    def _split(self, tokens: list[int], line: int) -> list[list[int]]:
        """Split the tokens of a segment into sources of at most ``max_tokens`` tokens, and warn if there are several.

        Each source begins with the language token of the segment, if there is one.
        """
        if len(tokens) <= self.max_tokens:
            return [tokens] if tokens else []
        tokenizer = self._layer.tokenizers.source
        names = tokenizer.subwords(tokens)
        language = tokenizer.language_of(tokens)  # each list starts with it
        sources, start = [], len(language)
        room = max(1, self.max_tokens - len(language))
        while len(tokens) - start > room:
            end = start + room
            # Cut between words rather than inside one, if a word begins in the second half of the list.
            word_starts = (n for n in range(end, start + room // 2, -1) if names[n].startswith(WORD_START))
            end = next(word_starts, end)
            sources.append(language + tokens[start:end])
            start = end
        sources.append(language + tokens[start:])
        logger.warning(
            "line %d has %d tokens, more than the %d of %s: translated in %d parts; shorten the line for a "
            "better translation",
            line + 1,
            len(tokens),
            self.max_tokens,
            self._limited_by,
            len(sources),
        )
        return sources
