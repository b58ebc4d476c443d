"""Statistics of all training pairs that augmentation needs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pyarrow.compute import match_substring_regex

from mt.core.columns import tables
from mt.core.randomness import generator
from mt.text import number_words
from mt.text.lexicon import Lexicon

if TYPE_CHECKING:
    import datasets


class CorpusStatistics(NamedTuple):
    """Statistics of N training pairs."""

    lexicon: Lexicon
    """Words that translate each other."""
    has_number_word: np.ndarray
    """(N,) bool, for the sources."""


def corpus_statistics(pairs: "datasets.Dataset", language: str, needs_lexicon: bool) -> CorpusStatistics:
    """Return the statistics of the training pairs, given their source language.

    Without ``needs_lexicon`` the lexicon is empty, which saves counting.
    """
    return CorpusStatistics(Lexicon(_mixed_texts(pairs) if needs_lexicon else ()), _has_number_word(pairs, language))


def _mixed_texts(pairs: "datasets.Dataset") -> Iterator[tuple[str, str]]:
    """Yield all pairs, a thousand from one place and a thousand from another, because corpora are often sorted."""
    texts = pairs.with_format("arrow").select_columns(["source", "target"])
    starts = np.arange(0, len(pairs), 1000)
    for start in generator(0, "lexicon").permutation(starts).tolist():
        table = texts[start : start + 1000]
        yield from zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)


def _has_number_word(pairs: "datasets.Dataset", language: str) -> np.ndarray:
    if (pattern := number_words.pattern(language)) is None:
        return np.zeros(len(pairs), dtype=bool)
    return np.concatenate(
        [match_substring_regex(table["source"], pattern).to_numpy() for table in tables(pairs, ["source"])]
    )
