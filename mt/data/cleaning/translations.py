"""Decide which pairs are no translations: those with the scores of sentences that were matched at random.

A score is how well the words of two sentences predict each other. The model is IBM model 1 (Brown et al. 1993) in both
directions, learned from the pairs themselves. When a pair is scored, its own part in every count is subtracted, so that
all other pairs determine the score. Otherwise two rare words would predict each other only because they occur together
in this very pair.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import datasets
import numpy as np
import pyarrow
import regex
from tqdm import tqdm

from mt.core.columns import evenly_spaced_rows
from mt.core.language import TOUCHING
from mt.core.ragged import positions_in_rows, row_starts
from mt.data.pairs import TextPairs, read_texts

WORD_OR_BIGRAM = regex.compile(rf"[^\W{TOUCHING}]+|(?=([{TOUCHING}]{{1,2}}))[{TOUCHING}]")
"""Matches a word. In scripts without spaces, group 1 is two characters, as long as most words of Chinese."""
STEM_LETTERS = 5
"""The number of letters that distinguish words, so that inflected forms are one word and fewer words are rare."""
EM_ITERATIONS = 4
"""The number of iterations of expectation-maximization."""
MAX_SIDE_WORDS = 30
"""If a side has more distinct words, the pair is judged by its beginning: the same share of both sides."""
UNALIGNED = 0.2
"""The probability that a word translates no word of the opposite side."""
SMOOTHING = 0.5
"""The value that is added to the number of occurrences of a word, so that a single one predicts nothing for sure."""
CHUNK_PAIRS = 20_000
"""The number of pairs that are scored at a time."""

Words = list[str]
INDEX_LISTS = pyarrow.list_(pyarrow.int64())
Sides = tuple[pyarrow.ListArray, pyarrow.ListArray]
"""The words of N sources and N targets, as indices in the vocabulary of their side."""

MAX_LINKS = 12_000_000
"""The most links (word pairs) that the model is learned from, which limits its memory to some 600 MB."""
COUNTED_PAIRS = 1000
"""The number of pairs by whose links the number of links in all pairs is estimated."""
MAX_CLASSES, MIN_CLASS_PAIRS = 8, 250
"""The most classes of lengths, each with its own threshold, and the minimum number of pairs in a class."""
MIN_TRAIN_PAIRS = 4 * MIN_CLASS_PAIRS
"""The minimum number of pairs to learn from."""
LOW_QUANTILE = 0.5
"""The share of the randomly matched pairs that score lower than nearly all translations."""


class Links:
    """The L word pairs of N sources and targets: each word of a source with each word of its target."""

    def __init__(self, sides: Sides) -> None:
        self.pairs = len(sides[0])
        """N"""
        self.words = [side.flatten().to_numpy() for side in sides]
        """The words of all sources (W,), and of all targets (W',), as indices in the vocabulary of their side."""
        lengths = [side.value_lengths().to_numpy() for side in sides]
        self.rows = [np.repeat(np.arange(len(side)), counts) for side, counts in zip(sides, lengths, strict=True)]
        """The row (0 to N - 1) of the text of each word in ``words``: (W,) and (W',)."""
        counts = lengths[0] * lengths[1]
        pairs = np.repeat(np.arange(len(counts)), counts)
        in_pair = np.divmod(positions_in_rows(counts), np.maximum(1, lengths[1])[pairs])
        self.positions = [row_starts(n)[pairs] + position for n, position in zip(lengths, in_pair, strict=True)]
        """The positions in ``words`` of the source word of each link (L,), and of its target word (L,)."""

    def keys(self, vocabulary_size: int) -> np.ndarray:
        """Return a number for each link that identifies its two words, (L,).

        Args:
            vocabulary_size: The number of different target words.
        """
        sources, targets = (words[of_side] for words, of_side in zip(self.words, self.positions, strict=True))
        return sources * vocabulary_size + targets


class Direction:
    """A model that predicts the words of one side from the words of the other side. A IBMModel1 holds two.

    It is learned by expectation-maximization.
    """

    def __init__(self, links: Links, types: np.ndarray, given: np.ndarray, side: int, sizes: tuple[int, int]) -> None:
        """
        Args:
            links: The links of all texts to learn from.
            types: The type of each link, (L,) from 0 to K - 1. Links of the same two words have the same type.
            given: The predicting word of each type, (K,).
            side: The predicted side: 0 for the sources, 1 for the targets.
            sizes: The number of different source words, and of different target words.
        """
        self._side = side
        predicted = links.words[side]
        self._unigram = np.maximum(1, np.bincount(predicted, minlength=sizes[side])) / max(1, len(predicted))
        """The probability of each word of the vocabulary, whatever the other side."""
        counts: np.ndarray = np.ones(len(given))
        totals: np.ndarray = np.full(sizes[1 - side], float(sizes[side]))
        for _ in range(EM_ITERATIONS):
            probabilities = counts / totals[given]
            counts = np.bincount(types, self._posteriors(probabilities[types], links), minlength=len(given))
            totals = np.bincount(given, counts, minlength=len(totals))
        # The last of the K + 1 types is for links of words that were never in one pair.
        self._probabilities, self._counts = np.append(probabilities, 0.0), np.append(counts, 0.0)
        self._denominators = np.append(totals[given] + SMOOTHING, 1.0)

    def scores(self, links: Links, types: np.ndarray, is_learned: bool) -> np.ndarray:
        """Return the sum over the predicted words of each pair of log (p(word given the other side) / p(word)), (N,).

        Args:
            links: The links of the N pairs.
            types: The type of each link, (L,); K for a type that was not learned.
            is_learned: Whether the model was learned from these pairs, so that their own counts are subtracted.
        """
        counts = self._counts[types]
        if is_learned:
            counts = np.maximum(0, counts - self._posteriors(self._probabilities[types], links))
        predicted, positions = links.words[self._side], links.positions[self._side]
        smoothed = np.bincount(positions, counts / self._denominators[types], minlength=len(predicted))
        probabilities = smoothed / np.maximum(1, np.bincount(positions, minlength=len(predicted)))
        ratios = np.log((1 - UNALIGNED) * probabilities / self._unigram[predicted] + UNALIGNED)
        return np.bincount(links.rows[self._side], ratios, minlength=links.pairs)

    def _posteriors(self, probabilities: np.ndarray, links: Links) -> np.ndarray:
        """Return the posterior probability of each link, (L,).

        The probabilities of the links of a predicted word sum to less than 1: the word may also be unaligned.

        Args:
            probabilities: The probability of each link's predicted word given its other word, (L,).
            links: The links.
        """
        predicted, positions = links.words[self._side], links.positions[self._side]
        totals = np.bincount(positions, probabilities, minlength=len(predicted)) + self._unigram[predicted]
        return probabilities / totals[positions]


class IBMModel1:
    """A model that scores how likely pairs are translations, learned from some of the pairs.

    The score of a pair is the sum over the words of both sides of log (p(word given the other side) / p(word)). It is
    negative for unrelated sentences, and positive for most translations.
    """

    def __init__(self, texts: Iterable[TextPairs]) -> None:
        """
        Args:
            texts: The pairs to learn from, some thousand at a time.
        """
        words: tuple[list[Words], list[Words]] = ([], [])
        for batch in texts:
            for all_texts, new_texts in zip(words, beginnings(batch), strict=True):
                all_texts += new_texts
        self._vocabularies = list(map(_vocabulary, words))
        sizes = len(self._vocabularies[0]), len(self._vocabularies[1])
        self.learned = self.numbered(words)
        """The pairs that the model was learned from."""
        del words
        links = Links(self.learned)
        self._keys, types = np.unique(links.keys(sizes[1]), return_inverse=True)
        sources, targets = np.divmod(self._keys, max(1, sizes[1]))
        self._directions = [
            Direction(links, types, *given_and_side, sizes) for given_and_side in ((sources, 1), (targets, 0))
        ]

    def rematched(self) -> Sides:
        """Return the learned sources with randomly matched targets.

        Each source gets the target of another pair with about the same number of words on both sides.
        """
        source, target = self.learned
        shuffled = np.random.default_rng(1).permutation(len(source))
        lengths = [side.value_lengths().to_numpy()[shuffled] for side in (target, source)]
        order = shuffled[np.lexsort(lengths)]
        return source.take(order), target.take(np.roll(order, 1))

    def scores(self, sides: Sides, is_learned: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of N pairs, (N,) float32, and the number of words of both sides that are in the
        vocabularies, (N,). CHUNK_PAIRS pairs are scored at a time.

        Args:
            sides: The pairs.
            is_learned: Whether these are the pairs that the model was learned from. The counts of each pair itself are
                then subtracted before it is scored.
        """
        scores = np.zeros(len(sides[0]), dtype=np.float32)
        for start in range(0, len(scores), CHUNK_PAIRS):
            rows = slice(start, start + CHUNK_PAIRS)
            links = Links((sides[0][rows], sides[1][rows]))
            keys = links.keys(len(self._vocabularies[1]))
            types = np.searchsorted(self._keys, keys)
            types[np.append(self._keys, -1)[types] != keys] = len(self._keys)
            for direction in self._directions:
                scores[rows] += direction.scores(links, types, is_learned)
        return scores, sides[0].value_lengths().to_numpy() + sides[1].value_lengths().to_numpy()

    def numbered(self, words: Sequence[list[Words]]) -> Sides:
        """Return the words of each source and target as indices in the vocabularies, without the words that are in
        none."""
        sources, targets = (
            pyarrow.array([[numbers[word] for word in text if word in numbers] for text in texts], INDEX_LISTS)
            for numbers, texts in zip(self._vocabularies, words, strict=True)
        )
        return sources, targets


def _vocabulary(texts: Iterable[Words]) -> dict[str, int]:
    """Return a dict that maps each word of two or more texts to its index. Words of a single text are left out: no
    other pair tells anything about them."""
    counts = Counter(word for words in texts for word in words)
    return {word: number for number, word in enumerate(word for word in counts if counts[word] > 1)}


def beginnings(texts: TextPairs) -> tuple[list[Words], list[Words]]:
    """Return the words of each source and of each target.

    A pair with more than MAX_SIDE_WORDS on a side is cut: the same share of both sides remains.
    """
    sources, targets = ([_words(text) for text in side] for side in texts)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        share = MAX_SIDE_WORDS / max(1, len(source), len(target))
        if share < 1:
            sources[row], targets[row] = (words[: math.ceil(share * len(words))] for words in (source, target))
    return sources, targets


def _words(text: str) -> Words:
    """Return the distinct stems of a text, in their order: the first STEM_LETTERS of each word in lowercase."""
    stems = ((match[1] or match[0])[:STEM_LETTERS] for match in WORD_OR_BIGRAM.finditer(text.lower()))
    return list(dict.fromkeys(map(sys.intern, stems)))


def class_edges(values: np.ndarray, max_classes: int, pairs: int) -> np.ndarray:
    """Divide values into classes of equal size, and return the highest value of each class but the last, ascending.

    There are at most ``max_classes``, fewer if a class of ``pairs`` pairs would have less than MIN_CLASS_PAIRS, or if
    values are equal: these are in the same class.
    """
    classes = max(1, min(max_classes, pairs // MIN_CLASS_PAIRS))
    shares = np.linspace(0, 1, classes + 1)[1:-1]
    return np.unique(np.quantile(values, shares, method="lower"))


def score_translations(
    pairs: datasets.Dataset, rows: np.ndarray, train_pairs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score pairs by a model that is learned from them, and decide which are translations.

    The scores of the translations are compared with those of randomly matched sources and targets of equal lengths.

    Args:
        pairs: The dataset with the pairs.
        rows: The rows of the N pairs to score.
        train_pairs: The number of pairs, the first of ``rows``, from all or some of which the model is learned; at
            least
            MIN_TRAIN_PAIRS.

    Returns:
        The score of each pair, (N,) float32; whether it is a translation, (N,) bool; and the scores of randomly matched
        sources and targets, (M,) float32.
    """
    counted = rows[evenly_spaced_rows(train_pairs, COUNTED_PAIRS, round_down=True)]
    links = sum(
        len(source) * len(target)
        for texts in read_texts(pairs, counted)
        for source, target in zip(*beginnings(texts), strict=True)
    )
    sample = evenly_spaced_rows(train_pairs, MAX_LINKS * COUNTED_PAIRS // max(1, links), round_down=True)
    model = IBMModel1(read_texts(pairs, rows[sample]))
    scores, lengths = np.zeros(len(rows), dtype=np.float32), np.zeros(len(rows), dtype=np.int16)
    scores[sample], lengths[sample] = model.scores(model.learned, is_learned=True)
    others = np.setdiff1d(np.arange(len(rows)), sample)
    start = 0
    with tqdm(total=len(others), desc="translations", unit=" pairs", disable=None, leave=False) as bar:
        for texts in read_texts(pairs, rows[others]):
            part = others[start : start + len(texts[0])]
            scores[part], lengths[part] = model.scores(model.numbered(beginnings(texts)))
            start += len(part)
            bar.update(len(part))
    random_scores, random_lengths = model.scores(model.rematched())
    return scores, find_translations(scores, lengths, random_scores, random_lengths), random_scores


def find_translations(
    scores: np.ndarray, lengths: np.ndarray, random_scores: np.ndarray, random_lengths: np.ndarray
) -> np.ndarray:
    """Return whether each of N pairs is a translation, (N,) bool.

    Pairs are divided into classes by their lengths. In each class, the share of pairs that score lower than the median
    of the randomly matched ones shows how many pairs are no translations. The threshold of the class minimizes the
    number of wrong decisions: translations below it, and other pairs above it.

    Args:
        scores: The score of each pair, (N,).
        lengths: The number of words of each pair, (N,).
        random_scores: The scores of randomly matched sources and targets, (M,).
        random_lengths: Their numbers of words, (M,).
    """
    edges = class_edges(random_lengths, MAX_CLASSES, len(scores))
    classes, random_classes = np.searchsorted(edges, lengths), np.searchsorted(edges, random_lengths)
    is_translation = np.ones(len(scores), dtype=bool)
    for number in np.unique(classes):
        of_class, random = np.sort(scores[classes == number]), np.sort(random_scores[random_classes == number])
        if min(len(of_class), len(random)) < MIN_CLASS_PAIRS:
            continue
        unrelated = np.mean(of_class <= np.quantile(random, LOW_QUANTILE)) / LOW_QUANTILE
        # For each possible threshold: the share of wrong decisions, minus the constant share of unrelated pairs.
        below = np.searchsorted(of_class, random, side="right") / len(of_class)
        unrelated_below = unrelated * np.arange(1, len(random) + 1) / len(random)
        wrong = (below - unrelated_below) - unrelated_below
        best = int(np.argmin(wrong))
        if wrong[best] < 0:
            is_translation[(classes == number) & (scores <= random[best])] = False
    return is_translation
