"""Judge pairs by the whole corpus, given a number or two for each pair in NumPy arrays."""

import numpy as np

MAX_DEVIATIONS = 5.0
"""The number of standard deviations that the ratio of lengths may differ from the median."""
MIN_DEVIATION = 0.1
LENGTH_CLASSES, MIN_CLASS_PAIRS = 40, 250
"""The number of classes by length, each with its own median, and the pairs that each has at least."""
MEDIAN_DEVIATION_TO_STANDARD = 1.4826
"""The standard deviation of normally distributed values in units of their median deviation."""
MIN_REPEATS, MIN_TRANSLATIONS, USUAL_SHARE = 50, 10, 0.1
"""A text is boilerplate if it is repeated so often, with so many translations. Translations with this share are usual
ones."""


def length_deviations(lengths: np.ndarray, learnt: int) -> np.ndarray:
    """Return the deviation of each pair's length ratio from pairs of its length, in standard deviations, (N,) float32.

    Median and median deviation of the ratio's logarithm in each class of lengths describe good pairs, as long as these
    are the majority.

    Args:
        lengths: (N, 2) the number of characters of each side.
        learnt: The first ``learnt`` pairs are the good ones.
    """
    lengths = np.maximum(1, lengths)
    ratios = np.log(lengths[:, 1] / lengths[:, 0]).astype(np.float32)
    total = lengths.sum(axis=1)
    classes = np.searchsorted(class_edges(total[:learnt], min(LENGTH_CLASSES, learnt // MIN_CLASS_PAIRS)), total)
    for number in np.unique(classes):
        members = classes == number
        usual = ratios[:learnt][members[:learnt]]
        if len(usual):
            median = np.median(usual)
            deviation = MEDIAN_DEVIATION_TO_STANDARD * np.median(np.abs(usual - median))
            ratios[members] = (ratios[members] - median) / max(deviation, MIN_DEVIATION)
    return ratios


def class_edges(values: np.ndarray, classes: int) -> np.ndarray:
    """Return the highest value of each class but the last, after dividing values into classes of equal size.

    Equal values are in one class, so there may be fewer classes.
    """
    shares = np.linspace(0, 1, max(1, classes) + 1)[1:-1]
    return np.unique(np.quantile(values, shares, method="lower"))


def boilerplate(keys: np.ndarray) -> np.ndarray:
    """Find texts that are repeated often with many translations, except their usual translations, (N,) bool.

    Args:
        keys: (N, 2) hashes of the two sides' normal forms.
    """
    is_boilerplate = np.zeros(len(keys), dtype=bool)
    for side in (0, 1):
        _, text, repeats = np.unique(keys[:, side], return_inverse=True, return_counts=True)
        rows = np.flatnonzero(repeats[text] >= MIN_REPEATS)
        text = text[rows]
        _, first, pair, pair_repeats = np.unique(
            pair_hashes(keys[rows]), return_index=True, return_inverse=True, return_counts=True
        )
        translations = np.bincount(text[first], minlength=len(repeats))
        is_unusual = pair_repeats[pair] < USUAL_SHARE * repeats[text]
        is_boilerplate[rows] |= is_unusual & (translations[text] >= MIN_TRANSLATIONS)
    return is_boilerplate


def duplicates(hashes: np.ndarray) -> np.ndarray:
    """Find the values that occurred before, (N,) bool."""
    is_duplicate = np.ones(len(hashes), dtype=bool)
    is_duplicate[np.unique(hashes, return_index=True)[1]] = False
    return is_duplicate


def pair_hashes(keys: np.ndarray) -> np.ndarray:
    """Return one hash of both keys of each pair, (N,) uint64."""
    unsigned = keys.astype(np.int64).view(np.uint64)
    return unsigned[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ unsigned[:, 1]
