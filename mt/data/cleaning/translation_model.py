"""Score how likely two sentences are translations of each other, by how well their words predict each other.

The model is IBM model 1 (Brown et al. 1993) in both directions, learnt from the pairs themselves. A pair is scored by
all other pairs: its own part in every count is taken out first. Otherwise rare words would vouch for each other only
because they occur together in this very pair.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import regex

from mt.core.language import TOUCHING
from mt.data.cleaning.batch import Texts

WORD = regex.compile(rf"[^\W{TOUCHING}]+|(?=([{TOUCHING}]{{1,2}}))[{TOUCHING}]")
"""A word; where words touch each other, two characters, as most words of Chinese have."""
STEM_LETTERS = 5
"""The number of letters that distinguish words, so that inflected forms are one word and fewer words are rare."""
ITERATIONS = 4
MAX_WORDS = 30
"""If a side has more distinct words, the pair is judged by its beginning: the same share of both sides."""
UNALIGNED = 0.2
"""The probability that a word translates none of the other side."""
SMOOTHING = 0.5
"""Added to the number of occurrences of a word, so that a single one predicts nothing for sure."""
CHUNK_PAIRS = 20_000

Words = list[str]


@dataclass(frozen=True)
class Numbered:
    """One side of N pairs: the numbers of the words of all texts, concatenated."""

    words: np.ndarray
    lengths: np.ndarray
    """(N,) number of words of each text."""

    @property
    def starts(self) -> np.ndarray:
        return np.cumsum(self.lengths) - self.lengths

    def take(self, rows: np.ndarray) -> "Numbered":
        lengths = self.lengths[rows]
        return Numbered(self.words[np.repeat(self.starts[rows], lengths) + _ranges(lengths)], lengths)


Sides = tuple[Numbered, Numbered]
"""Sources and targets."""


class Direction:
    """Predicts the words of one side from those of the other, learnt by expectation-maximisation."""

    def __init__(
        self, types: np.ndarray, given: np.ndarray, positions: np.ndarray, predicted: np.ndarray, sizes: tuple[int, int]
    ) -> None:
        """
        Args:
            types: (L,) the type of each link, of K types: the same two words have the same type.
            given: (K,) the predicting word of each type.
            positions: (L,) the position in ``predicted`` that each link predicts.
            predicted: The predicted words of all texts.
            sizes: The number of distinct words on the predicting side and on the predicted one.
        """
        self._unigram = np.maximum(1, np.bincount(predicted, minlength=sizes[1])) / max(1, len(predicted))
        """The probability of each predicted word, regardless of the other side."""
        counts: np.ndarray = np.ones(len(given))
        totals: np.ndarray = np.full(sizes[0], float(sizes[1]))
        for _ in range(ITERATIONS):
            probabilities = counts / totals[given]
            posteriors = self._posteriors(probabilities[types], positions, predicted)
            counts = np.bincount(types, posteriors, minlength=len(given))
            totals = np.bincount(given, counts, minlength=sizes[0])
        # One more type, the last, is for links that were not learnt.
        self._probabilities, self._counts = np.append(probabilities, 0.0), np.append(counts, 0.0)
        self._denominators = np.append(totals[given] + SMOOTHING, 1.0)

    def log_ratios(
        self, types: np.ndarray, positions: np.ndarray, predicted: np.ndarray, is_learnt: bool
    ) -> np.ndarray:
        """Return how much more probable the other side makes each predicted word, as logarithms.

        Args:
            types: (L,) the type of each link; K for one that was not learnt.
            positions: (L,) the position in ``predicted`` that each link predicts.
            predicted: The predicted words.
            is_learnt: Whether the model was learnt from these texts, so that their own part is to be taken out.
        """
        counts = self._counts[types]
        if is_learnt:
            counts = np.maximum(0, counts - self._posteriors(self._probabilities[types], positions, predicted))
        links = np.maximum(1, np.bincount(positions, minlength=len(predicted)))
        smoothed = counts / self._denominators[types]
        probabilities = np.bincount(positions, smoothed, minlength=len(predicted)) / links
        return np.log((1 - UNALIGNED) * probabilities / self._unigram[predicted] + UNALIGNED)

    def _posteriors(self, probabilities: np.ndarray, positions: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Return the probability of each link, (L,). The rest of a word is aligned with nothing."""
        totals = np.bincount(positions, probabilities, minlength=len(predicted)) + self._unigram[predicted]
        return probabilities / totals[positions]


