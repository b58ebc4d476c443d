"""A batch of pairs with the properties that the rules of cleaning judge, and functions that read and sample pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import datasets
import numpy as np

from mt.core.columns import tables
from mt.data.cleaning.sides import ANY_DIGIT, CorpusSide, Letters
from mt.data.pairs import SIDES, sentence_key, side_texts

TextPairs = tuple[Sequence[str], Sequence[str]]
"""N sources and N targets."""


@dataclass(frozen=True)
class PairBatch:
    """Some thousand pairs to judge. Everything that is given for both sides has the source first."""

    texts: TextPairs
    keys: np.ndarray
    """(N, 2) int64: the ``sentence_key`` of each source and each target."""
    sides: tuple[CorpusSide, CorpusSide]
    """The statistics of the sources and of the targets of the corpus."""
    max_length: int
    """The setting ``data.max_length``, in tokens."""

    @cached_property
    def letters(self) -> tuple[Letters, Letters]:
        """The counts of letters in the sources, and in the targets."""
        return self.sides[0].scripts.count(self.texts[0]), self.sides[1].scripts.count(self.texts[1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """(N, 2) int32: the number of characters of each text, white space not included."""
        return np.stack([letters.characters for letters in self.letters], axis=1)

    @cached_property
    def other_languages(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The result of ``CorpusSide.judge`` for the sources and for the targets: the index of the likeliest other
        language of each text (N,), and its margin (N,)."""
        return list(map(CorpusSide.judge, self.sides, self.texts))

    @property
    def margins(self) -> np.ndarray:
        """(N,) float32: the larger margin of the two sides. A margin is the log-likelihood ratio of the likeliest other
        language and the right language."""
        return np.maximum(*(margins for _, margins in self.other_languages))

    @property
    def exchanged(self) -> np.ndarray:
        """(N,) bool: whether the source is in the target language and the target in the source language."""
        (sources, source_margins), (targets, target_margins) = self.other_languages
        source, target = self.sides
        return (source_margins > 0) & target.owns(sources) & (target_margins > 0) & source.owns(targets)

    def keys_without_digits(self) -> np.ndarray:
        """Return the ``sentence_key`` of each text after every digit was replaced by 0, (N, 2) int64."""
        keys = self.keys.copy()
        for side, texts in enumerate(self.texts):
            for row, text in enumerate(texts):
                if ANY_DIGIT.search(text):
                    keys[row, side] = sentence_key(ANY_DIGIT.sub("0", text))
        return keys


def read_texts(pairs: datasets.Dataset, rows: np.ndarray) -> Iterator[TextPairs]:
    """Yield the sources and the targets of the given rows, in their order, some thousand rows at a time."""
    return map(side_texts, tables(pairs, SIDES, rows))
