"""Find pairs whose sides are not translations of each other: they score no better than randomly matched sentences.

The score of a pair tells how well the words of its sides predict each other. The model is IBM model 1 (Brown et al.
1993) in both directions, trained on the pairs themselves. When a pair is scored, its own contribution to every count is
subtracted, so that the score depends on all other pairs alone. Otherwise, two rare words would predict each other only
because they occur together in this pair.
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
"""Matches a word. In scripts without spaces, group 1 is a bigram of characters, as long as most Chinese words."""
STEM_LETTERS = 5
"""Words that agree in this many first letters count as the same word, so that fewer words are rare."""
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
"""The maximum number of links (word pairs) that the model is trained on. It limits the memory to about 600 MB."""
COUNTED_PAIRS = 1000
"""The number of pairs whose links are counted to estimate the number of links in all pairs."""
MAX_CLASSES, MIN_CLASS_PAIRS = 8, 250
"""The maximum number of length classes, each with a threshold of its own, and the minimum number of pairs in a
class."""
MIN_TRAIN_PAIRS = 4 * MIN_CLASS_PAIRS
"""The minimum number of pairs to train the model on."""
LOW_QUANTILE = 0.5
"""This share of the randomly matched pairs is assumed to score lower than nearly all translations."""


class Links:
    """The L links of N pairs. A link connects a word of a source to a word of its target; all such links are listed."""

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
            vocabulary_size: The number of distinct target words.
        """
        sources, targets = (words[of_side] for words, of_side in zip(self.words, self.positions, strict=True))
        return sources * vocabulary_size + targets


class DirectedModel:
    """A model that predicts the words of one side from the words of the other side. An ``IBMModel1`` holds two.

    It is trained by expectation-maximization.
    """

    def __init__(self, links: Links, types: np.ndarray, given: np.ndarray, side: int, sizes: tuple[int, int]) -> None:
        """
        Args:
            links: The links of all training pairs.
            types: The type of each link, (L,) from 0 to K - 1. Links of the same two words have the same type.
            given: The predicting word of each type, (K,).
            side: The predicted side: 0 for the sources, 1 for the targets.
            sizes: The number of distinct source words, and of distinct target words.
        """
        self._side = side
        predicted = links.words[side]
        self._unigram = np.maximum(1, np.bincount(predicted, minlength=sizes[side])) / max(1, len(predicted))
        """The probability of each word of the vocabulary, without regard to the other side."""
        counts: np.ndarray = np.ones(len(given))
        totals: np.ndarray = np.full(sizes[1 - side], float(sizes[side]))
        for _ in range(EM_ITERATIONS):
            probabilities = counts / totals[given]
            counts = np.bincount(types, self._posteriors(probabilities[types], links), minlength=len(given))
            totals = np.bincount(given, counts, minlength=len(totals))
        # The last of the K + 1 types is for links that no training pair has.
        self._probabilities, self._counts = np.append(probabilities, 0.0), np.append(counts, 0.0)
        self._denominators = np.append(totals[given] + SMOOTHING, 1.0)

    def scores(self, links: Links, types: np.ndarray, is_learned: bool) -> np.ndarray:
        """Return the sum over the predicted words of each pair of log (p(word given the other side) / p(word)), (N,).

        Args:
            links: The links of the N pairs.
            types: The type of each link, (L,); K for a type that no training pair has.
            is_learned: Whether the model was trained on these pairs. Their own counts are then subtracted.
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

        The probabilities of the links of a predicted word sum to less than 1, because the word may be unaligned.

        Args:
            probabilities: The probability of each link's predicted word given its other word, (L,).
            links: The links.
        """
        predicted, positions = links.words[self._side], links.positions[self._side]
        totals = np.bincount(positions, probabilities, minlength=len(predicted)) + self._unigram[predicted]
        return probabilities / totals[positions]


