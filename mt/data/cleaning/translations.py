"""Decide which pairs are no translations: those that score rather like sentences matched at random."""

from collections.abc import Callable, Iterator

import numpy as np
from tqdm import tqdm

from mt.core.columns import evenly_spaced_rows
from mt.data.cleaning.batch import Texts
from mt.data.cleaning.translation_model import TranslationModel, number_of_links
from mt.data.cleaning.whole_corpus import class_edges

MAX_LINKS = 12_000_000
"""The number of word pairs that the model is learnt from, which bounds its memory (some 600 MB)."""
PROBED_PAIRS = 1000
"""The number of pairs that show how many word pairs each has."""
MAX_CLASSES, MIN_CLASS_PAIRS = 8, 250
"""The number of classes by length, each with its own threshold, and the pairs that show the scores of a class."""
LOW_QUANTILE = 0.5
"""This share of the pairs matched at random scores lower than nearly all translations."""


def score_translations(
    read: Callable[[np.ndarray], Iterator[Texts]], learnt: int, total: int, seed: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Score pairs by a model that is learnt from them, and decide which are no translations.

    Sources and targets of equal length are matched at random and scored, too, which shows how pairs that are no
    translations score in this corpus.

    Args:
        read: Yields the texts of the given rows, some thousand at a time.
        learnt: The model is learnt from the first ``learnt`` pairs, or a sample of them.
        total: The number of all pairs.
        seed: Seeds the random matches.

    Returns:
        The scores, (N,) float32, whether each pair is a translation, (N,) bool, and the scores of pairs that were
        matched at random; None if there are too few pairs to learn from.
    """
    if learnt < 4 * MIN_CLASS_PAIRS:
        return None
    links = sum(number_of_links(texts) for texts in read(evenly_spaced_rows(learnt, PROBED_PAIRS, round_down=True)))
    sample = evenly_spaced_rows(learnt, MAX_LINKS * PROBED_PAIRS // max(1, links), round_down=True)
    model = TranslationModel(read(sample))
    scores, lengths = np.zeros(total, dtype=np.float32), np.zeros(total, dtype=np.int16)
    scores[sample], lengths[sample] = model.scores_of_learnt()
    others = np.setdiff1d(np.arange(total), sample)
    start = 0
    with tqdm(total=len(others), desc="translations", unit=" pairs", disable=None, leave=False) as bar:
        for texts in read(others):
            rows = others[start : start + len(texts[0])]
            scores[rows], lengths[rows] = model.scores(texts)
            start += len(rows)
            bar.update(len(rows))
    random_scores, random_lengths = model.scores_of_rematched(seed)
    return scores, find_translations(scores, lengths, random_scores, random_lengths), random_scores


def find_translations(
    scores: np.ndarray, lengths: np.ndarray, random_scores: np.ndarray, random_lengths: np.ndarray
) -> np.ndarray:
    """Decide which pairs are translations, (N,) bool.

    Pairs are divided into classes by length. In each, the share of pairs that score as low as half of those matched at
    random shows how many are no translations. The threshold minimises the number of wrong decisions: translations below
    it, and others above it.

    Args:
        scores: (N,) of the pairs.
        lengths: (N,) number of words.
        random_scores: (M,) of pairs that were matched at random.
        random_lengths: (M,) number of words.
    """
    edges = class_edges(random_lengths, min(MAX_CLASSES, len(scores) // MIN_CLASS_PAIRS))
    classes, random_classes = np.searchsorted(edges, lengths), np.searchsorted(edges, random_lengths)
    is_translation = np.ones(len(scores), dtype=bool)
    for number in np.unique(classes):
        of_class, random = np.sort(scores[classes == number]), np.sort(random_scores[random_classes == number])
        if min(len(of_class), len(random)) < MIN_CLASS_PAIRS:
            continue
        unrelated = np.mean(of_class <= np.quantile(random, LOW_QUANTILE)) / LOW_QUANTILE
        # For each possible threshold, both as shares of the pairs, less the share of all unrelated ones.
        below = np.searchsorted(of_class, random, side="right") / len(of_class)
        unrelated_below = unrelated * np.arange(1, len(random) + 1) / len(random)
        wrong = (below - unrelated_below) - unrelated_below
        best = int(np.argmin(wrong))
        if wrong[best] < 0:
            is_translation[(classes == number) & (scores <= random[best])] = False
    return is_translation
