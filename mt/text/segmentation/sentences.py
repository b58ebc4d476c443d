"""Splits a line into sentences with sentencex, which knows the abbreviations and full stops of some 300 languages."""

from collections.abc import Iterable
from itertools import accumulate, pairwise

import numpy as np
import regex
import sentencex

from mt.config.text import FINAL_MARKS
from mt.core.language import base_language

SHARE_OF_LINES = 0.99
SENTENCE_END = regex.compile(rf"(?r)[{FINAL_MARKS}]\p{{P}}*\s*$")  # (?r): searched from the end
WHITE_SPACE = regex.compile(r"\s")
CHUNK = regex.compile(r"(?s).{1,5000}(?:$|(?<=\s))|.{1,5000}")
"""The part of a text that is cut at a time, up to white space if there is any: on brackets and quotation marks,
sentencex takes time in proportion to the square of the length."""


def usual_max_sentences(lines: Iterable[str], language: str) -> int:
    """Return the number of sentences that a share of SHARE_OF_LINES of the lines does not exceed."""
    counts = [len(sentences(line, language)) for line in lines]
    return int(np.quantile(counts, SHARE_OF_LINES, method="inverted_cdf"))


def sentences(text: str, language: str) -> list[str]:
    """Split a text into sentences, each with its trailing white space. Their concatenation is the text."""
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
