"""Decide which pairs are no translations: those with the scores of sentences that were matched at random."""

import datasets
import numpy as np
from tqdm import tqdm

from mt.core.columns import evenly_spaced_rows
from mt.data.cleaning.batch import read_texts
from mt.data.cleaning.ibm_model import IBMModel1, number_of_links
from mt.data.cleaning.whole_corpus import class_edges

MAX_LINKS = 12_000_000
"""The most links (word pairs) that the model is learnt from, which limits its memory to some 600 MB."""
COUNTED_PAIRS = 1000
"""The number of pairs by whose links the number of links in all pairs is estimated."""
MAX_CLASSES, MIN_CLASS_PAIRS = 8, 250
"""The most classes of lengths, each with its own threshold, and the minimum number of pairs in a class."""
MIN_TRAIN_PAIRS = 4 * MIN_CLASS_PAIRS
"""The minimum number of pairs to learn from."""
LOW_QUANTILE = 0.5
"""The share of the randomly matched pairs that score lower than nearly all translations."""


def score_translations(
    pairs: datasets.Dataset, rows: np.ndarray, train_pairs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Score pairs by a model that is learnt from them, and decide which are translations.

    The scores of the translations are compared with those of randomly matched sources and targets of equal lengths.

    Args:
        pairs: The data set with the pairs.
        rows: The rows of the N pairs to score.
        train_pairs: The number of pairs, the first of ``rows``, from all or some of which the model is learnt.

    Returns:
        The score of each pair, (N,) float32; whether it is a translation, (N,) bool; and the scores of randomly matched
        sources and targets, (M,) float32. None if ``train_pairs`` is less than MIN_TRAIN_PAIRS.
    """
    if train_pairs < MIN_TRAIN_PAIRS:
        return None
    counted = rows[evenly_spaced_rows(train_pairs, COUNTED_PAIRS, round_down=True)]
    links = sum(map(number_of_links, read_texts(pairs, counted)))
    sample = evenly_spaced_rows(train_pairs, MAX_LINKS * COUNTED_PAIRS // max(1, links), round_down=True)
    model = IBMModel1(read_texts(pairs, rows[sample]))
    scores, lengths = np.zeros(len(rows), dtype=np.float32), np.zeros(len(rows), dtype=np.int16)
    scores[sample], lengths[sample] = model.scores_of_learnt()
    others = np.setdiff1d(np.arange(len(rows)), sample)
    start = 0
    with tqdm(total=len(others), desc="translations", unit=" pairs", disable=None, leave=False) as bar:
        for texts in read_texts(pairs, rows[others]):
            part = others[start : start + len(texts[0])]
            scores[part], lengths[part] = model.scores(texts)
            start += len(part)
            bar.update(len(part))
    random_scores, random_lengths = model.scores_of_rematched()
    return scores, find_translations(scores, lengths, random_scores, random_lengths), random_scores


def find_translations(
    scores: np.ndarray, lengths: np.ndarray, random_scores: np.ndarray, random_lengths: np.ndarray
) -> np.ndarray:
    """Return whether each of N pairs is a translation, (N,) bool.

    Pairs are divided into classes by their lengths. In each class, the share of pairs that score lower than the median
    of the randomly matched ones shows how many pairs are no translations. The threshold of the class minimises the
    number of wrong decisions: translations below it, and other pairs above it.

    Args:
        scores: The score of each pair, (N,).
        lengths: The number of words of each pair, (N,).
        random_scores: The scores of randomly matched sources and targets, (M,).
        random_lengths: Their numbers of words, (M,).
    """
    edges = class_edges(random_lengths, min(MAX_CLASSES, len(scores) // MIN_CLASS_PAIRS))
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
