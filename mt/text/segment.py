"""The segments of a source line, and the interface of the phenomena that prepare them for the model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import regex

from mt.core.coded_text import Span
from mt.storage.model_description import TextLayerDescription
from mt.text.brackets import BRACKET
from mt.text.placeholders import PLACEHOLDER, fill_placeholders, placeholder
from mt.tokenizer.tokenizer import FIRST_SYMBOL, TokenizerPair

LETTER = regex.compile(rf"[\p{{L}}{chr(FIRST_SYMBOL)}-\U0010ffff]")
"""A letter, or a user-defined symbol."""
IN_WORD = regex.compile(r"[\w\p{M}]")


class Case(Enum):
    """The case of a whole sentence."""

    UPPER = auto()
    TITLE = auto()
    LOWER = auto()


class Correction(NamedTuple):
    """A corrected typing error."""

    start: int
    end: int
    """The start and end of the correct word in the corrected text."""
    typed: str
    """The misspelled word."""


class NestedText(str):
    """A text inside a sentence that is translated by itself, such as a remark in brackets.

    It is a value of the sentence. Its placeholder is hidden from the model, as those of brackets are.
    """

    segments: "list[Segment]"


class Term(str):
    """A glossary term in the spelling of the source, which is a value of the segment."""

    forms: tuple[str, ...]
    """Its target forms."""
    model_text: str
    """The text that the model reads: the term in the casing of the glossary."""

    def __new__(cls, source_text: str, forms: tuple[str, ...], model_text: str = "") -> Self:
        term = super().__new__(cls, source_text)
        term.forms = forms
        term.model_text = model_text or source_text
        return term


@dataclass(frozen=True)
class Segment:
    """A part of a source line that is translated by itself, usually a sentence, with data to restore its translation.

    Until ``Edges`` has prepared the segment, all values have ``placeholder(0)``, and all terms ``placeholder(-1)``.
    Afterwards, each has a placeholder of its own.
    """

    text: str
    """The prepared text with placeholders; "" if only ``before`` is left, so that nothing is translated."""
    values: tuple[str, ...] = ()
    """The values of the text's placeholders, in order."""
    original: str = ""
    """The text with its placeholders, before its casing and spelling were changed."""
    case: Case | None = None
    """The case of the whole sentence; None if it is mixed."""
    corrections: tuple[Correction, ...] = ()
    """The corrected typing errors of the text, in order."""
    added_punctuation: str = ""
    """The final punctuation that was added to the text; "" if none was."""
    before: str = ""
    """Whitespace and values in front of the text. They are copied to the translation."""
    after: str = ""
    """Whitespace and values behind the text. They are copied to the translation."""
    is_continued: bool = False
    """Whether the next segment continues the sentence, because the sentence is too long or has too many values."""
    tag: str = ""
    """The tag of the target language in front of the line, such as ``<2fr>``, with its space."""
    is_sentence_start: bool = field(default=True, compare=False)
    """Whether this is the first segment of its sentence."""
    start: int = field(default=0, compare=False)
    """The position of the segment's column in the line. Columns are separated by tabs."""

    @cached_property
    def source(self) -> str:
        """The input of the tokenizer: ``masked`` with the terms in place of their placeholders."""
        return self.masked.translate({ord(token): term.model_text for token, term in self.terms.items()})

    @cached_property
    def masked(self) -> str:
        """The tag, followed by the text without the placeholders of ``anchors``."""
        return self.tag + self.text.translate(str.maketrans("", "", "".join(self.anchors)))

    @cached_property
    def anchors(self) -> dict[str, str]:
        """Map the placeholders of brackets, quotation marks and nested texts to their values, in the order of ``text``.

        The model does not read these placeholders. Word alignment inserts them into the translation, as it does tags.
        """
        return {
            token: value
            for token, value in self.by_placeholder.items()
            if isinstance(value, NestedText) or BRACKET.fullmatch(value)
        }

    @property
    def nested(self) -> dict[str, NestedText]:
        """Map the placeholders of nested texts to these texts, in the order of ``text``."""
        return {token: value for token, value in self.by_placeholder.items() if isinstance(value, NestedText)}

    @cached_property
    def terms(self) -> dict[str, Term]:
        """Map the placeholders of terms to the terms, in the order of ``text``."""
        return {token: value for token, value in self.by_placeholder.items() if isinstance(value, Term)}

    @property
    def has_words(self) -> bool:
        """Whether the model has to translate the segment. The glossary alone translates a segment of terms only."""
        return not self.terms or LETTER.search(self.masked) is not None

    @cached_property
    def by_placeholder(self) -> dict[str, str]:
        """Map the placeholders of ``text`` to their values, in order."""
        return dict(zip(PLACEHOLDER.findall(self.text), self.values, strict=True)) if self.values else {}

    def reorder_symbols(self, translation: str) -> str:
        """Return a translation with the placeholders of symbols, such as emoji, in the order of the source."""
        symbols = [
            token
            for token, value in self.by_placeholder.items()
            if not IN_WORD.search(value) and token not in self.anchors
        ]
        translated_symbols = [character for character in translation if character in symbols]
        return translation.translate(dict(zip(map(ord, translated_symbols), symbols, strict=True)))

    def evolve(self, **fields: Any) -> "Segment":
        """Return the segment with other values of some fields. If none differs, which is usual, return ``self``."""
        return self if fields.items() <= vars(self).items() else replace(self, **fields)

    def split_at(self, starts: Sequence[int]) -> list["Segment"]:
        """Split the segment into parts of its sentence, before ``Edges`` has prepared it.

        Args:
            starts: The position in ``text`` at which each part begins. The first is 0.
        """
        values = iter(self.values)
        return [
            replace(
                self,
                text=self.text[start:end],
                original=self.original[start:end],
                values=tuple(islice(values, len(PLACEHOLDER.findall(self.text, start, end)))),
                before="" if start else self.before,
                is_sentence_start=not start,
                is_continued=end < len(self.text),
            )
            for start, end in pairwise([*starts, len(self.text)])
        ]

    def with_values(self, spans: Sequence[Span], are_nested: bool) -> "Segment":
        """Replace spans of the text by placeholders, before its casing or spelling is changed, and return the segment.

        Args:
            spans: The spans of ``text``, in order. Their texts become values.
            are_nested: Whether the values are nested texts.
        """
        parts = self.split_at([0, *chain.from_iterable(spans)])
        for index in range(1, len(parts), 2):
            value = NestedText(fill_placeholders(parts[index].text, parts[index].values))
            value.segments = [replace(parts[index], before="", is_sentence_start=True, is_continued=False)]
            parts[index] = Segment(placeholder(0), (value if are_nested else str(value),))
        text = "".join(part.text for part in parts)
        return replace(self, text=text, original=text, values=tuple(chain.from_iterable(part.values for part in parts)))

    def flatten(self) -> "Iterator[Segment]":
        """Yield the segment, then the segments of its nested texts and of texts nested in these."""
        yield self
        for nested in self.nested.values():
            for segment in nested.segments:
                yield from segment.flatten()

    @property
    def copied_characters(self) -> list[str]:
        """The original spelling of each character of ``text``, for a translation that is a copy of ``text``."""
        end = len(self.text) - len(self.added_punctuation)
        lengths = [1] * end + [0] * len(self.added_punctuation)
        for correction in self.corrections:
            lengths[correction.end - 1] += len(correction.typed) - (correction.end - correction.start)
        return [self.original[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]


class Request(NamedTuple):
    """The options of preparing one line."""

    find_values: Callable[[str, Sequence[Span]], list[tuple[Span, str]]]
    """Finds the values of a text, given the spans of its elements."""
    elements: Sequence[Span] = ()
    """The spans of the elements whose tags were removed from the line. No values but terms cross the edge of one."""
    split: bool = True
    """Whether to split a line with more sentences than usual into sentences."""
    correct: bool = True
    """Whether to correct typing errors."""
    max_tokens: int | None = None
    """Maximum number of tokens of a sentence that is not split; None: ``long_source`` of the layer's description."""
    tag: str = ""
    """The tag of the target language in front of the line, with its space."""


Vary = Callable[[str, str, str, np.random.Generator], tuple[str, str]]
"""Returns a variant of a pair, given its source, its target, the source language and a random generator."""


Pairs = Callable[[], Iterable[tuple[str, str]]]
"""Returns a sample of the training pairs, evenly spaced in the corpus."""


class LayerState(Protocol):
    """The part of a ``TextLayer`` that its phenomena read."""

    config: TextLayerDescription
    tokenizers: TokenizerPair
    source_language: str
    target_language: str
    placeholder_count: int


class Phenomenon:
    """A feature of text that models do not translate well by themselves, such as uppercase or typing errors.

    A ``TextLayer`` applies its phenomena in order. A subclass overrides the methods that it needs. Settings and learned
    data of a phenomenon are fields of ``TextLayerDescription`` in ``mt.storage.model_description``; the settings are
    documented in ``mt.config.text``.
    """

    variations: ClassVar[dict[str, Vary]] = {}
    """Functions that plant the phenomenon into pairs, for training and for robustness tests. The key is the field of
    AugmentationConfig with the share of the pairs."""

    def __init__(self, layer: LayerState) -> None:
        self.layer = layer

    @staticmethod
    def learn(pairs: Pairs, language: str) -> dict[str, object]:
        """Learn fields of TextLayerDescription from training pairs with this source language."""
        return {}

    def find_values(self, text: str, side: int, syntax: str) -> list[Span]:
        """Return the spans of the values of a text: parts that are copied, not translated. They may overlap.

        Args:
            text: The text.
            side: 0 for the source language, 1 for the target language.
            syntax: A key of SYNTAXES. Placeholders of this syntax are values, too.
        """
        return []

    def prepare_segment(self, segment: Segment, request: Request) -> Iterable[Segment]:
        """Prepare a segment with text for the model: change it, split it, or move a part of it to an edge."""
        return [segment]

    def prepare_pair(self, source: Segment, target: str) -> tuple[Segment, str]:
        """Prepare the two sides of a training pair, with those changes of ``prepare_segment`` that do not split it."""
        return source, target

    def restore(self, segment: Segment, translation: str, parts: list[str]) -> list[str]:
        """Undo ``prepare_segment`` in a translation that does not equal the source.

        Args:
            segment: The prepared segment.
            translation: Its translation, with each placeholder once.
            parts: The replacement of each character of the translation so far.

        Returns:
            The new replacements.
        """
        return parts

    def rejects(self, source: str, translation: str) -> bool:
        """Return whether a model's output must not be used as the translation of a source, the text of a segment."""
        return False
