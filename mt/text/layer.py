"""The text layer: prepares a source line for the tokenizer, and restores the translation.

A text layer is a list of phenomena (``mt.text.segment``). Each prepares the segments that the one before it leaves:

1. ``Columns`` sets aside tabs, bullets and the numbers of lists.
2. ``Values`` replaces values, such as numbers and URLs, by placeholders (``mt.text.values``). Brackets and quotation
   marks are values, too, but the model does not read their placeholders: word alignment puts them back
   (``mt.text.brackets``).
3. ``Sentences`` splits the line into sentences if it has more than nearly all training lines (``mt.text.sentences``).
4. ``Parts`` cuts labels, direct speech and brackets off, and takes nested texts out (``mt.text.parts``).
5. ``Casing`` lowercases sentences in uppercase or title case (``mt.text.casing``).
6. ``LongSentences`` cuts sentences that are too long into segments.
7. ``Edges`` splits off whitespace, symbols and values at the ends of segments.
8. ``Characters`` replaces apostrophes and hyphens by those of the training text (``mt.text.characters``).
9. ``Spelling`` corrects typing errors, and restores the capitals of names (``mt.text.spelling``).
10. ``FinalPunctuation`` adds missing final punctuation (``mt.text.final_punctuation``).

The tag of a target language in front of the line is set aside before, and put in front of each segment
(``mt.text.target_tags``).

``Acronyms`` finds values, too: acronyms (``mt.text.acronyms``). ``Numbers`` takes nothing: it forbids numbers in a
translation that the source lacks (``mt.text.numbers``).

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
from mt.text.values import Replacement, Values, merge_spans, shared_values, values_of_elements
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
"""All ways to vary a pair, by the setting of AugmentationConfig for their share."""


def learn_from_text(pairs: Pairs, language: str) -> dict[str, object]:
    """Learn fields of TextLayerDescription from training pairs with this source language."""
    learned = {name: value for own in PHENOMENA for name, value in own.learn(pairs, language).items()}
    return learned | {"tags": learn_tags(pairs())}


@dataclass(eq=False)
class TextLayer:
    """The reversible preparation of text for one model. Its translator and its training hold the instance.

    - ``segment`` turns a source line into segments with placeholders, for translation.
    - ``restore`` turns the translation of a segment into text with the values and the casing of the source line.
    - ``prepare_pair`` inserts placeholders on both sides of a training pair, and does not split it.
    """

    config: TextLayerDescription
    tokenizers: TokenizerPair
    source_language: str
    target_language: str
    spelling: Spelling | None = None
    """The words of the training text; None: typing errors are not corrected."""
    terms: Terms = field(default_factory=dict)
    """The glossary."""

    def __post_init__(self) -> None:
        self.between = tuple(map(between_words, self.direction))
        """What separates two words of the source language, and of the target language."""
        self.placeholder_count = count_placeholders(self.tokenizers)
        kinds = PHENOMENA if self.config.enabled else ()
        phenomena = [self.spelling if kind is Spelling else kind(self) for kind in kinds]
        self.phenomena: list[Phenomenon] = list(filter(None, phenomena))
        """All phenomena in order; none if the text layer is off."""
        self._terms = TermFinder(self.terms, self.source_language)
        self.hide_symbols = self.tokenizers.source.hide_symbols
        """Replaces the user-defined symbols of a text by the characters that stand for them, on both sides the same."""
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
        """Cut a source line into prepared segments, in order.

        The line is the concatenation of ``restore(segment, segment.text)`` over all segments, but for its tag.

        Args:
            line: The line, which is not blank. A lone surrogate in the line is read as U+FFFD.
            split: Whether to split a line of more than ``config.max_sentences`` sentences into sentences.
            correct: Whether to correct typing errors.
            max_tokens: The length in tokens from which a sentence is cut; None: ``config.long_source``.
            syntax: The key in SYNTAXES of further placeholders; "" if there are none.
            elements: The spans of elements whose tags were removed from the line. Only terms cross the border of one.
            terms: Finds further terms, which come before those of the layer's own glossary.
        """
        finders = [terms, self._terms] if terms else [self._terms]

        def find(text: str, inside: Sequence[Span]) -> list[tuple[Span, str]]:
            spans = values_of_elements(text, partial(self._find, syntax=syntax), inside)
            return values_with_terms(text, spans, finders)

        tag, line = split_tag(line, () if elements else self.config.tags)
        request = Request(find, elements, split, correct, max_tokens, tag)
        return self._prepared([Segment(line, original=line)], self.phenomena, request)

    def _prepared(self, segments: list[Segment], phenomena: Sequence[Phenomenon], request: Request) -> list[Segment]:
        for phenomenon in phenomena:
            segments = [
                new for old in segments for new in (phenomenon.prepare_segment(old, request) if old.text else (old,))
            ]
        after_values = self.phenomena[PHENOMENA.index(Sentences) :]
        for nested in (nested for segment in segments for nested in segment.nested.values()):
            nested.segments = self._prepared(nested.segments, after_values, request)
        return [segment.evolve(tag=request.tag if segment.text else "") for segment in segments]

    def _find(self, text: str, side: int = 0, syntax: str = "") -> list[Span]:
        """Return the spans of a text that come back whole, in order."""
        return list(merge_spans([span for own in self.phenomena for span in own.find_values(text, side, syntax)], text))

    def is_value(self, text: str) -> bool:
        """Return whether a text of the source language is one that is not translated."""
        return self._find(text) == [(0, len(text))]

    def restore(self, segment: Segment, translation: str) -> str:
        """Return a translation with the values, the casing and the edges of the source segment.

        A translation that equals the text of the segment gives the source segment exactly as it was written.

        Args:
            segment: The segment.
            translation: The translation of its text, with each placeholder of it once.
        """
        if segment.text and segment.is_continued and not translation:
            return segment.before + segment.after.lstrip()
        after = segment.after
        if translation != segment.text and (mark := EDGE_MARK.match(after)):
            after = self.config.edge_marks.get(mark[1], mark[0]) + after[mark.end() :]
        return "".join([segment.before, *self.replacements(segment, translation), after])

    def positions(self, segment: Segment, translation: str) -> list[int]:
        """Map the positions of a translation to positions in its restored text, with values, casing and edges.

        Returns:
            For each character of the translation, where it begins in the result of ``restore``; then where the last one
            ends. The length is ``len(translation) + 1``.
        """
        lengths = map(len, self.replacements(segment, translation))
        return list(accumulate(lengths, initial=len(segment.before)))

    def replacements(self, segment: Segment, translation: str) -> list[str]:
        """Return the replacement of each character of a translation, without the edges of the segment."""
        if translation == segment.text:
            parts = segment.copied_characters
        else:
            parts = list(translation)
            for phenomenon in reversed(self.phenomena):
                parts = phenomenon.restore(segment, translation, parts)
        return [segment.by_placeholder.get(part, part) for part in parts]

    def with_spacing(self, segments: Sequence[Segment], translations: Sequence[str]) -> list[str]:
        """Adapt the whitespace between the segments of a target line to the target language.

        Restored translations have the whitespace of the source line. If only the source language writes spaces between
        sentences, single spaces are removed. If only the target language does, missing spaces are added.

        Args:
            segments: The segments of the source line.
            translations: The restored translation of each segment.

        Returns:
            The translation of each segment, ready to be concatenated.
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
        ``Segment.source`` does. A source in uppercase or title case is lowercased, and so is a target in uppercase.
        Placeholder characters and lone surrogates of the raw text become U+FFFD.

        Args:
            source: The source.
            target: The target.
            replacements: Words that placeholders replace, too. Each must occur once on its side.
            order: The placeholder number of each value, in the order of the source; None: 0, 1, 2, … Values beyond
                its length stay as they are.
        """
        source, target = self.hide_symbols(source), self.hide_symbols(target)
        if not self.phenomena:
            return source, target
        source, target = (PLACEHOLDER.sub("\ufffd", UNDECODABLE.sub("\ufffd", text)) for text in (source, target))
        tag, source = split_tag(source, self.config.tags)
        order = range(self.placeholder_count) if order is None else order
        shared = shared_values((source, target), [partial(self._find, side=side) for side in (0, 1)], replacements)
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
