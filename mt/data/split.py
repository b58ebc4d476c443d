"""Held-out pairs that share no sentence, on either side, with the rest or with each other.

Pairs that share a side are one group, also over several steps (a–b, c–b, c–d), and a group is never divided.
Which groups are held out follows from hashes of their text: not from the order of the lines, nor from any
seed.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow

from mt.errors import InputError

Texts: TypeAlias = pyarrow.Array | pyarrow.ChunkedArray


def hold_out(sources: Texts, targets: Texts, sizes: Sequence[int]) -> np.ndarray:
    """Assigns every pair to the rest or to one of the held-out parts.

    Groups of more than 4 pairs and more than a twentieth of the smallest part stay in the rest: a few of them could
    make up most of it.

    Args:
        sources, targets: (N,) strings.
        sizes: how many pairs each part shall have at least.

    Returns:
        (N,) int64: 0 for the rest, 1 for the first part, 2 for the second, …

    Raises:
        InputError: there are too few small groups, or nothing is left.
    """
    groups = _groups(_numbered(sources), _numbered(targets))
    members = np.bincount(groups)
    # The sum, unlike the minimum, gives large groups and small ones the same chance: lengths stay
    # representative.
    rank = np.zeros(len(members), dtype=np.uint64)
    np.add.at(rank, groups, _hashes(sources, targets))

    order = np.argsort(rank, kind="stable")
    order = order[members[order] <= max(4, min(sizes) // 20)]
    filled = np.concatenate([[0], np.cumsum(members[order])])
    part = np.zeros(len(members), dtype=np.int64)
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


def _numbered(texts: Texts) -> np.ndarray:
    """(N,) int64 from 0, the same number for equal texts."""
    encoded = pyarrow.chunked_array(texts).cast(pyarrow.large_string()).dictionary_encode()
    return np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks]).astype(np.int64)


def _groups(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """(N,) int64 from 0: the connected component of each pair, where a pair joins its source to its target.

    Every sentence points to one of no higher number in its component. Each round makes what the two sides of
    a pair point to point to the lower of both, then halves every path (pointer jumping); at rest, a component points
    to one sentence.
    """
    targets = targets + sources.max() + 1
    lowest = np.arange(targets.max() + 1)
    while True:
        lower = np.minimum(lowest[sources], lowest[targets])
        nearer = lowest.copy()
        np.minimum.at(nearer, lowest[sources], lower)
        np.minimum.at(nearer, lowest[targets], lower)
        nearer = nearer[nearer]
        if (nearer == lowest).all():
            return np.unique(lowest[sources], return_inverse=True)[1]
        lowest = nearer


def _hashes(sources: Texts, targets: Texts) -> np.ndarray:
    """(N,) uint64"""
    digests = (
        hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()
        for source, target in zip(sources.to_pylist(), targets.to_pylist(), strict=True)
    )
    return np.frombuffer(b"".join(digests), dtype="<u8")
