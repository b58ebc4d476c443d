"""Cuts sentences that are longer than those a model has learnt from.

A model translates such sentences badly and slowly: it loses its place, and repeats itself up to the limit of the
length. Parts as long as usual training sources are translated far better ("Long sentences" in docs/lab-notebook.md).
"""

from math import ceil

import regex

from mt.core.language import writes_spaces
from mt.text.tokenizer import Tokenizer

CLAUSE_END = regex.compile(r"(?r)[,;:.!?…)\]»”，；：、。！？،؛।]['’\"]?\s*$")  # (?r): searched from the end


def starts_of_parts(sentence: str, tokenizer: Tokenizer, language: str, longest: int, usual: int) -> list[int]:
    """Return where the parts of a sentence begin, the first at 0.

    A sentence of more than ``longest`` pieces is cut into parts of at most ``usual`` pieces, about equally long. A cut
    is behind punctuation, or between words, or else anywhere.
    """
    if len(sentence.encode()) < longest:  # it has at most one piece more than bytes
        return [0]
    pieces = tokenizer.spans([sentence])[0]
    if len(pieces) <= longest:
        return [0]
    starts = [piece.start for piece in pieces]
    spaces = writes_spaces(language)
    cuts, first = [0], 0
    while len(pieces) - first > usual:
        left = len(pieces) - first
        even = first + ceil(left / ceil(left / usual))
        nearest_first = sorted(range(first + (usual + 1) // 2, first + usual + 1), key=lambda place: abs(place - even))
        behind_punctuation = (n for n in nearest_first if CLAUSE_END.search(sentence, cuts[-1], starts[n]))
        before_word = (n for n in nearest_first if not spaces or sentence[: starts[n]][-1:].isspace())
        first = next(behind_punctuation, 0) or next(before_word, even)
        if starts[first] > cuts[-1]:
            cuts.append(starts[first])
    return cuts
