"""The results of a translator (texts, scores, attention maps), and its statistics."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from torch import Tensor

from mt.core.coded_text import CodedText
from mt.models.attention import AttentionMap
from mt.text.segment import Segment

logger = logging.getLogger(__name__)

LINE_BREAK_CHARACTERS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
LINE_BREAKS = re.compile(f"[{LINE_BREAK_CHARACTERS}]+")
"""Line breaks as in ``str.splitlines``, because some programs treat each of these characters as the end of a line."""
MAX_CORRECTION_EXAMPLES = 5
"""The number of corrected typing errors in a message."""

Alignment = list[tuple[int, int]]
"""Pairs of the indices of a source word and a target word that translate each other, counted from 0."""


@dataclass(frozen=True)
class ScoredText:
    """A translation and its score, log P(translation | source) / lengthᵅ.

    The score is None if there was nothing to score, or if the text is too long for the model.
    """

    text: str
    score: float | None
    alignment: Alignment | None = None
    """The word alignment, in which tags do not count as words; None if it was not requested."""
    is_source: bool = False
    """Whether the source, or a part of it such as a block of HTML, was left untranslated because a placeholder could
    not be repaired or a message could not be parsed."""
    confidence: float | None = None
    """The probability that the sentence chrF2 of the translation is at least 50. It is None if it was not requested,
    the model translated nothing, the glossary inserted a term, or this is not the best translation of its line."""
    has_inserted_term: bool = False
    """Whether the glossary inserted a term that the model had not written."""
    coded: CodedText = CodedText("")
    """The translation as a coded text."""


class AttentionArrays(NamedTuple):
    """The attention of one module for one sentence pair, as float32 arrays (heads, queries, keys)."""

    queries: list[str]
    """The token of each query. In the decoder, it is the token that the query's position predicts."""
    keys: list[str]
    """The token of each key."""
    weights: np.ndarray
    """The weights. Those of a query sum to one."""
    scores: np.ndarray
    """The scores before the softmax."""
    mask: np.ndarray
    """1 where a query may attend to a key, otherwise 0."""


class SentenceAttention(NamedTuple):
    """The attention maps of one sentence pair under forced decoding.

    The tokens include EOS. Placeholders are shown as ⟨1⟩, ⟨2⟩, … in order of appearance.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    maps: dict[str, AttentionMap]
    """The map of each attention by its module name, e.g. ``decoder.layers.0.cross_attention``; weights (1, H, T, S)."""

    def cross_attention(self) -> list[Tensor]:
        """Return the weights (H, T, S) of the decoder's attention to the source, layer by layer."""
        return [
            attention_map.weights[0] for name, attention_map in self.maps.items() if name.endswith("cross_attention")
        ]

    def cross(self) -> list[Tensor]:
        """Return ``cross_attention()``, which had this name in version 1."""
        return self.cross_attention()

    def arrays(self) -> dict[str, AttentionArrays]:
        """Return the attention of each module by its name, as NumPy arrays with the tokens of queries and keys."""
        source, target = self.source_tokens, self.target_tokens
        arrays = {}
        for name, attention_map in self.maps.items():
            if name.startswith("encoder"):
                tokens = source, source
            elif name.endswith("cross_attention"):
                tokens = target, source
            else:
                tokens = target, ["<s>", *target[:-1]]
            tensors = attention_map.weights, attention_map.scores, attention_map.mask
            arrays[name] = AttentionArrays(*tokens, *(tensor[0].float().cpu().numpy() for tensor in tensors))
        return arrays


