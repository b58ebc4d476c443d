"""Scores how likely two sentences are translations of each other, by how well the words of each predict those of the
other.

The model is the first of IBM's (Brown et al. 1993), in both directions, learnt from the pairs themselves. A pair is
scored by what all others say: its own part in every count is taken out first. Otherwise rare words would vouch for each
other, only because they stand together in this very pair.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import regex

from mt.core.language import TOUCHING

WORD = regex.compile(rf"[^\W{TOUCHING}]+|(?=([{TOUCHING}]{{1,2}}))[{TOUCHING}]")
"""A word; where words touch each other, two characters, as most words of Chinese have."""
STEM = 5
"""How many letters of a word count, so that its forms are one word and fewer words are rare."""
ITERATIONS = 4
MOST_WORDS = 30
"""If a side has more different words, the pair is judged by its beginning: the same share of both sides."""
UNKNOWN = 0.2
"""How probable it is that a word translates none of the other side."""
ADDED = 0.5
"""To the number of times that a word was seen, so that one that was seen once predicts nothing for sure."""
PAIRS_AT_ONCE = 20_000

Texts = tuple[Sequence[str], Sequence[str]]
"""Sources and targets."""
Words = list[str]


@dataclass(frozen=True)
class Numbered:
    """One side of N pairs: the numbers of the words of each text, one text after the other."""

    words: np.ndarray
    lengths: np.ndarray
    """(N,) how many words each text has."""

    @property
    def starts(self) -> np.ndarray:
        return np.cumsum(self.lengths) - self.lengths

    def take(self, rows: np.ndarray) -> "Numbered":
        lengths = self.lengths[rows]
        return Numbered(self.words[np.repeat(self.starts[rows], lengths) + _count_up(lengths)], lengths)


@dataclass(frozen=True)
class Links:
    """Every pair of words that stand in one pair of texts: L of them, in N pairs of texts."""

    source: np.ndarray
    """(L,) the place of the one word among those of all sources."""
    target: np.ndarray
    """(L,) the place of the other among those of all targets."""

    @classmethod
    def between(cls, source: Numbered, target: Numbered) -> "Links":
        each = source.lengths * target.lengths
        pairs = np.repeat(np.arange(len(each)), each)
        first, second = np.divmod(_count_up(each), np.maximum(1, target.lengths)[pairs])
        return cls(source.starts[pairs] + first, target.starts[pairs] + second)


class Vocabulary:
    """Numbers the words of one side that stand in two texts or more. Of others, no other pair could say what they
    mean."""

    def __init__(self, texts: Iterable[Words]) -> None:
        times = Counter(word for words in texts for word in words)
        self._number = {word: number for number, word in enumerate(word for word in times if times[word] > 1)}

    def __len__(self) -> int:
        return len(self._number)

    def number(self, texts: Sequence[Words]) -> Numbered:
        rows = [[self._number[word] for word in words if word in self._number] for words in texts]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        return Numbered(np.fromiter((word for row in rows for word in row), np.int64, int(lengths.sum())), lengths)


class Direction:
    """How the words of one side predict those of the other, learnt by expectation-maximisation."""

    def __init__(
        self, known: np.ndarray, given: np.ndarray, place: np.ndarray, predicted: np.ndarray, sizes: Sequence[int]
    ) -> None:
        """
        Args:
            known: (L,) for each link which of K different pairs of words it is.
            given: (K,) the predicting words of these.
            place: (L,) which of ``predicted`` each link predicts.
            predicted: The predicted words of all texts.
            sizes: How many different words there are on the predicting side and on the predicted one.
        """
        self._alone = np.maximum(1, np.bincount(predicted, minlength=sizes[1])) / max(1, len(predicted))
        """How probable each predicted word is, whatever it translates."""
        count: np.ndarray = np.ones(len(given))
        self._total: np.ndarray = np.full(sizes[0], float(sizes[1]))
        for _ in range(ITERATIONS):
            probable = count / self._total[given]
            count = np.bincount(known, self._shares(probable[known], place, predicted), minlength=len(given))
            self._total = np.bincount(given, count, minlength=sizes[0])
        self._count, self._probable = np.append(count, 0), np.append(probable, 0)
        """(K + 1,) how often the one word translates the other, by the last iteration; how probable it was before that.
        The last value is that of all pairs of words that are not known."""

    def log_ratios(
        self, known: np.ndarray, given: np.ndarray, place: np.ndarray, predicted: np.ndarray, own: bool
    ) -> np.ndarray:
        """Returns, for each predicted word, the logarithm of how much more probable the other side makes it.

        Args:
            known: (L,) for each link which of the K known pairs of words it is; K for none.
            given: (L,) the predicting word of each.
            place: (L,) which of ``predicted`` each link predicts.
            predicted: The predicted words.
            own: Whether the model has learnt from these texts, so that their own part is to be taken out.
        """
        count = self._count[known]
        if own:
            count = np.maximum(0, count - self._shares(self._probable[known], place, predicted))
        links = np.maximum(1, np.bincount(place, minlength=len(predicted)))
        probability = _sums(count / (self._total[given] + ADDED), place, predicted) / links
        return np.log((1 - UNKNOWN) * probability / self._alone[predicted] + UNKNOWN)

    def _shares(self, probable: np.ndarray, place: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Returns the share of each link in the word that it predicts. The rest of the word translates none."""
        return probable / (_sums(probable, place, predicted) + self._alone[predicted])[place]


