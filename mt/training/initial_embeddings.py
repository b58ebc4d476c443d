"""Embeddings to begin with, from the pairs in which pieces occur together.

A piece and its translation stand in the same pairs. So a model need not find out by gradient descent which pieces
belong together: counting tells it before the first update. This is cross-language latent semantic indexing (Landauer &
Littman 1990), with the pieces of both languages in one space: the matrix of the cosines n(a and b) / √(n(a) n(b)),
where n counts the pairs in which pieces stand, is decomposed; its first component is left out, and only the directions
of the vectors are kept.
"""

import logging
import math
import time
from itertools import pairwise

import datasets
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mt.core.columns import evenly_spaced_rows, numbers, tables
from mt.distributed.workers import Workers
from mt.models.embedding import TokenEmbedding
from mt.models.seq2seq import Seq2Seq

logger = logging.getLogger(__name__)

MOST_PAIRS = 200_000
"""The most pairs that are counted. They are evenly spaced, whatever the weights of a mixture's corpora."""
MOST_PIECES = 5_000_000
"""The most pieces in these pairs, approximately, which bounds memory where sentences are long."""
PAIRS_AT_ONCE = 20_000
"""So many pairs are multiplied at a time, which bounds memory where vectors are wide."""
FEWEST_PAIRS = 2
"""A piece that stands in fewer pairs keeps its random vector."""
SHARE = 0.7
"""The length of the counted part in a vector of length one; that of the random part is √(1 - SHARE²). Without a random
part, pieces that stand in the same pairs would have the same vector and could not be told apart."""
ROUNDS = 4
"""Rounds of subspace iteration."""
NOISE = 1e-5
"""Eigenvalues below this share of the largest are zero but for rounding."""


def initialise_by_co_occurrence(model: Seq2Seq, pairs: datasets.Dataset, joint: bool, workers: Workers) -> None:
    """Mixes what counting tells into the random embeddings of a new model.

    Args:
        model: The model, on the CPU. Its embeddings are changed.
        pairs: The encoded training pairs.
        joint: Whether source and target have one vocabulary.
        workers: All of them have to call this. The leader counts for all.
    """
    started = time.perf_counter()
    embeddings = [part for part in model.modules() if isinstance(part, TokenEmbedding)]
    source, target = embeddings[0].weight, embeddings[-1].weight
    first_target = 0 if joint else len(source)
    vocabulary = first_target + len(target)
    found = workers.run_on_leader(lambda: piece_vectors(*occurrences(pairs, first_target), vocabulary, source.shape[1]))
    with torch.no_grad():
        _mix(source, found[: len(source)])
        if target is not source:
            _mix(target, found[first_target:])
    logger.info(
        "embeddings: %s of %s pieces begin near those that they occur with (%.0f s)",
        f"{int(found.any(dim=1).sum()):,}",
        f"{vocabulary:,}",
        time.perf_counter() - started,
    )


def occurrences(pairs: datasets.Dataset, first_target: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns which piece stands in which pair, each combination once, by ascending pairs: the numbers of the pieces
    (M,) and of the pairs (M,), both int64. ``first_target`` is added to the number of a target piece."""
    length = numbers(pairs, "source_length").mean() + numbers(pairs, "target_length").mean()
    rows = evenly_spaced_rows(len(pairs), min(MOST_PAIRS, math.ceil(MOST_PIECES / max(1, length))))
    found = []
    first = 0
    for table in tables(pairs, ["source_ids", "target_ids"], rows):
        for name, offset in (("source_ids", 0), ("target_ids", first_target)):
            column = table.column(name).combine_chunks()
            lengths = column.value_lengths().to_numpy()
            pair = np.repeat(np.arange(first, first + len(lengths)), lengths)
            found.append((pair << 32) | (column.flatten().to_numpy().astype(np.int64) + offset))
        first += len(table)
    both = np.unique(np.concatenate(found))
    return both & (2**32 - 1), both >> 32


def piece_vectors(pieces: np.ndarray, pairs: np.ndarray, vocabulary: int, width: int) -> Tensor:
    """Returns the vectors (V, D) of V pieces. They have length one; those of pieces of which too little is known are
    zero.

    With X (V, N) the occurrences of V pieces in N pairs, each row divided by its length, XXᵀ has the cosines. The
    vectors are its eigenvectors times the square roots of their eigenvalues, those of each piece scaled to length one.
    The first eigenvector is left out: it tells how frequent a piece is. They are found by subspace iteration (Halko et
    al. 2011, algorithm 4.4), which needs products with X alone.

    Args:
        pieces, pairs: (M,), as ``occurrences`` returns them.
        vocabulary: V.
        width: D.
    """
    counts = torch.from_numpy(np.bincount(pieces, minlength=vocabulary))
    parts = [_sparse(pieces[part], pairs[part], counts) for part in _cut(pairs)]

    def times_cosines(basis: Tensor) -> Tensor:
        product = torch.zeros_like(basis)
        for x, transposed in parts:
            product += torch.sparse.mm(x, torch.sparse.mm(transposed, basis))
        return product

    basis = torch.randn(vocabulary, min(vocabulary, width + 9), generator=torch.Generator().manual_seed(0))
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(times_cosines(basis)).Q
    eigenvalues, rotation = torch.linalg.eigh(basis.t() @ times_cosines(basis))  # the smallest first
    eigenvalues = eigenvalues.where(eigenvalues > NOISE * eigenvalues[-1], 0)
    largest = slice(max(0, len(eigenvalues) - 1 - width), -1)
    vectors = basis @ (rotation[:, largest] * eigenvalues[largest].sqrt())
    vectors = functional.normalize(functional.pad(vectors, (0, width - vectors.shape[1])))
    return vectors * (counts >= FEWEST_PAIRS)[:, None]


def _cut(pairs: np.ndarray) -> list[slice]:
    """Returns the parts of ascending numbers that belong to PAIRS_AT_ONCE pairs each."""
    last = int(pairs.max(initial=-1))
    cuts = np.searchsorted(pairs, range(0, last + 1 + PAIRS_AT_ONCE, PAIRS_AT_ONCE))
    return [slice(start, end) for start, end in pairwise(cuts) if end > start]


def _sparse(pieces: np.ndarray, pairs: np.ndarray, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the columns of X (V, N) that belong to some pairs, and the same transposed."""
    places = torch.from_numpy(np.stack([pieces, pairs - pairs[0]]))
    size = len(counts), int(places[1].max()) + 1
    x = torch.sparse_coo_tensor(places, counts[places[0]].float().rsqrt(), size, check_invariants=True)
    return x.coalesce(), x.t().coalesce()


def _mix(weight: Tensor, found: Tensor) -> None:
    """Mixes vectors (V, D) of length one into random ones (V, D) of about that length, where they are not zero."""
    known = found.any(dim=1)
    weight[known] = SHARE * found[known] + (1 - SHARE**2) ** 0.5 * weight[known]
