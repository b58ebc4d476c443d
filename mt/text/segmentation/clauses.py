"""Cuts sentences that are longer than those a model has learnt from.

A model translates such sentences badly and slowly: it loses its place, and repeats itself up to the limit of the
length. Parts as long as usual training sources are translated far better ("Long sentences" in docs/lab-notebook.md).
"""

from math import ceil

import regex

from mt.core.language import writes_spaces
from mt.text.subwords.tokenizer import Tokenizer

CLAUSE_END = regex.compile(r"(?r)[,;:.!?…)\]»”，；：、。！？،؛।]['’\"]?\s*$")  # (?r): searched from the end


def segment_starts(sentence: str, tokenizer: Tokenizer, language: str, max_tokens: int, usual_tokens: int) -> list[int]:
    """Return the character position at which each segment of a sentence begins. The first is 0.

    A sentence of more than ``max_tokens`` tokens is cut into segments of similar length, each of at most
    ``usual_tokens`` tokens. Cuts after punctuation are preferred, then cuts between words. A shorter sentence is one
    segment.
    """
    if len(sentence.encode()) < max_tokens:  # it has at most one token more than bytes
        return [0]
    tokens = tokenizer.spans([sentence])[0]
    if len(tokens) <= max_tokens:
        return [0]
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