class TranslationModel:
    """Learnt from some pairs; scores these and others.

    The score of a pair is the sum, over the words of both sides, of the log-likelihood ratios of the word given the
    other side and regardless of it. It is negative for unrelated sentences, and positive for most translations.
    """

    def __init__(self, texts: Iterable[Texts]) -> None:
        """
        Args:
            texts: The texts of the pairs, some thousand at a time.
        """
        words: tuple[list[Words], list[Words]] = ([], [])
        for batch in texts:
            for all_texts, new_texts in zip(words, _beginnings(batch), strict=True):
                all_texts += new_texts
        self._vocabularies = _vocabulary(words[0]), _vocabulary(words[1])
        self._learnt = self._number(words)
        del words
        positions = _links(self._learnt)
        self._keys, types = np.unique(self._keys_of(self._learnt, positions), return_inverse=True)
        sizes = len(self._vocabularies[0]), len(self._vocabularies[1])
        sources, targets = np.divmod(self._keys, max(1, sizes[1]))
        source, target = self._learnt
        self._directions = (
            Direction(types, sources, positions[1], target.words, sizes),
            Direction(types, targets, positions[0], source.words, sizes[::-1]),
        )

    def scores(self, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of other pairs, (N,) float32, and the number of known words of each."""
        return self._scores(self._number(_beginnings(texts)))

    def scores_of_learnt(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores, as ``scores`` does, of the pairs that the model was learnt from, by all others."""
        return self._scores(self._learnt, is_learnt=True)

    def scores_of_rematched(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores, as ``scores`` does, of learnt sources with random targets of about their own's length."""
        source, target = self._learnt
        shuffled = np.random.default_rng(seed).permutation(len(source.lengths))
        order = shuffled[np.lexsort((target.lengths[shuffled], source.lengths[shuffled]))]
        return self._scores((source.take(order), target.take(np.roll(order, 1))))

    def _scores(self, sides: Sides, is_learnt: bool = False) -> tuple[np.ndarray, np.ndarray]:
        lengths = sides[0].lengths + sides[1].lengths
        scores = np.zeros(len(lengths), dtype=np.float32)
        for start in range(0, len(scores), CHUNK_PAIRS):
            rows = np.arange(start, min(len(scores), start + CHUNK_PAIRS))
            chunk = sides[0].take(rows), sides[1].take(rows)
            positions = _links(chunk)
            keys = self._keys_of(chunk, positions)
            types = np.searchsorted(self._keys, keys)
            types[np.append(self._keys, -1)[types] != keys] = len(self._keys)
            for direction, side, predicted in zip(self._directions, chunk[::-1], positions[::-1], strict=True):
                ratios = direction.log_ratios(types, predicted, side.words, is_learnt)
                scores[rows] += np.bincount(np.repeat(rows - start, side.lengths), ratios, minlength=len(rows))
        return scores, lengths

    def _number(self, words: tuple[list[Words], list[Words]]) -> Sides:
        return _number(self._vocabularies[0], words[0]), _number(self._vocabularies[1], words[1])

    def _keys_of(self, sides: Sides, positions: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return one number for both words of each link."""
        sources, targets = (side.words[of_side] for side, of_side in zip(sides, positions, strict=True))
        return sources * len(self._vocabularies[1]) + targets


def number_of_links(texts: Texts) -> int:
    """Return the number of word pairs in all pairs of texts."""
    return sum(len(source) * len(target) for source, target in zip(*_beginnings(texts), strict=True))


def _vocabulary(texts: Iterable[Words]) -> dict[str, int]:
    """Assign a number to each word of two or more texts. No other pair could vouch for the rest."""
    counts = Counter(word for words in texts for word in words)
    return {word: number for number, word in enumerate(word for word in counts if counts[word] > 1)}


def _number(vocabulary: dict[str, int], texts: Sequence[Words]) -> Numbered:
    rows = [[vocabulary[word] for word in words if word in vocabulary] for words in texts]
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    return Numbered(np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum())), lengths)


def _links(sides: Sides) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the source and the target word of every word pair, (L,) each."""
    source, target = sides
    counts = source.lengths * target.lengths
    pairs = np.repeat(np.arange(len(counts)), counts)
    first, second = np.divmod(_ranges(counts), np.maximum(1, target.lengths)[pairs])
    return source.starts[pairs] + first, target.starts[pairs] + second


def _ranges(lengths: np.ndarray) -> np.ndarray:
    """Return 0, 1, 2 … for each of the lengths: [0, 1, 0, 1, 2] for 2 and 3."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _beginnings(texts: Texts) -> tuple[list[Words], list[Words]]:
    """Return the words of each source and target. Of long ones, the same share of both."""
    sources, targets = ([_words(text) for text in side] for side in texts)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        share = MAX_WORDS / max(1, len(source), len(target))
        if share < 1:
            sources[row], targets[row] = (words[: math.ceil(share * len(words))] for words in (source, target))
    return sources, targets


def _words(text: str) -> Words:
    """Return the stems of the distinct words of a text in small letters, in their order."""
    stems = ((match[1] or match[0])[:STEM_LETTERS] for match in WORD.finditer(text.lower()))
    return list(dict.fromkeys(map(sys.intern, stems)))
