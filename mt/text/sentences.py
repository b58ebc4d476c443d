"""Cuts a line into its sentences, by sentencex, which knows the abbreviations and full stops of some 300 languages."""

from collections.abc import Iterable

import numpy as np
import sentencex

from mt.language import base_language

SHARE_OF_LINES = 0.99


def usual_most(lines: Iterable[str], language: str) -> int:
    """Returns how many sentences nearly all lines (SHARE_OF_LINES) have at most."""
    counts = [len(sentences(line, language)) for line in lines]
    return int(np.quantile(counts, SHARE_OF_LINES, method="inverted_cdf"))


def sentences(text: str, language: str) -> list[str]:
    """Returns the sentences of a text, each with the white space behind it, so that together they are the text."""
    return list(sentencex.segment(base_language(language), text)) or [text]
