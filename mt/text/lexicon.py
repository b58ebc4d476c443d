"""Word translations, from counts of the words that stand in the same training pairs.

In training, placeholders are to stand where values stand in users' lines: before nouns, after prepositions, in the
middle of a sentence. Many corpora have few numbers and names. So placeholders replace other words, too, each together
with its translation.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import regex

from mt.core.language import TOUCHING
from mt.text.numbers import SIMPLE_WORD
from mt.text.values import TOUCHING_LETTER

TWO_CHARACTERS = regex.compile(rf"(?=([{TOUCHING}]{{2}}))")
"""What counts as a word where words touch each other: two characters, as most words of Chinese have."""
MIN_SHARED_PAIRS = 5
"""Minimum number of pairs that hold both words."""
MAX_PAIRS_SHARE = 0.01
"""Words in more than this share of the pairs are left out: articles, pronouns, prepositions."""
MIN_DICE = 0.4
"""Minimum Dice coefficient of two words: twice the number of pairs that have both, over the sum of the numbers of
pairs that have the one and the other."""
MAX_COUNTED_PAIRS = 10_000_000
"""Maximum number of word pairs that are counted, which bounds time (seconds) and memory (some 300 MB)."""


class Lexicon:
    """A bilingual lexicon: pairs of a source and a target word that are each other's best match by Dice coefficient."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        """
        Args:
            pairs: Sources and targets, in an order that shows all kinds of them. They are read until MAX_COUNTED_PAIRS
                word pairs are counted.
        """
        vocabularies: tuple[dict[str, int], dict[str, int]] = ({}, {})
        numbered: list[tuple[np.ndarray, np.ndarray]] = []
        counted = 0
        for texts in pairs:
            source, target = (
                np.array(
                    sorted({vocabulary.setdefault(word, len(vocabulary)) for word in lexicon_words(text.lower())}),
                    np.int64,
                )
                for vocabulary, text in zip(vocabularies, texts, strict=True)
            )
            numbered.append((source, target))
            counted += len(source) * len(target)
            if counted >= MAX_COUNTED_PAIRS:
                break
        sources, targets = map(list, vocabularies)
        self._target_of = _best_matches(numbered, sources, targets) if counted else {}

    def __len__(self) -> int:
        return len(self._target_of)

    def pairs_of(self, source: str, target: str) -> list[tuple[str, str]]:
        """Return the (source word, target word) pairs of the lexicon that occur in a sentence pair.

        Both words occur exactly once on their side, and have the casing of the texts. The order is that of the source.
        """
        once = [_words_that_occur_once(text) for text in (source, target)]
        translated = ((once[0][word], once[1].get(self._target_of.get(word, ""))) for word in once[0])
        return [(word, other) for word, other in translated if other is not None]


def _words_that_occur_once(text: str) -> dict[str, str]:
    """Map the lower-case form of each word that occurs once in a text, and inside no other word, to the word."""
    all_words = lexicon_words(text)
    times = Counter(word.lower() for word in all_words)
    return {word.lower(): word for word in all_words if times[word.lower()] == 1 == text.count(word)}


def lexicon_words(text: str) -> list[str]:
    # Letters that words may touch are like punctuation to them.
    return SIMPLE_WORD.findall(TOUCHING_LETTER.sub("。", text)) + TWO_CHARACTERS.findall(text)


def _best_matches(pairs: list[tuple[np.ndarray, np.ndarray]], sources: list[str], targets: list[str]) -> dict[str, str]:
    """Map each source word that has a best match to its target word.

    Args:
        pairs: For each pair the numbers of the different words of its source and of its target.
        sources, targets: The words that the numbers stand for.
    """
    times = [np.bincount(np.concatenate(side)) for side in zip(*pairs, strict=True)]
    keys = np.concatenate([(source[:, None] * len(targets) + target).ravel() for source, target in pairs])
    keys, together = np.unique(keys, return_counts=True)
    source, target = np.divmod(keys, len(targets))
    most = max(MIN_SHARED_PAIRS, MAX_PAIRS_SHARE * len(pairs))
    usual = (together >= MIN_SHARED_PAIRS) & (times[0][source] <= most) & (times[1][target] <= most)
    source, target, together = source[usual], target[usual], together[usual]
    dice = 2 * together / (times[0][source] + times[1][target])
    best = [np.zeros(len(names)) for names in (sources, targets)]
    np.maximum.at(best[0], source, dice)
    np.maximum.at(best[1], target, dice)
    chosen = (dice >= MIN_DICE) & (dice == best[0][source]) & (dice == best[1][target])
    return {
        sources[word]: targets[translation]
        for word, translation in zip(source[chosen].tolist(), target[chosen].tolist(), strict=True)
    }