@dataclass
class Statistics:
    """Counts over all lines that one ``Translator`` has translated so far."""

    items: int = 0
    """Values, such as numbers and URLs, that were replaced by placeholders."""
    repaired_items: int = 0
    """Placeholders that the model omitted or repeated, so that they were inserted or removed."""
    untranslated_lines: int = 0
    """Lines that were left untranslated; see ``ScoredText.is_source``."""
    first_untranslated_line: int | None = None
    """The number of the first such line, counted from 1."""
    corrections: int = 0
    """Corrected typing errors."""
    first_corrections: dict[str, str] = field(default_factory=dict)
    """The first typing errors with their corrections, one more than MAX_CORRECTION_EXAMPLES if there are more."""
    loops: int = 0
    """Sentences that were searched again because their translation repeated itself."""
    long_sentences: int = 0
    """Sentences that were cut into several segments."""
    first_long_line: int | None = None
    """The number of the first line with a long sentence, counted from 1."""
    split_segments: int = 0
    """Segments that were cut into several sources, because they had more tokens than a source may have."""
    first_split_line: int | None = None
    """The number of the first line with such a segment, counted from 1."""

    def count_segments(self, segments: Sequence[Segment], line: int) -> None:
        """Count the corrections and the long sentences of a line. ``line`` is its number, counted from 1."""
        continued = [False, *(segment.is_continued for segment in segments)]
        long_sentences = sum(this and not before for before, this in pairwise(continued))
        if long_sentences:
            # Lines are not counted in order: the parts of a line are counted before other lines.
            self.first_long_line = min(line, self.first_long_line or line)
        self.long_sentences += long_sentences
        for segment in segments:
            self.corrections += len(segment.corrections)
            for correction in segment.corrections:
                if len(self.first_corrections) <= MAX_CORRECTION_EXAMPLES:
                    self.first_corrections.setdefault(correction.typed, segment.text[correction.start : correction.end])

    def count_untranslated(self, line: int) -> None:
        """Count a line that was left untranslated. ``line`` is its number, counted from 1."""
        self.untranslated_lines += 1
        self.first_untranslated_line = self.first_untranslated_line or line

    def count_split_segment(self, line: int) -> None:
        """Count a segment that was cut into several sources. ``line`` is the number of its line, counted from 1."""
        self.split_segments += 1
        self.first_split_line = min(line, self.first_split_line or line)

    def add(self, other: "Statistics") -> None:
        """Add the counts over other lines."""
        for name, value in vars(other).items():
            total = getattr(self, name)
            if isinstance(value, dict):
                total |= value
            elif name.startswith("first_"):
                total = min((line for line in (total, value) if line is not None), default=None)
            else:
                total += value
            setattr(self, name, total)

    def log(self, are_lines: bool) -> None:
        """Log the counts that users should know.

        Args:
            are_lines: Whether the line numbers are those of the input, so that messages give them. For documents, they
                are not.
        """
        if self.repaired_items:
            logger.warning(
                "of %s links, numbers and the like, the model omitted or repeated %s: they were inserted or removed; "
                "check their positions in the translation",
                f"{self.items:,}",
                f"{self.repaired_items:,}",
            )
        if self.untranslated_lines:
            logger.warning(
                "lines left untranslated: %s%s, because a link, placeholder or tag was missing, repeated or split in "
                "the translation, or a message such as {n, plural, …} could not be parsed; correct the message, "
                "translate these lines by hand, or set decoding.unrepaired=translation",
                f"{self.untranslated_lines:,}",
                f", the first is line {self.first_untranslated_line}" if are_lines else "",
            )
        if self.loops:
            logger.warning(
                "translations in which the same words were repeated over and over, so that they were searched again "
                "without repetitions: %s; check the source text",
                f"{self.loops:,}",
            )
        if self.long_sentences:
            logger.info(
                "sentences translated in parts, because they are longer than nearly all of the training text, or have "
                "too many links and numbers: %s%s",
                f"{self.long_sentences:,}",
                f", the first in line {self.first_long_line}" if are_lines else "",
            )
        if self.split_segments:
            logger.warning(
                "sentences translated in parts, because they have more tokens than decoding.max_source_length or the "
                "model's positions allow: %s%s; shorten them or, if the model has more positions, increase "
                "decoding.max_source_length",
                f"{self.split_segments:,}",
                f", the first in line {self.first_split_line}" if are_lines else "",
            )
        if self.corrections:
            examples = [f"{typed} → {word}" for typed, word in self.first_corrections.items()]
            logger.info(
                "words that are not in the training text, corrected as typing errors: %s (%s%s); "
                "decoding.correct_typos=false disables these corrections",
                f"{self.corrections:,}",
                ", ".join(examples[:MAX_CORRECTION_EXAMPLES]),
                " …" if examples[MAX_CORRECTION_EXAMPLES:] else "",
            )
