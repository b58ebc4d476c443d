"""Puts brackets, quotation marks and dashes into training pairs whose corpus has few of them."""

from collections.abc import Sequence

import numpy as np
import regex

from mt.text.normalization.final_punctuation import FINAL_PUNCTUATION, without_final_punctuation

WRAPPERS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ("– ", ""), ("/ ", ""), ("& ", ""), ("+ ", ""), ("~ ", ""))
"""The marks that are put before a text, and after it."""
COMMA = regex.compile(r"(?<=[\p{L}\p{M}])[,;，；、،]")


def with_wrapper(
    sources: Sequence[str],
    targets: Sequence[str],
    words: Sequence[tuple[str, str]],
    wrappers: Sequence[tuple[str, str]],
    between: Sequence[str],
    random: np.random.Generator,
) -> tuple[str, str]:
    """Return a source and a target with marks.

    They are around the last one of joined pairs. In a single pair, they are around the text after a comma, which is
    left out, or around a word and its translation, or, if there is neither, around the whole.

    Args:
        sources, targets: A pair, or several that are joined.
        words: Words of a single pair that stand once on their side, with their translations.
        wrappers: Members of WRAPPERS.
        between: What stands between two words of the source, and of the target.
        random: Decides which marks are put where.
    """
    start, end = wrappers[int(random.integers(len(wrappers)))]
    commas = [[comma.start() for comma in COMMA.finditer(side[-1])] for side in (sources, targets)]
    heads, tails = ("", ""), (sources[-1], targets[-1])
    if len(sources) > 1:
        source, target = (blank.join(side[:-1]) for blank, side in zip(between, (sources, targets), strict=True))
        heads = without_final_punctuation(source, target)
    elif len(commas[0]) == len(commas[1]) > 0 and (random.random() < 0.5 or not words):
        index = int(random.integers(len(commas[0])))
        cuts = [side[index] for side in commas]
        heads = sources[0][: cuts[0]], targets[0][: cuts[1]]
        tails = sources[0][cuts[0] + 1 :].lstrip(), targets[0][cuts[1] + 1 :].lstrip()
    elif words:
        word, translation = words[int(random.integers(len(words)))]
        source, target = sources[0].replace(word, f"{start}{word}{end}"), targets[0]
        return source, target.replace(translation, f"{start}{translation}{end}")
    sides = []
    for head, tail, blank in zip(heads, tails, between, strict=True):
        mark = FINAL_PUNCTUATION.search(tail)
        stop = mark.start() if mark else len(tail)
        sides.append(f"{head}{blank if head else ''}{start}{tail[:stop]}{end}{tail[stop:]}")
    return sides[0], sides[1]
