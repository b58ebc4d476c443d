"""Cuts a line into its sentences, by sentencex, which knows the abbreviations and full stops of some 300 languages."""

from collections.abc import Iterable

import numpy as np
import regex
import sentencex

from mt.config.text import FINAL_MARKS
from mt.core.language import base_language

SHARE_OF_LINES = 0.99
ENDS = regex.compile(rf"(?r)[{FINAL_MARKS}]\p{{P}}*\s*$")  # (?r): searched from the end
WHITE_SPACE = regex.compile(r"\s")
STRETCH = regex.compile(r"(?s).{1,5000}(?:$|(?<=\s))|.{1,5000}")
"""As much of a text as is cut at a time, up to white space if there is any: on brackets and quotation marks, sentencex
takes time in proportion to the square of the length."""


def usual_most(lines: Iterable[str], language: str) -> int:
    """Returns how many sentences nearly all lines (SHARE_OF_LINES) have at most."""
    counts = [len(sentences(line, language)) for line in lines]
    return int(np.quantile(counts, SHARE_OF_LINES, method="inverted_cdf"))


def sentences(text: str, language: str) -> list[str]:
    """Returns the sentences of a text, each with the white space behind it, so that together they are the text."""
    # At a single letter before a space that is no ASCII character, such as in "J\u00a0.", sentencex stops with an
    # error. So it is given plain spaces, each in place of one character.
    found: list[str] = []
    for stretch in STRETCH.findall(text):
        first, *others = _sentences(stretch, language)
        if found and not ENDS.search(found[-1]):
            found[-1] += first
        else:
            found.append(first)
        found += others
    return found or [text]


def _sentences(text: str, language: str) -> list[str]:
    found: list[str] = []
    place = 0
    for sentence in sentencex.segment(base_language(language), WHITE_SPACE.sub(" ", text)):
        found.append(text[place : place + len(sentence)])
        place += len(sentence)
    return found if place == len(text) and found else [text]
