"""Score how likely two sentences are translations of each other, by how well their words predict each other.

The model is IBM model 1 (Brown et al. 1993) in both directions, learnt from the pairs themselves. A pair is scored by
all other pairs: its own part in every count is taken out first. Otherwise rare words would vouch for each other only
because they occur together in this very pair.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow
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
NUMBERS = pyarrow.list_(pyarrow.int64())
Sides = tuple[pyarrow.ListArray, pyarrow.ListArray]
"""The numbers of the words of N sources and N targets."""


class Links:
    """The word pairs of some texts: each word of a source with each word of its target, L in all."""

    def __init__(self, sides: Sides) -> None:
        self.words = [side.flatten().to_numpy() for side in sides]
        """The words of all sources, and of all targets."""
        lengths = [side.value_lengths().to_numpy() for side in sides]
        counts = lengths[0] * lengths[1]
        pairs = np.repeat(np.arange(len(counts)), counts)
        numbers = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)  # 0, 1, 2 … in each pair
        in_pair = np.divmod(numbers, np.maximum(1, lengths[1])[pairs])
        self.positions = [(np.cumsum(n) - n)[pairs] + position for n, position in zip(lengths, in_pair, strict=True)]
        """(L,) for the source and (L,) for the target: the positions in ``words`` of the words of each link."""

    def keys(self, vocabulary_size: int) -> np.ndarray:
        """Return one number for both words of each link, (L,), given the number of different target words."""
        sources, targets = (words[of_side] for words, of_side in zip(self.words, self.positions, strict=True))
        return sources * vocabulary_size + targets


class Direction:
    """Predicts the words of one side from those of the other, learnt by expectation-maximisation."""

    def __init__(self, links: Links, types: np.ndarray, given: np.ndarray, side: int, sizes: tuple[int, int]) -> None:
        """
        Args:
            links: The links of all texts.
            types: (L,) the type of each link, of K types: the same two words have the same type.
            given: (K,) the predicting word of each type.
            side: The predicted side: 0 for the sources, 1 for the targets.
            sizes: The number of different source words, and of target words.
        """
        self._side = side
        predicted = links.words[side]
        self._unigram = np.maximum(1, np.bincount(predicted, minlength=sizes[side])) / max(1, len(predicted))
        """The probability of each predicted word, regardless of the other side."""
        counts: np.ndarray = np.ones(len(given))
        totals: np.ndarray = np.full(sizes[1 - side], float(sizes[side]))
        for _ in range(ITERATIONS):
            probabilities = counts / totals[given]
            counts = np.bincount(types, self._posteriors(probabilities[types], links), minlength=len(given))
            totals = np.bincount(given, counts, minlength=len(totals))
        # One more type, the last, is for links that were not learnt.
        self._probabilities, self._counts = np.append(probabilities, 0.0), np.append(counts, 0.0)
        self._denominators = np.append(totals[given] + SMOOTHING, 1.0)

    def log_ratios(self, links: Links, types: np.ndarray, is_learnt: bool) -> np.ndarray:
        """Return how much more probable the other side makes each predicted word, as logarithms.

        Args:
            links: The links of some texts.
            types: (L,) the type of each link; K for one that was not learnt.
            is_learnt: Whether the model was learnt from these texts, so that their own part is to be taken out.
        """
        counts = self._counts[types]
        if is_learnt:
            counts = np.maximum(0, counts - self._posteriors(self._probabilities[types], links))
        predicted, positions = links.words[self._side], links.positions[self._side]
        smoothed = np.bincount(positions, counts / self._denominators[types], minlength=len(predicted))
        probabilities = smoothed / np.maximum(1, np.bincount(positions, minlength=len(predicted)))
        return np.log((1 - UNALIGNED) * probabilities / self._unigram[predicted] + UNALIGNED)

    def _posteriors(self, probabilities: np.ndarray, links: Links) -> np.ndarray:
        """Return the probability of each link, (L,). The rest of a word is aligned with nothing."""
        predicted, positions = links.words[self._side], links.positions[self._side]
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
        self._vocabularies = list(map(_vocabulary, words))
        sizes = len(self._vocabularies[0]), len(self._vocabularies[1])
        self._learnt = self._number(words)
        del words
        links = Links(self._learnt)
        self._keys, types = np.unique(links.keys(sizes[1]), return_inverse=True)
        sources, targets = np.divmod(self._keys, max(1, sizes[1]))
        self._directions = [Direction(links, types, *each, sizes) for each in ((sources, 1), (targets, 0))]

    def scores(self, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of other pairs, (N,) float32, and the number of known words of each."""
        return self._scores(self._number(_beginnings(texts)))

    def scores_of_learnt(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores, as ``scores`` does, of the pairs that the model was learnt from, by all others."""
        return self._scores(self._learnt, is_learnt=True)

    def scores_of_rematched(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores, as ``scores`` does, of learnt sources with random targets of about their own's length."""
        source, target = self._learnt
        shuffled = np.random.default_rng(seed).permutation(len(source))
        lengths = [side.value_lengths().to_numpy()[shuffled] for side in (target, source)]
        order = shuffled[np.lexsort(lengths)]
        return self._scores((source.take(order), target.take(np.roll(order, 1))))

    def _scores(self, sides: Sides, is_learnt: bool = False) -> tuple[np.ndarray, np.ndarray]:
        lengths = [side.value_lengths().to_numpy() for side in sides]
        scores = np.zeros(len(lengths[0]), dtype=np.float32)
        for start in range(0, len(scores), CHUNK_PAIRS):
            rows = slice(start, start + CHUNK_PAIRS)
            links = Links((sides[0][rows], sides[1][rows]))
            keys = links.keys(len(self._vocabularies[1]))
            types = np.searchsorted(self._keys, keys)
            types[np.append(self._keys, -1)[types] != keys] = len(self._keys)
            for direction, side in zip(self._directions, (1, 0), strict=True):
                pair_of_word = np.repeat(np.arange(len(scores[rows])), lengths[side][rows])
                ratios = direction.log_ratios(links, types, is_learnt)
                scores[rows] += np.bincount(pair_of_word, ratios, minlength=len(scores[rows]))
        return scores, lengths[0] + lengths[1]

    def _number(self, words: Sequence[list[Words]]) -> Sides:
        sources, targets = (
            pyarrow.array([[numbers[word] for word in text if word in numbers] for text in texts], NUMBERS)
            for numbers, texts in zip(self._vocabularies, words, strict=True)
        )
        return sources, targets


def number_of_links(texts: Texts) -> int:
    """Return the number of word pairs in all pairs of texts."""
    return sum(len(source) * len(target) for source, target in zip(*_beginnings(texts), strict=True))


def _vocabulary(texts: Iterable[Words]) -> dict[str, int]:
    """Assign a number to each word of two or more texts. No other pair could vouch for the rest."""
    counts = Counter(word for words in texts for word in words)
    return {word: number for number, word in enumerate(word for word in counts if counts[word] > 1)}


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
