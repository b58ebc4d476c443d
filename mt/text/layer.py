"""The text layer: prepares a source line for the tokenizer, and restores the translation.

``TextLayer.segment`` takes these steps. Each module in brackets explains one of them.

1. Set aside tabs, bullets and the numbers of lists (COLUMN), and replace values, such as numbers and URLs, by
   placeholders (``mt.text.values``). Brackets and quotation marks are values, too, but the model does not
   read their placeholders: word alignment puts them back (``mt.text.brackets``).
2. Split the line into sentences if it has more than nearly all training lines (``mt.text.sentences``), and
   sentences that are too long into segments (``mt.text.sentences``).
3. Lowercase segments in capitals or title case (``mt.text.casing``).
4. Correct typing errors (``mt.text.spelling``).
5. Add missing final punctuation (``mt.text.final_punctuation``).

``TextLayer.restore`` undoes the steps in the translation of a segment (``mt.text.segment``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, compress, islice, pairwise
from operator import not_
from typing import Literal

import regex

from mt.config.text import Terms
from mt.core.files import UNDECODABLE
from mt.core.language import writes_spaces
from mt.core.splices import Splice, apply_splices
from mt.storage.model_description import TextLayerDescription
from mt.text.brackets import BRACKET
from mt.text.casing import Case, begun_with_capitals, case_of, lowercased
from mt.text.final_punctuation import missing_final_mark
from mt.text.placeholders import (
    PLACEHOLDER,
    count_placeholders,
    fill_placeholders,
    missing_placeholders,
    numbered_placeholders,
    placeholder,
    replace_spans,
    without_surplus_placeholders,
)
from mt.text.segment import MaskedSegment, Segment
from mt.text.sentences import segment_starts, sentences
from mt.text.shared_values import Replacement, is_plain_number, shared_values
from mt.text.spelling import Correction, Spelling
from mt.text.terms import Term, TermFinder, values_with_terms
from mt.text.values import (
    IN_WORD,
    FamiliarCharacters,
    Span,
    find_values,
    own_patterns,
    values_of_elements,
)
from mt.tokenizer.tokenizer import TokenizerPair

COLUMN = regex.compile(
    r"(\s*(?:(?:(?:[•·●▪◦*+»]|(?<!>)>++|(?<![-–—])[-–—]++|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})\))\s+"
    r"|>>|[-–—](?=\p{Lu})(?![B-DF-HJ-NP-TV-XZ](?![\w'’])))\s*+)*+)([^\t]*\t*)"
)
"""The text between two tabs, in two groups: white space, bullets, dashes and numbers of lists; and what follows."""


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
        self.placeholder_count = count_placeholders(self.tokenizers)
        patterns = own_patterns(self.config.patterns)
        rare = self.config.rare_characters
        symbols = [character for character in rare if not IN_WORD.match(character)]
        characters = (
            FamiliarCharacters(self.tokenizers.source, self.source_language, rare),
            # In targets, words with letters that sources do not have are no values.
            FamiliarCharacters(self.tokenizers.target, self.target_language, symbols),
        )
        self._source_characters = characters[0]
        self._finders = [
            partial(find_values, patterns=patterns, characters=characters_of_side) for characters_of_side in characters
        ]
        self._terms = TermFinder(self.terms, self.source_language)

    def __reduce__(self) -> tuple:
        languages = self.source_language, self.target_language
        return TextLayer, (self.config, self.tokenizers, *languages, self.spelling, self.terms)

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

        The line is the concatenation of ``restore(segment, segment.text)`` over all segments.

        Args:
            line: The line, which is not blank. A lone surrogate in the line is read as U+FFFD.
            split: Whether to split a line of more than ``config.max_sentences`` sentences into sentences.
            correct: Whether to correct typing errors.
            max_tokens: The length in tokens from which a sentence is cut; None: ``config.long_source``.
            syntax: The key in SYNTAXES of further placeholders; "" if there are none.
            elements: The spans of elements whose tags were removed from the line. Only terms cross the border of one.
            terms: Finds further terms, which come before those of the layer's own glossary.
        """
        if not self.config.enabled:
            return [Segment(line, written=line)]
        segments: list[Segment] = []
        for column in COLUMN.finditer(UNDECODABLE.sub("\ufffd", line)):
            if column[0]:
                (start, end), limit = column.span(2), max_tokens or self.config.long_source
                inside = [(max(a - start, 0), min(b, end) - start) for a, b in elements if a < end and b > start]
                spans = values_of_elements(column[2], partial(self._finders[0], syntax=syntax), inside)
                values = values_with_terms(column[2], spans, [terms, self._terms] if terms else [self._terms])
                first, *others = self._cut_column(column[2], values, split, correct, limit)
                segments += [replace(first, before=column[1] + first.before), *others]
        return segments

    def is_value(self, text: str) -> bool:
        """Return whether a text of the source language is one that is not translated."""
        return self._finders[0](text) == [(0, len(text))]

    def without_surplus_placeholders(self, segment: Segment, translation: str) -> tuple[str, int]:
        """Remove placeholders from a segment's translation that the segment's text lacks, and repeated ones.

        Returns:
            The translation, and the number of removed placeholders.
        """
        return without_surplus_placeholders(translation, segment.text) if self.config.enabled else (translation, 0)

    def missing_placeholders(self, segment: Segment, translation: str) -> int:
        """Count the placeholders of a segment's source that the segment's translation lacks."""
        return len(missing_placeholders(translation, segment.source)) if segment.values else 0

    def restore(self, segment: Segment, translation: str) -> str:
        """Return a segment's translation with values, casing and edges restored; see ``Segment.restore``."""
        return segment.restore(translation, self.target_language)

    def with_spacing(self, segments: Sequence[Segment], translations: Sequence[str]) -> list[str]:
        """Adapt the white space between the segments of a target line to the target language.

        Restored translations have the white space of the source line. If only the source language writes spaces between
        sentences, single spaces are removed. If only the target language does, missing spaces are added.

        Args:
            segments: The segments of the source line.
            translations: The restored translation of each segment.

        Returns:
            The translation of each segment, ready to be concatenated.
        """
        source_has_spaces = writes_spaces(self.source_language)
        if not segments or source_has_spaces == writes_spaces(self.target_language):
            return list(translations)
        pairs = zip(segments, translations, strict=True)
        if source_has_spaces:
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
        ``Segment.source`` does. A source in capitals or title case is lowercased, and so is a target in capitals.
        Placeholder characters and lone surrogates of the raw text become U+FFFD.

        Args:
            source: The source.
            target: The target.
            replacements: Words that placeholders replace, too. Each must occur once on its side.
            order: The placeholder number of each value, in the order of the source; None: 0, 1, 2, … Values beyond
                its length stay as they are.
        """
        if not self.config.enabled:
            return source, target
        source, target = (PLACEHOLDER.sub("\ufffd", UNDECODABLE.sub("\ufffd", text)) for text in (source, target))
        order = range(self.placeholder_count) if order is None else order
        shared = shared_values((source, target), self._finders, replacements)
        is_bracket = [BRACKET.fullmatch(source[slice(*value.source)]) is not None for value in shared]
        brackets = list(compress(shared, is_bracket))
        values = list(compress(shared, map(not_, is_bracket)))[: len(order)]
        placeholders = numbered_placeholders((value.is_number for value in values), order)
        replaced = [*zip(values, placeholders, strict=True), *((value, "") for value in brackets)]
        source = apply_splices(source, sorted(Splice(*value.source, token) for value, token in replaced))
        target = apply_splices(target, sorted(Splice(*value.target, token) for value, token in replaced))
        source = self._source_characters.with_known_marks(source)
        case = case_of(source)
        if case:
            small = source if case is Case.SMALL else lowercased(source, self.source_language)
            source = self._in_usual_case(small, source)
        if case_of(target) is Case.CAPITALS:
            target = lowercased(target, self.target_language)
        return source, target

    def _cut_column(
        self, text: str, values_with_spans: Sequence[tuple[Span, str]], split: bool, correct: bool, max_tokens: int
    ) -> list[Segment]:
        """Cut a text without tabs, given its values, into prepared segments, as ``segment`` does."""
        spans, values = [span for span, _ in values_with_spans], [value for _, value in values_with_spans]
        # Values are taken out first, so that no sentence ends inside one. Only a closing bracket may end one.
        tokens = [placeholder(-1 if isinstance(value, Term) else 0) for value in values]
        masked = replace_spans(text, spans, tokens)
        visible = [
            value if len(value) == 1 and BRACKET.match(value) else token
            for value, token in zip(values, tokens, strict=True)
        ]
        sentence_texts = sentences(replace_spans(text, spans, visible), self.source_language) if split else []
        ends = list(accumulate(map(len, sentence_texts), initial=0))
        if len(sentence_texts) <= self.config.max_sentences:
            ends = [0, len(masked)]
        remaining = iter(values)
        return [
            self._prepare_segment(segment, correct)
            for start, end in pairwise(ends)
            for segment in self._masked_segments(masked[start:end], remaining, max_tokens)
        ]

    def _masked_segments(self, sentence: str, values: Iterator[str], max_tokens: int) -> Iterator[MaskedSegment]:
        """Cut a sentence into segments that have no more placeholders than the vocabulary, and that are not longer than
        usual training sources.

        Args:
            sentence: The sentence, all of whose placeholders have number 0, or -1 for terms.
            values: The remaining values of the line. Those of this sentence are consumed.
            max_tokens: The maximum length of a sentence that is not cut.
        """
        case = case_of(sentence)
        small = lowercased(sentence, self.source_language) if case in (Case.CAPITALS, Case.TITLE) else sentence
        usual_tokens = min(max_tokens, self.config.usual_source)
        positions = [index for index, character in enumerate(sentence) if character == placeholder(0)]
        counted = small.replace(placeholder(-1), placeholder(0))  # a term counts as one token
        few_placeholders = [0, *positions[self.placeholder_count :: self.placeholder_count], len(sentence)]
        starts = [
            start + cut
            for start, end in pairwise(few_placeholders)
            for cut in segment_starts(
                counted[start:end], self.tokenizers.source, self.source_language, max_tokens, usual_tokens
            )
        ]
        for start, end in pairwise([*starts, len(sentence)]):
            text = sentence[start:end]
            own_values = list(islice(values, len(PLACEHOLDER.findall(text))))
            yield MaskedSegment(text, small[start:end], own_values, case, start == 0, end == len(sentence))

    def _prepare_segment(self, segment: MaskedSegment, correct: bool) -> Segment:
        if not segment.has_words:
            return Segment(
                "",
                before=fill_placeholders(segment.text, segment.values),
                is_continued=not segment.ends,
            )
        before, core, after = segment.without_edges(self.source_language)
        kinds = (None if isinstance(value, Term) else is_plain_number(value) for value in core.values)
        placeholders = numbered_placeholders(kinds, range(self.placeholder_count))
        written, text = (fill_placeholders(side, placeholders) for side in (core.text, core.small))
        text = self._source_characters.with_known_marks(text)
        corrections: tuple[Correction, ...] = ()
        # In capitals, typing errors are not corrected: all words look alike, so names would be taken for errors.
        if correct and self.spelling and core.case not in (Case.CAPITALS, Case.TITLE):
            text, corrections = self.spelling.correct(text)
        if core.case:
            text = self._in_usual_case(text, text if core.case is Case.SMALL else written, core.begins)
        brackets = [token for token, value in zip(placeholders, core.values, strict=True) if BRACKET.fullmatch(value)]
        read, marks = text.translate(str.maketrans("", "", "".join(brackets))), self.config.final_marks
        added = missing_final_mark(read, marks, self.source_language) if marks and core.ends and text else ""
        return Segment(
            text + added,
            values=tuple(core.values),
            written=written,
            capitals=core.case is Case.CAPITALS,
            corrections=corrections,
            added=added,
            before=before,
            after=after,
            is_continued=not core.ends,
        )

    def _in_usual_case(self, source: str, written: str, begins: bool = True) -> str:
        """Capitalise a lowercased source: the starts of sentences, and the words that the training text capitalises.

        Args:
            source: The source in small letters.
            written: The source before it was lowercased. Sentences are detected in this text.
            begins: Whether the first character of the source begins a sentence.
        """
        if not self.spelling or not self.spelling.has_capitals:
            return source
        ends = accumulate(map(len, sentences(written, self.source_language)), initial=0)
        starts = list(ends)[0 if begins else 1 : -1]
        source = begun_with_capitals(source, starts, self.source_language)
        return self.spelling.in_usual_case(source)
