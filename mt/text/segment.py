"""A segment of a source line on its way through the text layer, and the interface of the phenomena that prepare it."""

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
    """A corrected word: its position in the corrected text, and the misspelled word that was typed."""

    start: int
    end: int
    """The position of the word in the corrected text."""
    typed: str


class Nested(str):
    """A text inside a sentence, as it is written, that is translated by itself. The model does not read this value."""

    segments: "list[Segment]"
    """Its segments."""


class Term(str):
    """A term as the source has it, which is a value of the text layer, with its target forms."""

    forms: tuple[str, ...]
    plain: str
    """The term as the model reads it: as it is written or, if the glossary has it in another casing, as there."""

    def __new__(cls, written: str, forms: tuple[str, ...], plain: str = "") -> Self:
        term = super().__new__(cls, written)
        term.forms = forms
        term.plain = plain or written
        return term


@dataclass(frozen=True)
class Segment:
    """A part of a source line that is translated by itself, mostly a sentence, with all that its restoration needs.

    Until its edges are split off, all its values have ``placeholder(0)``, and all terms ``placeholder(-1)``.
    """

    text: str
    """The prepared text, the tokenizer's input; "": the segment has nothing to translate, only ``before``."""
    values: tuple[str, ...] = ()
    """The values of the text's placeholders, in order."""
    written: str = ""
    """The text with its placeholders, before it was lowercased and corrected."""
    case: Case | None = None
    """The case of the whole sentence; None if it is mixed."""
    corrections: tuple[Correction, ...] = ()
    """The corrected typing errors of the text, in order."""
    added: str = ""
    """The final punctuation that was added to the text; "" if none was."""
    before: str = ""
    """Whitespace and values in front of the text, which come back unchanged."""
    after: str = ""
    """Whitespace and values behind the text, which come back unchanged."""
    is_continued: bool = False
    """Whether the next segment continues the same sentence, which was too long or had too many values."""
    tag: str = ""
    """The tag of the target language in front of the line, with its space."""
    begins: bool = field(default=True, compare=False)
    """Whether this is the first segment of its sentence."""
    start: int = field(default=0, compare=False)
    """The position in the line of the column that the segment is a part of."""

    @cached_property
    def source(self) -> str:
        """The text for the tokenizer: ``masked`` with terms instead of their placeholders."""
        return self.masked.translate({ord(token): term.plain for token, term in self.terms.items()})

    @cached_property
    def masked(self) -> str:
        """The tag, and the text without the placeholders of anchors."""
        return self.tag + self.text.translate(str.maketrans("", "", "".join(self.anchors)))

    @cached_property
    def anchors(self) -> dict[str, str]:
        """The placeholders of brackets, quotation marks and nested texts with their values, in the order of ``text``.
        Word alignment puts them back, as it does with tags."""
        return {
            token: value
            for token, value in self.by_placeholder.items()
            if isinstance(value, Nested) or BRACKET.fullmatch(value)
        }

    @property
    def nested(self) -> dict[str, Nested]:
        """The placeholders of nested texts with these, in the order of ``text``."""
        return {token: value for token, value in self.by_placeholder.items() if isinstance(value, Nested)}

    @cached_property
    def terms(self) -> dict[str, Term]:
        """The placeholders of terms with their terms, in the order of ``text``."""
        return {token: value for token, value in self.by_placeholder.items() if isinstance(value, Term)}

    @property
    def has_words(self) -> bool:
        """Whether it has more than terms. Otherwise the model is not asked for a translation."""
        return not self.terms or LETTER.search(self.masked) is not None

    @cached_property
    def by_placeholder(self) -> dict[str, str]:
        """The placeholders of ``text`` with their values, in order."""
        return dict(zip(PLACEHOLDER.findall(self.text), self.values, strict=True)) if self.values else {}

    def reorder_symbols(self, translation: str) -> str:
        """Return a translation with the placeholders of symbols in the order of the source."""
        symbols = [
            token
            for token, value in self.by_placeholder.items()
            if not IN_WORD.search(value) and token not in self.anchors
        ]
        translated_symbols = [character for character in translation if character in symbols]
        return translation.translate(dict(zip(map(ord, translated_symbols), symbols, strict=True)))

    def changed(self, **fields: Any) -> "Segment":
        """Return the segment with other values of fields; itself if all are the same, as mostly."""
        return self if fields.items() <= vars(self).items() else replace(self, **fields)

    def cut(self, starts: Sequence[int]) -> list["Segment"]:
        """Cut the segment, whose edges are not split off yet, into parts of a sentence.

        Args:
            starts: The position of ``text`` at which each part begins. The first is 0.
        """
        values = iter(self.values)
        return [
            replace(
                self,
                text=self.text[start:end],
                written=self.written[start:end],
                values=tuple(islice(values, len(PLACEHOLDER.findall(self.text, start, end)))),
                before="" if start else self.before,
                begins=not start,
                is_continued=end < len(self.text),
            )
            for start, end in pairwise([*starts, len(self.text)])
        ]

    def with_values(self, spans: Sequence[Span], are_nested: bool) -> "Segment":
        """Return the segment, before it is lowercased or corrected, with the text of each span as a value.

        Args:
            spans: The spans of ``text``, in order.
            are_nested: Whether they are nested texts.
        """
        parts = self.cut([0, *chain.from_iterable(spans)])
        for index in range(1, len(parts), 2):
            value = Nested(fill_placeholders(parts[index].text, parts[index].values))
            value.segments = [replace(parts[index], before="", begins=True, is_continued=False)]
            parts[index] = Segment(placeholder(0), (value if are_nested else str(value),))
        text = "".join(part.text for part in parts)
        return replace(self, text=text, written=text, values=tuple(chain.from_iterable(part.values for part in parts)))

    def flatten(self) -> "Iterator[Segment]":
        """Yield the segment, then the segments of its nested texts, with theirs."""
        yield self
        for nested in self.nested.values():
            for segment in nested.segments:
                yield from segment.flatten()

    @property
    def copied(self) -> list[str]:
        """The source's spelling of each character of ``text``, for a translation that is a copy of ``text``."""
        end = len(self.text) - len(self.added)
        lengths = [1] * end + [0] * len(self.added)
        for correction in self.corrections:
            lengths[correction.end - 1] += len(correction.typed) - (correction.end - correction.start)
        return [self.written[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]


class Request(NamedTuple):
    """The options of preparing one line."""

    find: Callable[[str, Sequence[Span]], list[tuple[Span, str]]]
    """Finds the values of a text, given the spans of its elements."""
    elements: Sequence[Span] = ()
    """The spans of elements whose tags were removed from the line. Only terms cross the border of one."""
    split: bool = True
    """Whether to split a line of more sentences than lines of the training text have."""
    correct: bool = True
    """Whether to correct typing errors."""
    max_tokens: int | None = None
    """The length in tokens from which a sentence is cut; None: that of nearly all training sources."""
    tag: str = ""
    """The tag of the target language in front of the line, with its space."""


Vary = Callable[[str, str, str, np.random.Generator], tuple[str, str]]
"""Returns a changed source and target, given a source, its target, the source language and random numbers."""


Pairs = Callable[[], Iterable[tuple[str, str]]]
"""Returns training pairs, which are evenly spaced in the corpus."""


class LayerState(Protocol):
    """The part of a ``TextLayer`` that its phenomena read."""

    config: TextLayerDescription
    tokenizers: TokenizerPair
    source_language: str
    target_language: str
    placeholder_count: int


class Phenomenon:
    """A phenomenon of text that models do not translate well by themselves, such as casing or typing errors.

    A ``TextLayer`` holds its phenomena in order. Each overrides the methods that it needs. Its settings and what it has
    learned are fields of the layer's description in ``mt.storage.model_description``; the settings are in
    ``mt.config.text``.
    """

    variations: ClassVar[dict[str, Vary]] = {}
    """How pairs are varied, for training and for tests of robustness. The key is the setting of AugmentationConfig for
    the share of the pairs."""

    def __init__(self, layer: LayerState) -> None:
        self.layer = layer

    @staticmethod
    def learn(pairs: Pairs, language: str) -> dict[str, object]:
        """Learn fields of TextLayerDescription from training pairs with this source language."""
        return {}

    def find(self, text: str, side: int, syntax: str) -> list[Span]:
        """Return the spans of a text that are not translated and come back whole, in any order. They may overlap.

        Args:
            text: The text.
            side: 0 for the source language, 1 for the target language.
            syntax: A key of SYNTAXES, whose placeholders are values, too.
        """
        return []

    def take(self, segment: Segment, request: Request) -> Iterable[Segment]:
        """Prepare a segment, which is not empty, for the model: change it, cut it, or set a part aside."""
        return [segment]

    def prepare(self, source: Segment, target: str) -> tuple[Segment, str]:
        """Prepare the two sides of a training pair, as far as ``take`` changes words. The pair is not cut."""
        return source, target

    def put(self, segment: Segment, translation: str, parts: list[str]) -> list[str]:
        """Undo ``take`` in a translation that is no copy of the source.

        Args:
            segment: The prepared segment.
            translation: Its translation, with each placeholder once.
            parts: The replacement of each character of the translation so far.

        Returns:
            The new replacements.
        """
        return parts

    def rejects(self, source: str, translation: str) -> bool:
        """Return whether a model's output must not be the translation of a source, the text of a segment."""
        return False
