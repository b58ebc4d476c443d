"""Embeddings to begin with, from the pairs in which pieces occur together.

A piece and its translation stand in the same pairs. So a model need not find out by gradient descent which pieces
belong together: counting tells it before the first update. This is cross-language latent semantic indexing (Landauer &
Littman 1990), with the pieces of both languages in one space: the matrix of the cosines n(a and b) / √(n(a) n(b)),
where n counts the pairs in which pieces stand, is decomposed; its first component is left out, and only the directions
of the vectors are kept.
"""

import logging
import time

import datasets
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mt.columns import evenly_spaced_rows, tables
from mt.model.embedding import TokenEmbedding
from mt.model.seq2seq import Seq2Seq
from mt.training.workers import Workers

logger = logging.getLogger(__name__)

MOST_PAIRS = 200_000
"""Pairs that are counted, evenly spaced. Their share in mixtures (weights) is not heeded."""
FEWEST_PAIRS = 2
"""A piece that stands in fewer pairs keeps its random vector."""
SHARE = 0.7
"""The length of what counting gives in a vector of length one. The rest is random, because pieces with the same vector
could not be told apart: a word and its translation, or two words that stand in the same pairs."""
ROUNDS = 4
"""Rounds of subspace iteration."""


def begin_with_co_occurrence(model: Seq2Seq, pairs: datasets.Dataset, joint: bool, workers: Workers) -> None:
    """Mixes what counting tells into the random vectors of a new model, which keep their average length.

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
    found, counts = workers.from_leader(
        lambda: piece_vectors(*occurrences(pairs, first_target), vocabulary, source.shape[1])
    )
    with torch.no_grad():
        _mix(source, found[: len(source)], counts[: len(source)])
        if target is not source:
            _mix(target, found[first_target:], counts[first_target:])
    logger.info(
        "embeddings: %s of %s pieces begin near those that they occur with (%.0f s)",
        f"{int((counts >= FEWEST_PAIRS).sum()):,}",
        f"{vocabulary:,}",
        time.perf_counter() - started,
    )


def occurrences(pairs: datasets.Dataset, first_target: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns which piece stands in which pair, each combination once: the numbers of the pieces (M,) and of the pairs
    (M,), both int64. ``first_target`` is added to the number of a target piece."""
    rows = evenly_spaced_rows(len(pairs), MOST_PAIRS)
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


def piece_vectors(pieces: np.ndarray, pairs: np.ndarray, vocabulary: int, width: int) -> tuple[Tensor, Tensor]:
    """Returns the vectors (V, D) of V pieces, of length one or zero, and in how many pairs each stands (V,).

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
    places = torch.from_numpy(np.stack([pieces, pairs]))
    values = counts[places[0]].float().rsqrt()
    x = torch.sparse_coo_tensor(places, values, (vocabulary, int(pairs.max(initial=-1)) + 1), check_invariants=True)
    xt = x.t().coalesce()
    x = x.coalesce()
    generator = torch.Generator().manual_seed(0)
    basis = torch.randn(vocabulary, min(vocabulary, width + 9), generator=generator)
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(torch.sparse.mm(x, torch.sparse.mm(xt, basis))).Q
    projected = torch.sparse.mm(xt, basis)  # (N, Q)
    eigenvalues, rotation = torch.linalg.eigh(projected.t() @ projected)  # the smallest first
    largest = slice(max(0, len(eigenvalues) - 1 - width), -1)
    vectors = basis @ (rotation[:, largest] * eigenvalues[largest].clamp(min=0).sqrt())
    return functional.normalize(functional.pad(vectors, (0, width - vectors.shape[1]))), counts


def _mix(weight: Tensor, found: Tensor, counts: Tensor) -> None:
    enough = (counts >= FEWEST_PAIRS) & found.any(dim=1)
    random = weight[enough]
    length = random.norm(dim=1).mean()
    weight[enough] = SHARE * length * found[enough] + (1 - SHARE**2) ** 0.5 * random
