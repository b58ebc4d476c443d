"""Splits lines into sentences, and long sentences into segments.

sentencex knows the abbreviations and full stops of some 300 languages. A model translates sentences that are longer
than its training sources badly and slowly: it loses its position, and repeats itself up to the length limit. Segments
of the usual length of training sources are translated far better ("Long sentences" in docs/lab-notebook.md).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from math import ceil

import numpy as np
import regex
import sentencex

from mt.config.text import FINAL_MARKS, MAX_SOURCE_TOKENS
from mt.core.coded_text import Span
from mt.core.files import UNDECODABLE
from mt.core.language import base_language, writes_spaces
from mt.storage.model_description import TextLayerDescription
from mt.text.brackets import BRACKET, bracket_pairs
from mt.text.numbers import is_plain_number
from mt.text.placeholders import PLACEHOLDER, assign_placeholders, fill_placeholders, placeholder
from mt.text.segment import IN_WORD, LETTER, Pairs, Phenomenon, Request, Segment, Term
from mt.tokenizer.tokenizer import Tokenizer

COLUMN = regex.compile(
    r"(\s*(?:(?:(?:[•·●▪◦*+»]|(?<!>)>++|(?<![-–—])[-–—]++|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})\))\s+"
    r"|>>|[-–—](?=\p{Lu})(?![B-DF-HJ-NP-TV-XZ](?![\w'’])))\s*+)*+)([^\t]*\t*)"
)
"""The text between two tabs. Group 1 has whitespace, bullets, dashes and numbers of lists; group 2 has the rest."""
SENTENCE_COUNT_QUANTILE = 0.99
"""A line is split if it has more sentences than this quantile of the training lines."""
LENGTH_QUANTILES = {"long_source": 0.999, "usual_source": 0.95}
"""Length limits of TextLayerDescription, each with its quantile of the training sources' lengths (docs/lab-notebook.md,
"Long sentences")."""
EDGE_MARKS = {",": ",，،、", ";": ";；؛", ":": ":："}
"""Maps punctuation marks that can end a line instead of final punctuation to their forms in all scripts."""
EDGE_MARK = regex.compile(rf"\s*([{''.join(EDGE_MARKS)}])")
LONE_LETTER = regex.compile(r"\p{Latin}")
SENTENCE_END = regex.compile(rf"(?r)[{FINAL_MARKS}]\p{{P}}*\s*$")  # (?r): searched from the end
WHITESPACE = regex.compile(r"\s")
CHUNK = regex.compile(r"(?s).{1,5000}(?:$|(?<=\s))|.{1,5000}")
"""The part of a text that is split at a time, which ends at whitespace if possible. On brackets and quotation marks,
sentencex takes quadratic time."""


class Columns(Phenomenon):
    """Separates the columns between tabs, and sets bullets and the numbers of lists aside."""

    def prepare_segment(self, segment: Segment, request: Request) -> Iterator[Segment]:
        for column in COLUMN.finditer(UNDECODABLE.sub("\ufffd", segment.text)):
            if column[0]:
                yield Segment(column[2], original=column[2], before=column[1], start=column.start(2))


class Sentences(Phenomenon):
    """Splits lines of more sentences than nearly all training lines have."""

    @staticmethod
    def learn(pairs: Pairs, language: str) -> dict[str, object]:
        counts = [len(split_sentences(source, language)) for source, _ in pairs()]
        return {"max_sentences": int(np.quantile(counts, SENTENCE_COUNT_QUANTILE, method="inverted_cdf"))}

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        if not request.split:
            return [segment]
        # Values are masked so that no sentence ends inside one. Brackets stay visible: one may end a sentence.
        visible = (
            value if len(value) == 1 and BRACKET.match(value) else token
            for value, token in zip(segment.values, PLACEHOLDER.findall(segment.text), strict=True)
        )
        lengths = list(map(len, split_sentences(fill_placeholders(segment.text, visible), self.layer.source_language)))
        if len(lengths) <= self.layer.config.max_sentences:
            return [segment]
        parts = segment.split_at([0, *accumulate(lengths[:-1])])
        return [replace(part, is_sentence_start=True, is_continued=False) for part in parts]


class LongSentences(Phenomenon):
    """Splits sentences with more tokens than nearly all training sources, or more values than there are
    placeholders."""

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        layer, text, max_values = self.layer, segment.text, self.layer.placeholder_count
        max_tokens = request.max_tokens or layer.config.long_source
        limits = max_tokens, min(max_tokens, layer.config.usual_source)
        mask, borders = placeholder(0), [0, len(text)]
        if len(segment.values) > max_values:
            borders[1:1] = [index for index, character in enumerate(text) if character == mask][max_values::max_values]
        counted = text.replace(placeholder(-1), mask)  # a term counts as one token
        starts = []
        for start, end in pairwise(borders):
            cuts = segment_starts(counted[start:end], layer.tokenizers.source, layer.source_language, *limits)
            starts += [start + cut for cut in cuts]
        return segment.split_at(starts) if starts[1:] else [segment]


class Edges(Phenomenon):
    """Splits off the edges of segments: whitespace, symbols, emoji and, after the final punctuation, values except
    terms.

    The brackets of a pair are split off together or not at all. If nearly all training sentences end with final
    punctuation, a comma, semicolon or colon at the end is split off, too.
    """

    @staticmethod
    def learn(pairs: Pairs, language: str) -> dict[str, object]:
        targets = [target for _, target in pairs()]
        counts = {
            mark: Counter(match for target in targets for match in regex.findall(rf"\s?[{variants}](?!\S)", target))
            for mark, variants in EDGE_MARKS.items()
        }
        return {"edge_marks": {mark: forms.most_common(1)[0][0] for mark, forms in counts.items() if forms}}

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        values, text = segment.values, segment.original
        letters = "".join(LETTER.findall(text))
        is_lone = LONE_LETTER.fullmatch(letters) and not any(map(IN_WORD.search, values))
        if (not letters or is_lone) and not any(isinstance(value, Term) for value in values):
            before = segment.before + fill_placeholders(text, values)
            return [Segment("", before=before, is_continued=segment.is_continued)]
        (start, end), (first, last) = self._core_spans(segment)
        kinds = (None if isinstance(value, Term) else is_plain_number(value) for value in values[first:last])
        placeholders = assign_placeholders(kinds, range(self.layer.placeholder_count))
        original, core = (fill_placeholders(version[start:end], placeholders) for version in (text, segment.text))
        return [
            segment.evolve(
                text=core,
                values=values[first:last],
                original=original,
                before=segment.before + fill_placeholders(text[:start], values[:first]),
                after=fill_placeholders(text[end:], values[last:]),
            )
        ]

    def _core_spans(self, segment: Segment) -> tuple[Span, Span]:
        """Return the span of the text without its edges, and the index span of the values in this text."""
        text, values, start, end = segment.original, segment.values, 0, len(segment.original)
        language = self.layer.source_language
        positions = [match.start() for match in PLACEHOLDER.finditer(text)]
        first, last = 0, len(values)
        while start < end:
            if PLACEHOLDER.match(text, start) and not IN_WORD.search(values[first]):
                first += 1
            elif not text[start].isspace():
                break
            start += 1
        while end > start:
            if (
                PLACEHOLDER.match(text, end - 1)
                and not isinstance(values[last - 1], Term)
                and (not IN_WORD.search(values[last - 1]) or _ends_after_sentence(text[:end], language))
            ):
                last -= 1
            elif not (text[end - 1].isspace() or (self.layer.config.final_marks and text[end - 1] in EDGE_MARKS)):
                break
            end -= 1
        for opening, closing in bracket_pairs(values).items():
            if opening < first <= closing < last:
                start, first = positions[opening], opening
            elif first <= opening < last <= closing:
                end, last = positions[closing] + 1, closing + 1
        return (start, end), (first, last)


SENTENCE_END_BEFORE_PLACEHOLDERS = regex.compile(
    rf"(?r)[{FINAL_MARKS}]\p{{P}}*[\s{PLACEHOLDER.pattern[1:-1]}]*$"
)  # (?r): from the end
MAX_CONTEXT_CHARACTERS = 200
"""Number of characters before a full stop that are read to decide whether it ends a sentence or an abbreviation."""


def _ends_after_sentence(text: str, language: str) -> bool:
    """Return whether the last placeholder of a text follows a complete sentence. In ``No. 5`` it follows an
    abbreviation."""
    if not SENTENCE_END_BEFORE_PLACEHOLDERS.search(text[:-1]):
        return False
    return not PLACEHOLDER.sub("", split_sentences(text[-MAX_CONTEXT_CHARACTERS:], language)[-1]).strip()


def length_limits(lengths: np.ndarray, base: TextLayerDescription | None) -> dict[str, object]:
    """Return the length limits of TextLayerDescription by name.

    They are LENGTH_QUANTILES of the training sources, and at most MAX_SOURCE_TOKENS.

    Args:
        lengths: (N,), the numbers of tokens of the sources.
        base: The text layer of the base run, whose limits are lower bounds; None if there is none.
    """
    limits: dict[str, object] = {}
    for name, share in LENGTH_QUANTILES.items():
        quantile = int(np.quantile(lengths, share, method="inverted_cdf"))
        limits[name] = min(MAX_SOURCE_TOKENS, max(quantile, getattr(base, name) if base else 1))
    return limits


def split_sentences(text: str, language: str) -> list[str]:
    """Split a text into sentences, each with its trailing whitespace. Their concatenation is the text."""
    sentences: list[str] = []
    for chunk in CHUNK.findall(text):
        first, *others = _split_chunk(chunk, language)
        if sentences and not SENTENCE_END.search(sentences[-1]):
            sentences[-1] += first
        else:
            sentences.append(first)
        sentences += others
    return sentences or [text]


def _split_chunk(text: str, language: str) -> list[str]:
    # sentencex raises an error at a single letter before a space outside of ASCII, as in "J\u00a0.". So it gets plain
    # spaces, which have the same length.
    lengths = map(len, sentencex.segment(base_language(language), WHITESPACE.sub(" ", text)))
    ends = list(accumulate(lengths, initial=0))
    return [text[start:end] for start, end in pairwise(ends)] if ends[-1] == len(text) > 0 else [text]


CLAUSE_END = regex.compile(r"(?r)[,;:.!?…)\]»”，；：、。！？،؛।]['’\"]?\s*$")  # (?r): searched from the end


def segment_starts(sentence: str, tokenizer: Tokenizer, language: str, max_tokens: int, usual_tokens: int) -> list[int]:
    """Return the character position at which each segment of a sentence begins. The first is 0.

    A sentence of more than ``max_tokens`` tokens is split into segments of similar length, each of at most
    ``usual_tokens`` tokens. Splits after punctuation are preferred, then splits between words. A shorter sentence is
    one segment.
    """
    # A sentence has at most one token more than bytes. Counting tokens is faster than computing their positions.
    if len(sentence.encode()) < max_tokens or len(tokenizer.encode([sentence])[0]) <= max_tokens:
        return [0]
    tokens = tokenizer.spans([sentence])[0]
    starts = [token.start for token in tokens]
    has_spaces = writes_spaces(language)
    cuts, first = [0], 0
    while len(tokens) - first > usual_tokens:
        remaining = len(tokens) - first
        even = first + ceil(remaining / ceil(remaining / usual_tokens))
        choices = range(first + (usual_tokens + 1) // 2, first + usual_tokens + 1)
        nearest_first = sorted(choices, key=lambda index: abs(index - even))
        after_punctuation = (n for n in nearest_first if CLAUSE_END.search(sentence, cuts[-1], starts[n]))
        before_word = (n for n in nearest_first if not has_spaces or sentence[: starts[n]][-1:].isspace())
        first = next(after_punctuation, 0) or next(before_word, even)
        if starts[first] > cuts[-1]:
            cuts.append(starts[first])
    return cuts
