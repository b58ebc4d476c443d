"""Puts dashes and other symbols into training pairs, for a corpus that has few of them."""

from collections.abc import Sequence

import numpy as np
import regex

from mt.text.normalization.final_punctuation import without_final_punctuation

SYMBOLS = ("–", "/", "&", "+", "~")
COMMA = regex.compile(r"(?<=[\p{L}\p{M}])[,;，；、،]")


def with_symbol(
    sources: Sequence[str],
    targets: Sequence[str],
    words: Sequence[tuple[str, str]],
    symbols: Sequence[str],
    between: Sequence[str],
    random: np.random.Generator,
) -> tuple[str, str]:
    """Return a source and a target with a symbol and a blank in front of corresponding parts.

    - Of joined pairs, the part is the last pair. Final punctuation in front of it is removed.
    - Of a single pair, it is the text after a comma, which is removed; or a word and its translation. If there is
      neither, it is the whole sentences.

    Args:
        sources, targets: The texts of one pair, or of several pairs to join.
        words: Words of a single pair that occur once in the source and whose translations occur once in the target,
            with their translations.
        symbols: The symbols to choose from.
        between: The separator of two words of the source, and of the target: a blank or nothing.
        random: Decides on the symbol and the part.
    """
    symbol = symbols[int(random.integers(len(symbols)))]
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
        return sources[0].replace(word, f"{symbol} {word}"), targets[0].replace(translation, f"{symbol} {translation}")
    sides = zip(heads, tails, between, strict=True)
    source, target = (f"{head}{blank if head else ''}{symbol} {tail}" for head, tail, blank in sides)
    return source, target
