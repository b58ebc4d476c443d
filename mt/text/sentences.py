"""Splits a line into sentences, and cuts long sentences.

sentencex knows the abbreviations and full stops of some 300 languages. A model translates sentences that are longer
than those it has learned from badly and slowly: it loses its place, and repeats itself up to the limit of the length.
Parts as long as usual training sources are translated far better ("Long sentences" in docs/lab-notebook.md).
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
"""The text between two tabs, in two groups: whitespace, bullets, dashes and numbers of lists; and what follows."""
SHARE_OF_LINES = 0.99
"""A line is split if it has more sentences than this share of the training lines."""
LENGTH_QUANTILES = {"long_source": 0.999, "usual_source": 0.95}
"""Length limits of TextLayerDescription, each with its quantile of the training sources' lengths (docs/lab-notebook.md,
"Long sentences")."""
EDGE_MARKS = {",": ",，،、", ";": ";；؛", ":": ":："}
"""Punctuation that can end a line instead of final punctuation, with its forms in other scripts."""
EDGE_MARK = regex.compile(rf"\s*([{''.join(EDGE_MARKS)}])")
LONE_LETTER = regex.compile(r"\p{Latin}")
SENTENCE_END = regex.compile(rf"(?r)[{FINAL_MARKS}]\p{{P}}*\s*$")  # (?r): searched from the end
WHITE_SPACE = regex.compile(r"\s")
CHUNK = regex.compile(r"(?s).{1,5000}(?:$|(?<=\s))|.{1,5000}")
"""The part of a text that is cut at a time, up to whitespace if there is any: on brackets and quotation marks,
sentencex takes time in proportion to the square of the length."""


class Columns(Phenomenon):
    """Sets aside tabs, bullets and the numbers of lists."""

    def prepare_segment(self, segment: Segment, request: Request) -> Iterator[Segment]:
        for column in COLUMN.finditer(UNDECODABLE.sub("\ufffd", segment.text)):
            if column[0]:
                yield Segment(column[2], original=column[2], before=column[1], start=column.start(2))


class Sentences(Phenomenon):
    """Splits lines of more sentences than nearly all training lines have."""

    @staticmethod
    def learn(pairs: Pairs, language: str) -> dict[str, object]:
        counts = [len(split_sentences(source, language)) for source, _ in pairs()]
        return {"max_sentences": int(np.quantile(counts, SHARE_OF_LINES, method="inverted_cdf"))}

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        if not request.split:
            return [segment]
        # Values are masked, so that no sentence ends inside one. Only a closing bracket may end one.
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
    """Cuts sentences with more tokens than nearly all training sources, or more placeholders than the vocabulary."""

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        layer, text, most = self.layer, segment.text, self.layer.placeholder_count
        max_tokens = request.max_tokens or layer.config.long_source
        limits = max_tokens, min(max_tokens, layer.config.usual_source)
        mask, borders = placeholder(0), [0, len(text)]
        if len(segment.values) > most:
            borders[1:1] = [index for index, character in enumerate(text) if character == mask][most::most]
        counted = text.replace(placeholder(-1), mask)  # a term counts as one token
        starts = []
        for start, end in pairwise(borders):
            cuts = segment_starts(counted[start:end], layer.tokenizers.source, layer.source_language, *limits)
            starts += [start + cut for cut in cuts]
        return segment.split_at(starts) if starts[1:] else [segment]


class Edges(Phenomenon):
    """Splits off the edges of segments: whitespace, symbols, emoji and, after the final punctuation, all values but
    terms. Of a pair of brackets, either both are split off or none.

    If nearly all training sentences end with final punctuation, other punctuation at the end is split off, too."""

    @staticmethod
    def learn(pairs: Pairs, language: str) -> dict[str, object]:
        targets = [target for _, target in pairs()]
        counts = {
            mark: Counter(match for target in targets for match in regex.findall(rf"\s?[{variants}](?!\S)", target))
            for mark, variants in EDGE_MARKS.items()
        }
        return {"edge_marks": {mark: own.most_common(1)[0][0] for mark, own in counts.items() if own}}

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        values, text = segment.values, segment.original
        letters = "".join(LETTER.findall(text))
        is_lone = LONE_LETTER.fullmatch(letters) and not any(map(IN_WORD.search, values))
        if (not letters or is_lone) and not any(isinstance(value, Term) for value in values):
            before = segment.before + fill_placeholders(text, values)
            return [Segment("", before=before, is_continued=segment.is_continued)]
        (start, end), (first, last) = self._borders(segment)
        kinds = (None if isinstance(value, Term) else is_plain_number(value) for value in values[first:last])
        placeholders = assign_placeholders(kinds, range(self.layer.placeholder_count))
        written, core = (fill_placeholders(side[start:end], placeholders) for side in (text, segment.text))
        return [
            segment.evolve(
                text=core,
                values=values[first:last],
                original=written,
                before=segment.before + fill_placeholders(text[:start], values[:first]),
                after=fill_placeholders(text[end:], values[last:]),
            )
        ]

    def _borders(self, segment: Segment) -> tuple[Span, Span]:
        """Return the span of the text without edges, and that of its values among those of the segment."""
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
"""How many characters before a full stop are read to tell the end of a sentence from an abbreviation."""


def _ends_after_sentence(text: str, language: str) -> bool:
    """Return whether the last placeholder of a text comes after a finished sentence. In ``No. 5`` the full stop only
    abbreviates."""
    if not SENTENCE_END_BEFORE_PLACEHOLDERS.search(text[:-1]):
        return False
    return not PLACEHOLDER.sub("", split_sentences(text[-MAX_CONTEXT_CHARACTERS:], language)[-1]).strip()


def length_limits(lengths: np.ndarray, base: TextLayerDescription | None) -> dict[str, object]:
    """Return the length limits of TextLayerDescription by name: LENGTH_QUANTILES of the lengths of the training
    sources, but at most MAX_SOURCE_TOKENS.

    Args:
        lengths: (N,), the lengths of sources in tokens.
        base: The text layer of the base run, whose limits are lower bounds; None if there is none.
    """
    limits: dict[str, object] = {}
    for name, share in LENGTH_QUANTILES.items():
        quantile = int(np.quantile(lengths, share, method="inverted_cdf"))
        limits[name] = min(MAX_SOURCE_TOKENS, max(quantile, getattr(base, name) if base else 1))
    return limits


def split_sentences(text: str, language: str) -> list[str]:
    """Split a text into sentences, each with its trailing whitespace. Their concatenation is the text."""
    cut: list[str] = []
    for chunk in CHUNK.findall(text):
        first, *others = _sentences(chunk, language)
        if cut and not SENTENCE_END.search(cut[-1]):
            cut[-1] += first
        else:
            cut.append(first)
        cut += others
    return cut or [text]


def _sentences(text: str, language: str) -> list[str]:
    # At a single letter before a space that is no ASCII character, such as in "J\u00a0.", sentencex stops with an
    # error. So it is given plain spaces, each in place of one character.
    lengths = map(len, sentencex.segment(base_language(language), WHITE_SPACE.sub(" ", text)))
    ends = list(accumulate(lengths, initial=0))
    return [text[start:end] for start, end in pairwise(ends)] if ends[-1] == len(text) > 0 else [text]


CLAUSE_END = regex.compile(r"(?r)[,;:.!?…)\]»”，；：、。！？،؛।]['’\"]?\s*$")  # (?r): searched from the end


def segment_starts(sentence: str, tokenizer: Tokenizer, language: str, max_tokens: int, usual_tokens: int) -> list[int]:
    """Return the character position at which each segment of a sentence begins. The first is 0.

    A sentence of more than ``max_tokens`` tokens is cut into segments of similar length, each of at most
    ``usual_tokens`` tokens. Cuts after punctuation are preferred, then cuts between words. A shorter sentence is one
    segment.
    """
    # A sentence has at most one token more than bytes. Counting tokens is faster than finding their positions.
    if len(sentence.encode()) < max_tokens or len(tokenizer.encode([sentence])[0]) <= max_tokens:
        return [0]
    tokens = tokenizer.spans([sentence])[0]
    starts = [token.start for token in tokens]
    has_spaces = writes_spaces(language)
    cuts, first = [0], 0
    while len(tokens) - first > usual_tokens:
        left = len(tokens) - first
        even = first + ceil(left / ceil(left / usual_tokens))
        choices = range(first + (usual_tokens + 1) // 2, first + usual_tokens + 1)
        nearest_first = sorted(choices, key=lambda index: abs(index - even))
        after_punctuation = (n for n in nearest_first if CLAUSE_END.search(sentence, cuts[-1], starts[n]))
        before_word = (n for n in nearest_first if not has_spaces or sentence[: starts[n]][-1:].isspace())
        first = next(after_punctuation, 0) or next(before_word, even)
        if starts[first] > cuts[-1]:
            cuts.append(starts[first])
    return cuts
