"""Put brackets, quotation marks and dashes into training pairs, for a corpus that has few of them."""

from collections.abc import Sequence

import numpy as np
import regex

from mt.text.normalization.final_punctuation import FINAL_PUNCTUATION, without_final_punctuation

WRAPPERS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ("– ", ""), ("/ ", ""), ("& ", ""), ("+ ", ""), ("~ ", ""))
"""The marks that are put in front of a text, and behind it."""
COMMA = regex.compile(r"(?<=[\p{L}\p{M}])[,;，；、،]")


def with_wrapper(
    sources: Sequence[str],
    targets: Sequence[str],
    words: Sequence[tuple[str, str]],
    wrappers: Sequence[tuple[str, str]],
    between: Sequence[str],
    random: np.random.Generator,
) -> tuple[str, str]:
    """Return a source and a target with marks around corresponding parts.

    - Of joined pairs, the last one is wrapped. Final punctuation in front of it is removed.
    - Of a single pair, the text after a comma is wrapped, and the comma is removed; or a word and its translation are
      wrapped. If there is neither, the whole sentences are wrapped, except their final punctuation.

    Args:
        sources, targets: The texts of one pair, or of several pairs to join.
        words: Words of a single pair that occur once in the source and whose translations occur once in the target,
            with their translations.
        wrappers: The marks to choose from, members of WRAPPERS.
        between: The separator of two words of the source, and of the target: a blank or nothing.
        random: Decides on the marks and the part.
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