class TranslationModel:
    """Learnt from some pairs; scores these and others.

    The score of a pair is the sum, over the words of both sides, of the logarithms of how much more probable the other
    side makes each. That of unrelated sentences is negative, that of most translations positive.
    """

    def __init__(self, texts: Iterable[Texts]) -> None:
        """
        Args:
            texts: The texts of the pairs, some thousand at a time.
        """
        words: tuple[list[Words], list[Words]] = ([], [])
        for batch in texts:
            for all_of_side, of_batch in zip(words, _beginnings(batch), strict=True):
                all_of_side += of_batch
        self._vocabularies = Vocabulary(words[0]), Vocabulary(words[1])
        self._source, self._target = source, target = self._number(words)
        del words
        links = Links.between(source, target)
        self._keys, known = np.unique(self._keys_of(links, source, target), return_inverse=True)
        given = np.divmod(self._keys, max(1, len(self._vocabularies[1])))
        sizes = [len(vocabulary) for vocabulary in self._vocabularies]
        self._forwards = Direction(known, given[0], links.target, target.words, sizes)
        self._backwards = Direction(known, given[1], links.source, source.words, sizes[::-1])

    def scores(self, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
        """Returns the scores of other pairs, (N,) float32, and how many known words each has."""
        source, target = self._number(_beginnings(texts))
        return self._scores(source, target, own=False), source.lengths + target.lengths

    def scores_of_learnt(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns, in the same form, the scores of the pairs that the model was learnt from, by what all others say."""
        return self._scores(self._source, self._target, own=True), self._source.lengths + self._target.lengths

    def scores_of_rematched(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns, in the same form, the scores of the sources that the model was learnt from, matched at random with
        targets of about the length of their own."""
        drawn = np.random.default_rng(seed).permutation(len(self._source.lengths))
        order = drawn[np.lexsort((self._target.lengths[drawn], self._source.lengths[drawn]))]
        source, target = self._source.take(order), self._target.take(np.roll(order, 1))
        return self._scores(source, target, own=False), source.lengths + target.lengths

    def _scores(self, source: Numbered, target: Numbered, own: bool) -> np.ndarray:
        scores = np.zeros(len(source.lengths), dtype=np.float32)
        for start in range(0, len(scores), PAIRS_AT_ONCE):
            rows = np.arange(start, min(len(scores), start + PAIRS_AT_ONCE))
            ours, theirs = source.take(rows), target.take(rows)
            links = Links.between(ours, theirs)
            keys = self._keys_of(links, ours, theirs)
            known = np.searchsorted(self._keys, keys)
            known[np.append(self._keys, -1)[known] != keys] = len(self._keys)
            for direction, given, place, predicted in (
                (self._forwards, ours.words[links.source], links.target, theirs),
                (self._backwards, theirs.words[links.target], links.source, ours),
            ):
                ratios = direction.log_ratios(known, given, place, predicted.words, own)
                scores[rows] += np.bincount(np.repeat(rows - start, predicted.lengths), ratios, minlength=len(rows))
        return scores

    def _number(self, words: tuple[list[Words], list[Words]]) -> tuple[Numbered, Numbered]:
        return self._vocabularies[0].number(words[0]), self._vocabularies[1].number(words[1])

    def _keys_of(self, links: Links, source: Numbered, target: Numbered) -> np.ndarray:
        """Returns one number for both words of each link."""
        return source.words[links.source] * len(self._vocabularies[1]) + target.words[links.target]


def number_of_links(texts: Texts) -> int:
    """Returns how many pairs of words stand in one pair of the texts."""
    return sum(len(source) * len(target) for source, target in zip(*_beginnings(texts), strict=True))


def _sums(values: np.ndarray, place: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Returns the sum of the values at each place, one for each of ``words``."""
    return np.bincount(place, values, minlength=len(words))


def _count_up(lengths: np.ndarray) -> np.ndarray:
    """Returns 0, 1, 2 … for each of the lengths: [0, 1, 0, 1, 2] for 2 and 3."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _beginnings(texts: Texts) -> tuple[list[Words], list[Words]]:
    """Returns the words of each source and target. Of long ones, the same share of both."""
    sources, targets = ([_words(text) for text in side] for side in texts)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if (longest := max(len(source), len(target))) > MOST_WORDS:
            share = MOST_WORDS / longest
            sources[row], targets[row] = (words[: math.ceil(share * len(words))] for words in (source, target))
    return sources, targets


def _words(text: str) -> Words:
    """Returns the beginnings of the different words of a text in small letters, in their order."""
    found = ((match[1] or match[0])[:STEM] for match in WORD.finditer(text.lower()))
    return list(dict.fromkeys(map(sys.intern, found)))
