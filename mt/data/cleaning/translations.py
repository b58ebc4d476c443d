"""Decides which pairs are no translations: those whose score is rather one of sentences that were matched at random."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from mt.data.cleaning.translation_model import Texts, TranslationModel, number_of_links
from mt.data.cleaning.whole_corpus import class_edges

MOST_LINKS = 12_000_000
"""The most pairs of words that the model is learnt from, which bounds its memory (some 600 MB)."""
PROBED = 1000
"""How many pairs are looked at to see how many pairs of words each has."""
CLASSES, LEAST_IN_CLASS = 8, 250
"""Into how many classes pairs are divided by their number of words, each with a threshold of its own, and the fewest
pairs of a class, which show how its scores are distributed."""
LOW = 0.5
"""This share of the pairs that are matched at random scores lower than nearly all translations."""


@dataclass(frozen=True)
class Scored:
    """The scores of all pairs, and what follows from them."""

    scores: np.ndarray
    """(N,) float32."""
    is_translation: np.ndarray
    """(N,) bool."""
    random_scores: np.ndarray
    """Those of pairs that were matched at random."""


def score_translations(
    read: Callable[[np.ndarray], Iterator[Texts]], learnt: int, number: int, seed: int = 1
) -> Scored | None:
    """Scores pairs by a model that is learnt from them, and decides which are no translations.

    Sources and targets of equal length are matched at random, and scored too. That shows how pairs that are no
    translations score in this corpus.

    Args:
        read: Yields the texts of the pairs with the given numbers, some thousand at a time.
        learnt: The model is learnt from the first so many pairs, or from some of them.
        number: The number of all pairs, numbered from 0.

    Returns:
        None if there are too few pairs to learn from.
    """
    if learnt < 4 * LEAST_IN_CLASS:
        return None
    links = [number_of_links(texts) for texts in read(_evenly_spaced(learnt, PROBED))]
    chosen = _evenly_spaced(learnt, int(MOST_LINKS * PROBED / max(1, sum(links))))
    model = TranslationModel(read(chosen))
    scores, lengths = np.zeros(number, dtype=np.float32), np.zeros(number, dtype=np.int16)
    scores[chosen], lengths[chosen] = model.scores_of_learnt()
    others = np.setdiff1d(np.arange(number), chosen)
    start = 0
    with tqdm(total=len(others), desc="translations", unit=" pairs", disable=None, leave=False) as bar:
        for texts in read(others):
            rows = others[start : start + len(texts[0])]
            scores[rows], lengths[rows] = model.scores(texts)
            start += len(rows)
            bar.update(len(rows))
    random_scores, random_lengths = model.scores_of_rematched(seed)
    is_translation = decide(scores, lengths, random_scores, random_lengths)
    return Scored(scores, is_translation, random_scores)


def decide(
    scores: np.ndarray, lengths: np.ndarray, random_scores: np.ndarray, random_lengths: np.ndarray
) -> np.ndarray:
    """Decides which pairs are translations, (N,) bool.

    Pairs are divided into classes by length. In each, the share of pairs that score as low as half of those that were
    matched at random tells how many are no translations. The threshold is where as few pairs as possible are judged
    wrongly: translations below it, and others above it.

    Args:
        scores: (N,) of the pairs.
        lengths: (N,) how many words they have.
        random_scores: (M,) of pairs that were matched at random.
        random_lengths: (M,) how many words these have.
    """
    edges = class_edges(random_lengths, min(CLASSES, len(scores) // LEAST_IN_CLASS))
    of_pair, of_random = np.searchsorted(edges, lengths), np.searchsorted(edges, random_lengths)
    is_translation = np.ones(len(scores), dtype=bool)
    for each in range(len(edges) + 1):
        real, random = np.sort(scores[of_pair == each]), np.sort(random_scores[of_random == each])
        if min(len(real), len(random)) < LEAST_IN_CLASS:
            continue
        unrelated = np.mean(real <= np.quantile(random, LOW)) / LOW
        # For each possible threshold, both as shares of the real pairs, less the share of all unrelated ones.
        below = np.searchsorted(real, random, side="right") / len(real)
        unrelated_below = unrelated * np.arange(1, len(random) + 1) / len(random)
        wrong = (below - unrelated_below) - unrelated_below
        best = int(np.argmin(wrong))
        if wrong[best] < 0:
            is_translation[(of_pair == each) & (scores <= random[best])] = False
    return is_translation


def _evenly_spaced(among: int, number: int) -> np.ndarray:
    """Returns at most so many of the numbers below ``among``, because corpora are often sorted."""
    return np.unique(np.linspace(0, among - 1, min(number, among)).astype(int))
