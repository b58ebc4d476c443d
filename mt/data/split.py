"""Hold pairs out of a corpus, so that the held-out parts share no sentence, on either side, with the rest or with each
other.
"""

from collections.abc import Sequence

import numpy as np

from mt.core.errors import InputError


def hold_out(hashes: np.ndarray, keys: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """Assign every pair to a held-out part or to the rest.

    - Pairs that share a sentence form a group, also through other pairs (a–b, c–b, c–d). A group is never divided.
    - The hashes of the pairs alone decide which groups are held out, neither the order of the pairs nor a seed.
    - A group with more than 4 pairs and more than a twentieth of the smallest part stays in the rest: a few such groups
      could make up most of that part.

    The function takes some 60 bytes of memory a pair.

    Args:
        hashes: The ``pair_hash`` of each pair, (N,) int64.
        keys: The ``sentence_key`` of each source (N,) and of each target (N,), int64.
        sizes: The minimum number of pairs of each held-out part.

    Returns:
        The part of each pair, (N,) int8: 0 for the rest, 1 for the first held-out part, 2 for the second, …

    Raises:
        InputError: There are too few small groups, or no pair would be left in the rest.
    """
    groups = _groups(*map(_numbered, keys))
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
        part[order[start:end]] = number
        start = end
        if start == len(filled):
            break
    if start == len(filled) or part[groups].all():
        raise InputError(
            f"{' + '.join(map(str, sizes))} pairs cannot be held out of {len(groups)}: too many share a sentence. Name "
            "validation and test data of their own (data.valid, data.test)"
        )
    return part[groups]


def _numbered(values: np.ndarray) -> np.ndarray:
    """Replace each value by its rank among the distinct values, (N,) int32 from 0.

    ``np.unique`` does the same with twice the memory.
    """
    order = np.argsort(values)
    values = values[order]
    is_new = np.empty(len(values), dtype=bool)
    is_new[:1] = False
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    number = np.empty(len(values), dtype=np.int32)
    number[order] = np.cumsum(is_new, dtype=np.int32)
    return number


def _groups(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the number of each pair's group, (N,) int32 from 0, given the numbers of its source and its target (N,).

    Sentences are nodes of a graph, a pair connects its source and its target, and a group is a connected component.
    Every node points to a node of its component with the same or a lower number. Let the two sides of a pair point to
    p and q: each round makes p and q point to the lower of the two, then halves every path (pointer jumping). When a
    round changes nothing, all nodes of a component point to the same one.
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
