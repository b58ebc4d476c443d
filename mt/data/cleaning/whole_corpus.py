"""Judge pairs by statistics of the whole corpus: lengths and repetitions."""

import numpy as np

from mt.data.sentence_key import combined_hash

MAX_DEVIATIONS = 5.0
"""The most standard deviations by which the ratio of lengths may differ from the median."""
MIN_DEVIATION = 0.1
"""The smallest standard deviation of the ratio's logarithm that is assumed."""
LENGTH_CLASSES, MIN_CLASS_PAIRS = 40, 250
"""The most classes of lengths, each with its own median, and the minimum number of pairs in a class."""
MEDIAN_DEVIATION_TO_STANDARD = 1.4826
"""The standard deviation of normally distributed values divided by their median absolute deviation."""
MIN_REPEATS, MIN_TRANSLATIONS, USUAL_SHARE = 50, 10, 0.1
"""A text is boilerplate if it occurs at least MIN_REPEATS times with at least MIN_TRANSLATIONS different translations.
A translation is usual if it has at least USUAL_SHARE of the occurrences."""


def length_deviations(lengths: np.ndarray, train_pairs: int) -> np.ndarray:
    """Return how unusual the length ratio of each pair is for its length, in standard deviations, (N,) float32.

    The pairs are divided into classes by length. The median and the median absolute deviation of the logarithms of the
    ratios in a class describe good pairs, as long as most pairs are good.

    Args:
        lengths: The number of characters of each source and target, (N, 2).
        train_pairs: The number of training pairs, the first rows. The statistics are computed from these alone.
    """
    lengths = np.maximum(1, lengths)
    ratios = np.log(lengths[:, 1] / lengths[:, 0]).astype(np.float32)
    total = lengths.sum(axis=1)
    edges = class_edges(total[:train_pairs], min(LENGTH_CLASSES, train_pairs // MIN_CLASS_PAIRS))
    classes = np.searchsorted(edges, total)
    for number in np.unique(classes):
        members = classes == number
        usual = ratios[:train_pairs][members[:train_pairs]]
        if len(usual):
            median = np.median(usual)
            deviation = MEDIAN_DEVIATION_TO_STANDARD * np.median(np.abs(usual - median))
            ratios[members] = (ratios[members] - median) / max(deviation, MIN_DEVIATION)
    return ratios


def class_edges(values: np.ndarray, classes: int) -> np.ndarray:
    """Divide values into classes of equal size, and return the highest value of each class but the last, ascending.

    Equal values are in the same class, so there may be fewer than ``classes``.
    """
    shares = np.linspace(0, 1, max(1, classes) + 1)[1:-1]
    return np.unique(np.quantile(values, shares, method="lower"))


def boilerplate(keys: np.ndarray) -> np.ndarray:
    """Return whether a text of each pair is boilerplate and the translation of it is not usual, (N,) bool.

    Args:
        keys: Hashes of each source and target, (N, 2), which are equal for equal texts.
    """
    is_boilerplate = np.zeros(len(keys), dtype=bool)
    for side in (0, 1):
        _, text, repeats = np.unique(keys[:, side], return_inverse=True, return_counts=True)
        rows = np.flatnonzero(repeats[text] >= MIN_REPEATS)
        text = text[rows]
        _, first, pair, pair_repeats = np.unique(
            combined_hash(*keys[rows].T), return_index=True, return_inverse=True, return_counts=True
        )
        translations = np.bincount(text[first], minlength=len(repeats))
        is_unusual = pair_repeats[pair] < USUAL_SHARE * repeats[text]
        is_boilerplate[rows] |= is_unusual & (translations[text] >= MIN_TRANSLATIONS)
    return is_boilerplate


def duplicates(hashes: np.ndarray) -> np.ndarray:
    """Return whether the same hash occurs at a lower index, (N,) bool."""
    is_duplicate = np.ones(len(hashes), dtype=bool)
    is_duplicate[np.unique(hashes, return_index=True)[1]] = False
    return is_duplicate
