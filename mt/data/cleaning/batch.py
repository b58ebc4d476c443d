"""A batch of pairs with the properties that rules look at, and reading pairs in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import datasets
import numpy as np
import regex

from mt.core.columns import tables
from mt.data.cleaning.characters import Letters
from mt.data.cleaning.sides import Side
from mt.data.sentence_key import sentence_key

DIGIT = regex.compile(r"\d")

Texts = tuple[Sequence[str], Sequence[str]]
"""Sources and targets."""


@dataclass(frozen=True)
class Batch:
    """Some thousand pairs. Everything that is given for both sides has the source first."""

    texts: Texts
    keys: np.ndarray
    """(N, 2) int64: hashes of the two sides' normal forms."""
    sides: tuple[Side, Side]
    max_length: int
    """``data.max_length``, in tokens."""

    @cached_property
    def letters(self) -> tuple[Letters, Letters]:
        return self.sides[0].scripts.count(self.texts[0]), self.sides[1].scripts.count(self.texts[1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """(N, 2) int32: the number of characters of each side."""
        return np.stack([letters.characters for letters in self.letters], axis=1)

    @cached_property
    def other_languages(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each side the likeliest other language of each text, and its margin; see ``Side.judge``."""
        return list(map(Side.judge, self.sides, self.texts))

    @property
    def margins(self) -> np.ndarray:
        """(N,) float32: the log-likelihood ratio of another language and the right one, of the side with the larger."""
        return np.maximum(*(margins for _, margins in self.other_languages))

    @property
    def exchanged(self) -> np.ndarray:
        """(N,) bool: whether each side is in the other side's language."""
        (sources, source_margins), (targets, target_margins) = self.other_languages
        source, target = self.sides
        return (source_margins > 0) & target.owns(sources) & (target_margins > 0) & source.owns(targets)

    def keys_without_digits(self) -> np.ndarray:
        """Return ``keys``, but those of texts with digits as if each digit were 0, (N, 2) int64."""
        keys = self.keys.copy()
        for side, texts in enumerate(self.texts):
            for row, text in enumerate(texts):
                if DIGIT.search(text):
                    keys[row, side] = sentence_key(DIGIT.sub("0", text))
        return keys


def read_texts(pairs: datasets.Dataset, rows: np.ndarray) -> Iterator[Texts]:
    """Yield the sources and targets of the given rows, some thousand at a time."""
    for table in tables(pairs, ("source", "target"), rows):
        yield table["source"].to_pylist(), table["target"].to_pylist()
