"""The text layer: prepares a source line for the tokenizer, and restores the translation.

A text layer is a list of phenomena (``mt.text.segment``). Each prepares the segments that its predecessor returns:

1. ``Columns`` separates the columns between tabs, and sets bullets and the numbers of lists aside.
2. ``Values`` replaces values, such as numbers and URLs, by placeholders (``mt.text.values``). Brackets and quotation
   marks are values, too. The model does not read their placeholders; word alignment inserts them into the translation
   (``mt.text.brackets``).
3. ``Sentences`` splits a line with more sentences than usual into sentences (``mt.text.sentences``).
4. ``Parts`` splits labels, direct speech and brackets off, and extracts nested texts (``mt.text.parts``).
5. ``Casing`` lowercases sentences in uppercase or title case (``mt.text.casing``).
6. ``LongSentences`` splits sentences that are too long.
7. ``Edges`` splits off whitespace, symbols and values at the ends of segments.
8. ``Characters`` replaces typographic apostrophes and hyphens that the training text lacks (``mt.text.characters``).
9. ``Spelling`` corrects typing errors, and restores the casing of names (``mt.text.spelling``).
10. ``FinalPunctuation`` adds missing final punctuation (``mt.text.final_punctuation``).

The tag of a target language in front of the line is removed before these steps, and added to each segment afterwards
(``mt.text.target_tags``).

Two more phenomena do not change segments. ``Acronyms`` finds values (``mt.text.acronyms``), and ``Numbers`` rejects
translations with numbers that the source lacks (``mt.text.numbers``).

``TextLayer.restore`` undoes the steps in the translation of a segment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Literal

from mt.config.text import Terms
from mt.core.coded_text import Span, Splice, apply_splices
from mt.core.files import UNDECODABLE
from mt.core.language import Direction, between_words
from mt.storage.model_description import TextLayerDescription
from mt.text.acronyms import Acronyms
from mt.text.brackets import BRACKET
from mt.text.casing import Casing
from mt.text.characters import Characters
from mt.text.final_punctuation import FinalPunctuation
from mt.text.numbers import Numbers
from mt.text.parts import Parts
from mt.text.placeholders import PLACEHOLDER, assign_placeholders, count_placeholders
from mt.text.segment import Pairs, Phenomenon, Request, Segment
from mt.text.sentences import EDGE_MARK, Columns, Edges, LongSentences, Sentences
from mt.text.spelling import Spelling
from mt.text.target_tags import learn_tags, split_tag
from mt.text.terms import TermFinder, values_with_terms
from mt.text.values import Replacement, Values, find_values_in_elements, merge_spans, shared_values
from mt.tokenizer.tokenizer import TokenizerPair

PHENOMENA: Sequence[type[Phenomenon]] = (
    Columns,
    Values,
    Acronyms,
    Numbers,
    Sentences,
    Parts,
    Casing,
    LongSentences,
    Edges,
    Characters,
    Spelling,
    FinalPunctuation,
)
"""All phenomena, in the order in which they prepare a line."""
VARIATIONS = {name: vary for phenomenon in PHENOMENA for name, vary in phenomenon.variations.items()}
"""Functions that vary a pair, by the field of AugmentationConfig with the share of pairs."""


def learn_from_text(pairs: Pairs, language: str) -> dict[str, object]:
    """Learn fields of TextLayerDescription from training pairs with this source language."""
    learned = {name: value for kind in PHENOMENA for name, value in kind.learn(pairs, language).items()}
    return learned | {"tags": learn_tags(pairs())}


@dataclass(eq=False)
class TextLayer:
    """The reversible preparation of text for one model.

    - ``segment`` prepares a source line: it returns segments with placeholders.
    - ``restore`` inserts the values, and restores the casing and the edges, in the translation of a segment.
    - ``prepare_pair`` prepares a training pair. It does not split it.
    """

    config: TextLayerDescription
    tokenizers: TokenizerPair
    source_language: str
    target_language: str
    spelling: Spelling | None = None
    """The word counts of the training text; None: typing errors are not corrected."""
    terms: Terms = field(default_factory=dict)
    """The glossary."""

    def __post_init__(self) -> None:
        self.between = tuple(map(between_words, self.direction))
        """The separator of words in the source language and in the target language: a space or nothing."""
        self.placeholder_count = count_placeholders(self.tokenizers)
        kinds = PHENOMENA if self.config.enabled else ()
        phenomena = [self.spelling if kind is Spelling else kind(self) for kind in kinds]
        self.phenomena: list[Phenomenon] = list(filter(None, phenomena))
        """The phenomena in order; empty if the text layer is off."""
        self._terms = TermFinder(self.terms, self.source_language)
        self.hide_symbols = self.tokenizers.source.hide_symbols
        """Replaces the user-defined symbols of a text by the characters that stand for them on both sides."""
        self.show_symbols = self.tokenizers.source.show_symbols

    def __reduce__(self) -> tuple:
        return TextLayer, (self.config, self.tokenizers, *self.direction, self.spelling, self.terms)

    @property
    def direction(self) -> Direction:
        return Direction(self.source_language, self.target_language)

    def corrects_typos(self, setting: Literal["auto"] | bool) -> bool:
        """Return whether typing errors are corrected, given ``decoding.correct_typos``."""
        return self.spelling is not None and (self.spelling.has_word_list if setting == "auto" else setting)

    def segment(
        self,
        line: str,
        split: bool = True,
        correct: bool = True,
        max_tokens: int | None = None,
        elements: Sequence[Span] = (),
        syntax: str = "",
        terms: TermFinder | None = None,
    ) -> list[Segment]:
        """Split a source line into prepared segments.

        ``restore(segment, segment.text)`` of all segments, concatenated, gives the line without its tag.

        Args:
            line: The line, which is not blank. A lone surrogate in the line is read as U+FFFD.
            split: Whether to split a line of more than ``config.max_sentences`` sentences into sentences.
            correct: Whether to correct typing errors.
            max_tokens: Maximum number of tokens of a sentence that is not split; None: ``config.long_source``.
            elements: The spans of the elements whose tags were removed from the line. No values but terms cross the
                edge of one.
            syntax: The key in SYNTAXES of additional placeholders; "" for none.
            terms: Finds additional terms, which take precedence over the layer's glossary.
        """
        finders = [terms, self._terms] if terms else [self._terms]

        def find_values(text: str, inside: Sequence[Span]) -> list[tuple[Span, str]]:
            spans = find_values_in_elements(text, partial(self._find_values, syntax=syntax), inside)
            return values_with_terms(text, spans, finders)

        tag, line = split_tag(line, () if elements else self.config.tags)
        request = Request(find_values, elements, split, correct, max_tokens, tag)
        return self._prepare([Segment(line, original=line)], self.phenomena, request)

    def _prepare(self, segments: list[Segment], phenomena: Sequence[Phenomenon], request: Request) -> list[Segment]:
        """Prepare segments by phenomena, and the nested texts in them by those after ``Values``."""
        for phenomenon in phenomena:
            segments = [
                new for old in segments for new in (phenomenon.prepare_segment(old, request) if old.text else (old,))
            ]
        after_values = self.phenomena[PHENOMENA.index(Sentences) :]
        for nested in (nested for segment in segments for nested in segment.nested.values()):
            nested.segments = self._prepare(nested.segments, after_values, request)
        return [segment.evolve(tag=request.tag if segment.text else "") for segment in segments]

    def _find_values(self, text: str, side: int = 0, syntax: str = "") -> list[Span]:
        """Return the spans of the values of a text, in order."""
        return list(merge_spans([span for own in self.phenomena for span in own.find_values(text, side, syntax)], text))

    def is_value(self, text: str) -> bool:
        """Return whether a whole text of the source language is one value."""
        return self._find_values(text) == [(0, len(text))]

    def restore(self, segment: Segment, translation: str) -> str:
        """Return a translation with the values, the casing and the edges of the source segment.

        The result is the original source if the translation equals the text of the segment.

        Args:
            segment: The segment.
            translation: The translation of its text, with each of its placeholders once.
        """
        if segment.text and segment.is_continued and not translation:
            return segment.before + segment.after.lstrip()
        after = segment.after
        if translation != segment.text and (mark := EDGE_MARK.match(after)):
            after = self.config.edge_marks.get(mark[1], mark[0]) + after[mark.end() :]
        return "".join([segment.before, *self.replacements(segment, translation), after])

    def positions(self, segment: Segment, translation: str) -> list[int]:
        """Map the positions of a translation to positions in the result of ``restore``.

        Returns:
            The start of each character of the translation in the result of ``restore``, followed by the end of the last
            character: ``len(translation) + 1`` positions.
        """
        lengths = map(len, self.replacements(segment, translation))
        return list(accumulate(lengths, initial=len(segment.before)))

    def replacements(self, segment: Segment, translation: str) -> list[str]:
        """Return the restored text of each character of a translation, without the edges of the segment."""
        if translation == segment.text:
            parts = segment.copied_characters
        else:
            parts = list(translation)
            for phenomenon in reversed(self.phenomena):
                parts = phenomenon.restore(segment, translation, parts)
        return [segment.by_placeholder.get(part, part) for part in parts]

    def adapt_spacing(self, segments: Sequence[Segment], translations: Sequence[str]) -> list[str]:
        """Adapt the whitespace between the translations of segments to the target language.

        Restored translations have the whitespace of the source line. If only the source language has spaces between
        sentences, single spaces are removed. If only the target language has them, missing spaces are added.

        Args:
            segments: The segments of the source line.
            translations: The restored translation of each segment.

        Returns:
            The translations, ready to be concatenated.
        """
        if not segments or self.between[0] == self.between[1]:
            return list(translations)
        pairs = zip(segments, translations, strict=True)
        if self.between[0]:
            return [text.removesuffix(" ") if segment.after == " " else text for segment, text in pairs]
        spaced = [f"{text} " if segment.text and not segment.after else text for segment, text in pairs]
        return [*spaced[:-1], translations[-1]]

    def prepare_pair(
        self,
        source: str,
        target: str,
        replacements: Sequence[Replacement] = (),
        order: Sequence[int] | None = None,
    ) -> tuple[str, str]:
        """Prepare a sentence pair for training or scoring, and return the prepared source and target.

        Placeholders replace the values that both sides share. Brackets and quotation marks among them are removed, as
        in ``Segment.source``. A source in uppercase or title case is lowercased, and so is a target in uppercase.
        Placeholder characters and lone surrogates of the raw text become U+FFFD.

        Args:
            source: The source.
            target: The target.
            replacements: Words to replace by placeholders, too. Each must occur once on its side.
            order: The placeholder number of each value, in the order of the source; None: 0, 1, 2, … Additional values
                stay as they are.
        """
        source, target = self.hide_symbols(source), self.hide_symbols(target)
        if not self.phenomena:
            return source, target
        source, target = (PLACEHOLDER.sub("\ufffd", UNDECODABLE.sub("\ufffd", text)) for text in (source, target))
        tag, source = split_tag(source, self.config.tags)
        order = range(self.placeholder_count) if order is None else order
        finders = [partial(self._find_values, side=side) for side in (0, 1)]
        shared = shared_values((source, target), finders, replacements)
        brackets = {value for value in shared if BRACKET.fullmatch(source, *value.source)}
        values = [value for value in shared if value not in brackets][: len(order)]
        placeholders = assign_placeholders((value.is_number for value in values), order)
        replaced = [*zip(values, placeholders, strict=True), *((value, "") for value in brackets)]
        source = apply_splices(source, sorted(Splice(*value.source, token) for value, token in replaced))
        target = apply_splices(target, sorted(Splice(*value.target, token) for value, token in replaced))
        prepared = Segment(source, original=source)
        for phenomenon in self.phenomena:
            prepared, target = phenomenon.prepare_pair(prepared, target)
        return tag + prepared.text, target
