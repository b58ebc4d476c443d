"""Holds pairs out of a corpus, so that the held-out parts share no sentence, on either side, with the rest or with each
other.

Pairs that share a sentence form a group, also indirectly (a–b, c–b, c–d), and a group is never divided. Which groups
are held out depends on hashes of their text alone, not on the order of the lines or on a seed. ``mt.data.sentence_key``
decides when two sentences are the same.
"""

from collections.abc import Sequence

import numpy as np

from mt.core.errors import InputError


def hold_out(hashes: np.ndarray, same: tuple[np.ndarray, np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """Assign every pair to the rest or to one of the held-out parts.

    Pairs that share a sentence, directly or through other pairs, form a group, and a group is never divided. Which
    groups are held out depends on hashes of their text alone. A group that has more than 4 pairs and more than a
    twentieth of the smallest part stays in the rest: a few such groups could make up most of that part.

    It takes some 60 bytes of memory a pair.

    Args:
        hashes: (N,) int64, the ``pair_hash`` of each pair.
        same: (N,) int64 for the sources and (N,) for the targets, equal where two sentences are the same
            (``sentence_keys``).
        sizes: The number of pairs that each part has at least.

    Returns:
        (N,) int8: 0 for the rest, 1 for the first part, 2 for the second, …

    Raises:
        InputError: There are too few small groups, or nothing is left for the rest.
    """
    groups = _groups(*map(_numbered, same))
    members = np.bincount(groups)
    # Groups are ranked by the sum of their pairs' hashes. Unlike the minimum, it gives large and small groups the same
    # chance to be held out, so that the lengths of the sentences stay representative.
    rank = np.zeros(len(members), dtype=np.uint64)
    np.add.at(rank, groups, hashes.view(np.uint64))

    order = np.argsort(rank, kind="stable")
    order = order[members[order] <= max(4, min(sizes) // 20)]
    filled = np.concatenate([[0], np.cumsum(members[order])])
    part = np.zeros(len(members), dtype=np.int8)
    start = 0
    for number, size in enumerate(sizes, 1):
        end = int(np.searchsorted(filled, filled[start] + size))
        if end == len(filled):
            raise _too_few(sizes, len(groups))
        part[order[start:end]] = number
        start = end
    if part[groups].all():
        raise _too_few(sizes, len(groups))
    return part[groups]


def _too_few(sizes: Sequence[int], pairs: int) -> InputError:
    return InputError(
        f"{' + '.join(map(str, sizes))} pairs cannot be held out of {pairs}: too many share a sentence. Name "
        "validation and test data of their own (data.valid, data.test)"
    )


def _numbered(values: np.ndarray) -> np.ndarray:
    """Return a number for each value, (N,) int32 from 0, the same for equal values. ``np.unique`` would take twice the
    memory."""
    order = np.argsort(values)
    values = values[order]
    is_new = np.empty(len(values), dtype=bool)
    is_new[:1] = False
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    number = np.empty(len(values), dtype=np.int32)
    number[order] = np.cumsum(is_new, dtype=np.int32)
    return number


def _groups(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the number of each pair's connected component, (N,) int32 from 0. A pair connects its source and target.

    Every sentence points to a sentence of its component with the same or a lower number. Let the two sides of a pair
    point to p and q: each round makes p and q point to the lower of the two, then halves every path (pointer jumping).
    When nothing changes any more, all sentences of a component point to the same one.
    """
    targets = targets + (sources.max() + 1)
    lowest = np.arange(targets.max() + 1, dtype=np.int32)
    while True:
        lower = np.minimum(lowest[sources], lowest[targets])
        nearer = lowest.copy()
        np.minimum.at(nearer, lowest[sources], lower)
        np.minimum.at(nearer, lowest[targets], lower)
        nearer = nearer[nearer]
        if (nearer == lowest).all():
            return _numbered(lowest[sources])
        lowest = nearer