class IBMModel1:
    """Scores how likely the two sides of a pair are translations of each other, after training on some of the pairs.

    The score of a pair is the sum over the words of both sides of log (p(word given the other side) / p(word)). It is
    negative for unrelated sentences, and positive for most translations.
    """

    def __init__(self, texts: Iterable[TextPairs]) -> None:
        """
        Args:
            texts: Yields the training pairs, a few thousand at a time.
        """
        words: tuple[list[Words], list[Words]] = ([], [])
        for batch in texts:
            for all_texts, new_texts in zip(words, truncated_words(batch), strict=True):
                all_texts += new_texts
        self._vocabularies = list(map(_build_vocabulary, words))
        sizes = len(self._vocabularies[0]), len(self._vocabularies[1])
        self.learned = self.to_indices(words)
        """The training pairs."""
        del words
        links = Links(self.learned)
        self._keys, types = np.unique(links.keys(sizes[1]), return_inverse=True)
        sources, targets = np.divmod(self._keys, max(1, sizes[1]))
        self._directions = [
            DirectedModel(links, types, *given_and_side, sizes) for given_and_side in ((sources, 1), (targets, 0))
        ]

    def randomly_matched(self) -> Sides:
        """Return the training sources with randomly matched targets.

        Each source gets the target of another pair with about the same numbers of words.
        """
        source, target = self.learned
        shuffled = np.random.default_rng(1).permutation(len(source))
        lengths = [side.value_lengths().to_numpy()[shuffled] for side in (target, source)]
        order = shuffled[np.lexsort(lengths)]
        return source.take(order), target.take(np.roll(order, 1))

    def scores(self, sides: Sides, is_learned: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Score N pairs, CHUNK_PAIRS at a time.

        Args:
            sides: The pairs.
            is_learned: Whether these are the training pairs. The counts of each pair itself are then subtracted before
                it is scored.

        Returns:
            The scores, (N,) float32, and the number of words of each pair that are in the vocabularies, (N,).
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

    def to_indices(self, words: Sequence[list[Words]]) -> Sides:
        """Return the words of each source and target as indices in the vocabularies, without unknown words."""
        sources, targets = (
            pyarrow.array([[numbers[word] for word in text if word in numbers] for text in texts], INDEX_LISTS)
            for numbers, texts in zip(self._vocabularies, words, strict=True)
        )
        return sources, targets


def _build_vocabulary(texts: Iterable[Words]) -> dict[str, int]:
    """Return a dict that maps each word to its index. Words that occur in only one text are skipped, because no other
    pair gives information about them."""
    counts = Counter(word for words in texts for word in words)
    return {word: number for number, word in enumerate(word for word in counts if counts[word] > 1)}


def truncated_words(texts: TextPairs) -> tuple[list[Words], list[Words]]:
    """Return the words of each source and of each target.

    If a side of a pair has more than MAX_SIDE_WORDS, both sides are truncated to the same share of their words.
    """
    sources, targets = ([_stems(text) for text in side] for side in texts)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        share = MAX_SIDE_WORDS / max(1, len(source), len(target))
        if share < 1:
            sources[row], targets[row] = (words[: math.ceil(share * len(words))] for words in (source, target))
    return sources, targets


def _stems(text: str) -> Words:
    """Return the distinct stems of a text, in order: the first STEM_LETTERS letters of each lowercased word."""
    stems = ((match[1] or match[0])[:STEM_LETTERS] for match in WORD_OR_BIGRAM.finditer(text.lower()))
    return list(dict.fromkeys(map(sys.intern, stems)))


def class_edges(values: np.ndarray, max_classes: int, pairs: int) -> np.ndarray:
    """Divide values into classes of equal size, and return the highest value of each class except the last, ascending.

    There are at most ``max_classes``. There are fewer if a class would have less than MIN_CLASS_PAIRS of the ``pairs``
    pairs, or if values are equal, because equal values are in one class.
    """
    classes = max(1, min(max_classes, pairs // MIN_CLASS_PAIRS))
    shares = np.linspace(0, 1, classes + 1)[1:-1]
    return np.unique(np.quantile(values, shares, method="lower"))


def score_and_classify(
    pairs: datasets.Dataset, rows: np.ndarray, train_pairs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train an IBM model 1 on pairs, score them, and decide for each whether its sides are translations of each other.

    The scores are compared with those of randomly matched sources and targets of equal lengths.

    Args:
        pairs: The dataset with the pairs.
        rows: The rows of the N pairs to score.
        train_pairs: The number of training pairs, at least MIN_TRAIN_PAIRS, which are the first of ``rows``. The model
            is trained on all or a sample of them.

    Returns:
        The score of each pair, (N,) float32; whether its sides are translations of each other, (N,) bool; and the
        scores of randomly matched sources and targets, (M,) float32.
    """
    counted = rows[evenly_spaced_rows(train_pairs, COUNTED_PAIRS, round_down=True)]
    links = sum(
        len(source) * len(target)
        for texts in read_texts(pairs, counted)
        for source, target in zip(*truncated_words(texts), strict=True)
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
            scores[part], lengths[part] = model.scores(model.to_indices(truncated_words(texts)))
            start += len(part)
            bar.update(len(part))
    random_scores, random_lengths = model.scores(model.randomly_matched())
    return scores, classify_translations(scores, lengths, random_scores, random_lengths), random_scores


def classify_translations(
    scores: np.ndarray, lengths: np.ndarray, random_scores: np.ndarray, random_lengths: np.ndarray
) -> np.ndarray:
    """Return for each of N pairs whether its sides are translations of each other, (N,) bool.

    Pairs are divided into classes by length. In each class, the share of pairs that score lower than the median of the
    randomly matched ones estimates the share of unrelated pairs. The threshold of the class minimizes the number of
    errors: translations below it, and unrelated pairs above it.

    Args:
        scores: The score of each pair, (N,).
        lengths: The number of words of each pair, (N,).
        random_scores: The scores of randomly matched sources and targets, (M,).
        random_lengths: The numbers of words of these, (M,).
    """
    edges = class_edges(random_lengths, MAX_CLASSES, len(scores))
    classes, random_classes = np.searchsorted(edges, lengths), np.searchsorted(edges, random_lengths)
    is_translation = np.ones(len(scores), dtype=bool)
    for number in np.unique(classes):
        of_class, random = np.sort(scores[classes == number]), np.sort(random_scores[random_classes == number])
        if min(len(of_class), len(random)) < MIN_CLASS_PAIRS:
            continue
        unrelated = np.mean(of_class <= np.quantile(random, LOW_QUANTILE)) / LOW_QUANTILE
        # For each possible threshold: the share of errors, minus the constant share of unrelated pairs.
        below = np.searchsorted(of_class, random, side="right") / len(of_class)
        unrelated_below = unrelated * np.arange(1, len(random) + 1) / len(random)
        errors = (below - unrelated_below) - unrelated_below
        best = int(np.argmin(errors))
        if errors[best] < 0:
            is_translation[(classes == number) & (scores <= random[best])] = False
    return is_translation
