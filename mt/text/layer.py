"""The text layer: prepares a line for the tokenizer, and restores its translation.

A line is cut into sentences if it has more than the lines that the model learnt from. Placeholders replace values that
are not to be translated (``mt.text.placeholders.values``), a sentence in capitals or title case is lowercased, typing
errors are corrected (``mt.text.normalization.spelling``), and final punctuation is added
(``mt.text.normalization.final_punctuation``). ``restore`` undoes it (``mt.text.segmentation.segment``)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice, pairwise

from mt.core.files import UNDECODABLE
from mt.core.language import writes_spaces
from mt.storage.model_description import TextLayerDescription
from mt.text.normalization.casing import Case, begun_with_capitals, case_of, lowercased
from mt.text.normalization.final_punctuation import missing_mark
from mt.text.normalization.spelling import MIN_WORD_COUNT, WORD, Correction, Spelling
from mt.text.placeholders.placeholders import (
    PLACEHOLDER,
    fill_placeholders,
    missing_placeholders,
    numbered_placeholders,
    placeholder,
    replace_spans,
    without_surplus_placeholders,
)
from mt.text.placeholders.shared_values import Replacement, is_plain_number, shared_values
from mt.text.placeholders.values import FamiliarCharacters, find_values, own_patterns
from mt.text.segmentation.clauses import segment_starts
from mt.text.segmentation.masked_segment import MaskedSegment
from mt.text.segmentation.segment import Segment
from mt.text.segmentation.sentences import sentences
from mt.text.subwords.tokenizer import TokenizerPair

WORDS_PER_FALSE_ALARM = 1000
"""At most one in this many words of text without typing errors may be corrected."""


@dataclass(eq=False)
class TextLayer:
    """Prepares text for a model, and undoes that in its translation.

    ``cut`` splits a source line into segments, replaces numbers, links and terms by placeholders, lowercases capitals
    and corrects typing errors. ``restore`` puts all that back into the translation of a segment. ``prepare_pair`` does
    the same as ``cut`` for a training pair, without splitting it."""

    config: TextLayerDescription
    tokenizers: TokenizerPair
    source_language: str
    target_language: str
    spelling: Spelling | None = None
    """If there is none, typing errors are not corrected."""

    def __post_init__(self) -> None:
        self.placeholder_count = min(self.tokenizers.source.placeholder_count, self.tokenizers.target.placeholder_count)
        patterns = own_patterns(self.config.terms, self.config.patterns)
        characters = (
            FamiliarCharacters(self.tokenizers.source, self.source_language),
            FamiliarCharacters(self.tokenizers.target, self.target_language),
        )
        self._finders = [partial(find_values, patterns=patterns, characters=each) for each in characters]

    def __reduce__(self) -> tuple:
        return TextLayer, (self.config, self.tokenizers, self.source_language, self.target_language, self.spelling)

    def cut(self, line: str, split: bool = True, correct: bool = True, max_tokens: int | None = None) -> list[Segment]:
        """Cut a line into segments. If the text of each segment is restored as if it were the translation, the results
        make up the line again.

        Args:
            line: The line, which is not blank. Half a surrogate pair in it is read as U+FFFD, like broken UTF-8.
            split: Whether to cut it into its sentences if it has more than the lines of the training text.
            correct: Whether to correct typing errors.
            max_tokens: The maximum length of a sentence; longer ones are cut. By default ``config.long_source``.
        """
        if not self.config.enabled:
            return [Segment(line, written=line)]
        line = UNDECODABLE.sub("\ufffd", line)
        spans = self._finders[0](line)
        values = iter([line[start:end] for start, end in spans])
        # Values are taken out first, so that no sentence ends inside one.
        masked = replace_spans(line, spans, [placeholder(0)] * len(spans))
        sentence_texts = sentences(masked, self.source_language) if split else []
        if len(sentence_texts) <= self.config.max_sentences:
            sentence_texts = [masked]
        return [
            self._prepare_segment(segment, correct)
            for sentence in sentence_texts
            for segment in self._masked_segments(sentence, values, max_tokens or self.config.long_source)
        ]

    def without_surplus_placeholders(self, segment: Segment, translation: str) -> tuple[str, int]:
        """Remove the placeholders from a translation of a segment that its text lacks or that stand twice.

        Returns:
            The translation, and the number of removed placeholders.
        """
        return without_surplus_placeholders(translation, segment.text) if self.config.enabled else (translation, 0)

    def missing_placeholders(self, segment: Segment, translation: str) -> int:
        """Return the number of placeholders of the segment's text that a translation of it lacks."""
        return len(missing_placeholders(translation, segment.text)) if segment.values else 0

    def restore(self, segment: Segment, translation: str) -> str:
        """Return a segment of the target line; see ``Segment.restore``."""
        return segment.restore(translation, self.target_language)

    def with_spacing(self, segments: Sequence[Segment], translations: Sequence[str]) -> list[str]:
        """Return the segments of a target line, as ``restore`` made them, with the white space between them.

        It is that of the source. But where only one of the two languages puts a space between its sentences, the target
        has one if it is that language.
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
        """Return the texts of a pair for training or scoring. Placeholders replace the values that both sides share. A
        source in capitals or title case is lowercased, and so is a target in capitals.

        Placeholders that stand in the pair already are read as U+FFFD, like half a surrogate pair, so that the model
        does not take them for values.

        Args:
            source: The source.
            target: The target.
            replacements: Words that placeholders replace, too. Each must occur once on its side.
            order: The numbers of the placeholders of either kind, for the values in the order of the source. By default
                0, 1, 2 …
        """
        if not self.config.enabled:
            return source, target
        source, target = (PLACEHOLDER.sub("\ufffd", UNDECODABLE.sub("\ufffd", text)) for text in (source, target))
        order = range(self.placeholder_count) if order is None else order
        values = shared_values((source, target), self._finders, replacements)[: len(order)]
        placeholders = numbered_placeholders((value.is_number for value in values), order)
        source = replace_spans(source, [value.source for value in values], placeholders)
        in_target = sorted((value.target, mark) for value, mark in zip(values, placeholders, strict=True))
        target = replace_spans(target, [span for span, _ in in_target], [mark for _, mark in in_target])
        case = case_of(source)
        if case:
            small = source if case is Case.SMALL else lowercased(source, self.source_language)
            source = self._in_usual_case(small, source)
        if case_of(target) is Case.CAPITALS:
            target = lowercased(target, self.target_language)
        return source, target

    def _masked_segments(self, sentence: str, values: Iterator[str], max_tokens: int) -> Iterator[MaskedSegment]:
        """Cut a sentence so that no segment has more placeholders than the tokenizer, or is longer than a
        training source.

        Args:
            sentence: The sentence, all of whose placeholders have number 0.
            values: The values of its placeholders and those of the sentences after it.
            max_tokens: The maximum length of a sentence that is not cut.
        """
        case = case_of(sentence)
        small = lowercased(sentence, self.source_language) if case in (Case.CAPITALS, Case.TITLE) else sentence
        usual_tokens = min(max_tokens, self.config.usual_source)
        positions = [match.start() for match in PLACEHOLDER.finditer(sentence)]
        few_placeholders = [0, *positions[self.placeholder_count :: self.placeholder_count], len(sentence)]
        starts = [
            start + cut
            for start, end in pairwise(few_placeholders)
            for cut in segment_starts(
                small[start:end], self.tokenizers.source, self.source_language, max_tokens, usual_tokens
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
        placeholders = numbered_placeholders(map(is_plain_number, core.values), range(self.placeholder_count))
        written, text = (fill_placeholders(side, placeholders) for side in (core.text, core.small))
        corrections: tuple[Correction, ...] = ()
        # In capitals, typing errors are not corrected: all words look alike, so names would be taken for errors.
        if correct and self.spelling and core.case not in (Case.CAPITALS, Case.TITLE):
            text, corrections = self.spelling.correct(text)
        if core.case:
            text = self._in_usual_case(text, text if core.case is Case.SMALL else written, core.begins)
        marks = self.config.final_marks
        added = missing_mark(text, marks, self.source_language) if marks and core.ends and text else ""
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
        """Return a source with capitals where the training text mostly has them, and where sentences begin.

        Args:
            source: The source in small letters.
            written: The source as it was written, which tells better where sentences begin.
            begins: Whether it begins with a sentence.
        """
        if not self.spelling or not self.spelling.has_capitals:
            return source
        ends = accumulate(map(len, sentences(written, self.source_language)), initial=0)
        starts = list(ends)[0 if begins else 1 : -1]
        source = begun_with_capitals(source, starts, self.source_language)
        return self.spelling.in_usual_case(source)


def min_word_count(layer: TextLayer, lines: Iterable[str]) -> int:
    """Return how often the training text must have a word for it to replace an unknown one: the smallest number from
    MIN_WORD_COUNT on that corrects at most one in WORDS_PER_FALSE_ALARM words.

    Args:
        layer: The text layer, whose ``spelling`` knows the words of the training text.
        lines: Other lines, in which few typing errors are expected.
    """
    assert layer.spelling is not None
    segments = [segment for line in lines if line.strip() for segment in layer.cut(line)]
    words = sum(len(WORD.findall(segment.text)) for segment in segments)
    counts = [
        layer.spelling.count(segment.text[correction.start : correction.end])
        for segment in segments
        for correction in segment.corrections
    ]
    not_to_correct = sorted(counts, reverse=True)[words // WORDS_PER_FALSE_ALARM :]
    return max([MIN_WORD_COUNT, *(count + 1 for count in not_to_correct[:1])])
