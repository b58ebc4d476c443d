"""The rules that judge a pair by all pairs of the corpus. They get a number or two for each, in NumPy arrays."""

import numpy as np

DEVIATIONS = 5.0
"""How many standard deviations the ratio of lengths may be from what is usual, as its median deviation shows them."""
LEAST_DEVIATION = 0.1
LENGTH_CLASSES, LEAST_IN_CLASS = 40, 250
"""Into how many classes of length the pairs are divided to learn what is usual, each with so many pairs at least."""
NORMAL = 1.4826
"""The standard deviation of normally distributed values in units of their median deviation."""
LEAST_REPEATS, LEAST_VARIETY, USUAL_SHARE = 50, 10, 0.1
"""A text is boilerplate if it is repeated so often, with so many translations; those with this share of it are usual
ones."""


def length_deviations(lengths: np.ndarray, learnt: int) -> np.ndarray:
    """Returns by how many standard deviations the logarithm of each pair's ratio of lengths differs from what is usual
    for pairs of its length, (N,) float32.

    Median and median deviation of each class of lengths show what is usual. They are those of the good pairs, as long
    as these are most.

    Args:
        lengths: (N, 2) the number of characters of each side.
        learnt: The first so many pairs show what is usual.
    """
    lengths = np.maximum(1, lengths)
    ratios = np.log(lengths[:, 1] / lengths[:, 0]).astype(np.float32)
    total = lengths.sum(axis=1)
    of_pair = np.searchsorted(class_edges(total[:learnt], min(LENGTH_CLASSES, learnt // LEAST_IN_CLASS)), total)
    for each in range(of_pair.max(initial=0) + 1):
        members = of_pair == each
        usual = ratios[:learnt][members[:learnt]]
        if len(usual):
            middle = np.median(usual)
            deviation = NORMAL * np.median(np.abs(usual - middle))
            ratios[members] = (ratios[members] - middle) / max(deviation, LEAST_DEVIATION)
    return ratios


def class_edges(values: np.ndarray, classes: int) -> np.ndarray:
    """Returns the highest value of each class but the last, if values are divided into classes of equal size. Classes
    between which no edge can be drawn become one."""
    shares = np.linspace(0, 1, max(1, classes) + 1)[1:-1]
    return np.unique(np.quantile(values, shares, method="lower"))


def boilerplate(keys: np.ndarray) -> np.ndarray:
    """Finds the pairs of texts that are repeated many times with many translations, except the usual ones, (N,) bool.

    Args:
        keys: (N, 2) hashes of the two sides' normal forms.
    """
    found = np.zeros(len(keys), dtype=bool)
    for side in (0, 1):
        _, text, times = np.unique(keys[:, side], return_inverse=True, return_counts=True)
        rows = np.flatnonzero(times[text] >= LEAST_REPEATS)
        text = text[rows]
        _, first, pair, of_pair = np.unique(
            pair_hashes(keys[rows]), return_index=True, return_inverse=True, return_counts=True
        )
        translations = np.bincount(text[first], minlength=len(times))
        is_unusual = of_pair[pair] < USUAL_SHARE * times[text]
        found[rows] |= is_unusual & (translations[text] >= LEAST_VARIETY)
    return found


def duplicates(hashes: np.ndarray) -> np.ndarray:
    """Finds what has the same hash as an earlier one, (N,) bool."""
    found = np.ones(len(hashes), dtype=bool)
    found[np.unique(hashes, return_index=True)[1]] = False
    return found


def pair_hashes(keys: np.ndarray) -> np.ndarray:
    """Returns one hash of both keys of each pair, (N,) uint64."""
    unsigned = keys.astype(np.int64).view(np.uint64)
    return unsigned[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ unsigned[:, 1]
