"""The model of a run, the weights that it starts or resumes with, their weighted mean with the trained ones, and the
parts that training leaves as they are.

Initial embeddings can come from the co-occurrence of subwords in training pairs. A subword and its translation occur in
the same pairs, so counts tell before the first update which ones belong together. This is cross-language latent
semantic indexing (Landauer & Littman 1990) with the subwords of both languages in one space: the matrix of the cosines
n(a and b) / √(n(a) n(b)), where n counts pairs, is decomposed. Its first component is left out, and only the directions
of the vectors are kept.
"""

import logging
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import datasets
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.config import TrainConfig, TrainingConfig
from mt.core.columns import evenly_spaced_rows, numbers, tables
from mt.core.errors import InputError, did_you_mean
from mt.core.randomness import key
from mt.distributed.workers import Workers
from mt.models.build import build_model
from mt.models.embedding import LearnedPositions, TokenEmbedding
from mt.models.seq2seq import Seq2Seq
from mt.storage.run_folder import WEIGHTS
from mt.storage.weights import Tensors, checksum, copy_weights, load_weights, read_weights, weight_shapes, weights_of
from mt.training.checkpoint import START, Checkpoint
from mt.training.preparation import PreparedData
from mt.translation.trained_model import load_weights_from

logger = logging.getLogger(__name__)

MAX_PAIRS = 200_000
"""Pairs that are counted. They are evenly spaced, whatever the weights of a mixture's corpora are."""
MAX_TOKENS = 5_000_000
"""Approximate number of tokens in these pairs. This bounds memory if sentences are long."""
PAIRS_AT_ONCE = 20_000
"""Pairs that are multiplied at a time. This bounds memory if vectors are wide."""
MIN_SUBWORD_PAIRS = 2
"""A subword that occurs in fewer pairs keeps its random vector."""
COUNTED_SHARE = 0.7
"""Length of the co-occurrence part of a vector of length one. The random part has length √(1 - COUNTED_SHARE²). Without
it, subwords that occur in the same pairs would have the same vector."""
SUBSPACE_ITERATIONS = 4
"""Iterations of subspace iteration."""
NOISE = 1e-5
"""Eigenvalues below this share of the largest count as zero: they are rounding errors."""


def initialize_by_co_occurrence(model: Seq2Seq, pairs: datasets.Dataset, joint: bool, workers: Workers) -> None:
    """Mix co-occurrence vectors into the random embeddings of a new model, in place.

    Args:
        model: The model, on the CPU.
        pairs: The encoded training pairs.
        joint: Whether source and target have one vocabulary.
        workers: All of them have to call this. The main process counts for all.
    """
    started = time.perf_counter()
    embeddings = [part for part in model.modules() if isinstance(part, TokenEmbedding)]
    source, target = embeddings[0].weight, embeddings[-1].weight
    first_target = 0 if joint else len(source)
    vocabulary = first_target + len(target)
    vectors = workers.run_on_main(
        lambda: co_occurrence_vectors(*occurrences(pairs, first_target), vocabulary, source.shape[1])
    )
    with torch.no_grad():
        _mix(source, vectors[: len(source)])
        if target is not source:
            _mix(target, vectors[first_target:])
    logger.info(
        "embeddings: %s of %s tokens are initialized by co-occurrence (%.0f s)",
        f"{int(vectors.any(dim=1).sum()):,}",
        f"{vocabulary:,}",
        time.perf_counter() - started,
    )


def occurrences(pairs: datasets.Dataset, first_target: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the M distinct (subword, pair) combinations of a sample of the pairs, sorted by pair.

    Args:
        pairs: The encoded training pairs.
        first_target: The offset that is added to the ids of target subwords.

    Returns:
        The ids of the subwords (M,) and the numbers of their pairs in the sample (M,), both int64.
    """
    length = numbers(pairs, "source_length").mean() + numbers(pairs, "target_length").mean()
    rows = evenly_spaced_rows(len(pairs), min(MAX_PAIRS, math.ceil(MAX_TOKENS / max(1, length))))
    keys = []
    first = 0
    for table in tables(pairs, ["source_ids", "target_ids"], rows):
        for name, offset in (("source_ids", 0), ("target_ids", first_target)):
            column = table.column(name).combine_chunks()
            lengths = column.value_lengths().to_numpy()
            pair = np.repeat(np.arange(first, first + len(lengths)), lengths)
            keys.append((pair << 32) | (column.flatten().to_numpy().astype(np.int64) + offset))
        first += len(table)
    combinations = np.unique(np.concatenate(keys))
    return combinations & (2**32 - 1), combinations >> 32


def co_occurrence_vectors(subwords: np.ndarray, pairs: np.ndarray, vocabulary: int, width: int) -> Tensor:
    """Return co-occurrence vectors (V, D) of length one; zero for subwords in fewer than MIN_SUBWORD_PAIRS pairs.

    With X (V, N) the occurrences of V subwords in N pairs, each row divided by its length, XXᵀ has the cosines. The
    vectors are its eigenvectors times the square roots of their eigenvalues, scaled to length one per subword. The
    first eigenvector is left out, because it reflects the frequency of a subword. Subspace iteration (Halko et al.
    2011, algorithm 4.4) needs only products with X.

    Args:
        subwords: Ids (M,), as ``occurrences`` returns them.
        pairs: Pair numbers (M,), as ``occurrences`` returns them.
        vocabulary: V.
        width: D.
    """
    counts = torch.from_numpy(np.bincount(subwords, minlength=vocabulary))
    last = int(pairs.max(initial=-1))
    cuts = np.searchsorted(pairs, range(0, last + 1 + PAIRS_AT_ONCE, PAIRS_AT_ONCE))
    slices = [slice(start, end) for start, end in pairwise(cuts) if end > start]
    parts = [_sparse(subwords[part], pairs[part], counts) for part in slices]

    def times_cosines(basis: Tensor) -> Tensor:
        product = torch.zeros_like(basis)
        for x, transposed in parts:
            product += torch.sparse.mm(x, torch.sparse.mm(transposed, basis))
        return product

    basis = torch.randn(vocabulary, min(vocabulary, width + 9), generator=torch.Generator().manual_seed(0))
    for _ in range(SUBSPACE_ITERATIONS):
        basis = torch.linalg.qr(times_cosines(basis)).Q
    eigenvalues, rotation = torch.linalg.eigh(basis.t() @ times_cosines(basis))  # the smallest first
    eigenvalues = eigenvalues.where(eigenvalues > NOISE * eigenvalues[-1], 0)
    largest = slice(max(0, len(eigenvalues) - 1 - width), -1)
    vectors = basis @ (rotation[:, largest] * eigenvalues[largest].sqrt())
    vectors = functional.normalize(functional.pad(vectors, (0, width - vectors.shape[1])))
    return vectors * (counts >= MIN_SUBWORD_PAIRS)[:, None]


def _sparse(subwords: np.ndarray, pairs: np.ndarray, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return the columns of X for successive pairs as a sparse matrix (V, N), and its transpose (N, V).

    Args:
        subwords: The subword of each occurrence.
        pairs: The pair of each occurrence, ascending.
        counts: The number of pairs of each subword (V,).
    """
    indices = torch.from_numpy(np.stack([subwords, pairs - pairs[0]]))
    size = len(counts), int(indices[1].max()) + 1
    x = torch.sparse_coo_tensor(indices, counts[indices[0]].float().rsqrt(), size, check_invariants=True)
    return x.coalesce(), x.t().coalesce()


def _mix(weight: Tensor, vectors: Tensor) -> None:
    """Mix vectors (V, D) into the random rows of ``weight`` (V, D), in place. Rows whose vector is zero stay."""
    known = vectors.any(dim=1)
    weight[known] = COUNTED_SHARE * vectors[known] + (1 - COUNTED_SHARE**2) ** 0.5 * weight[known]


class Blend:
    """The initial weights of a run, to average with its trained ones (WiSE-FT, Wortsman et al. 2022, section 3).

    Fine-tuning changes the weights so little that their mean with the initial ones is a good model, too. The trainer
    holds one.

    Args:
        start: The initial weights by name. They are copied to main memory.
        share: Weight of the initial model in the mean (0–1), ``training.start_share``. With 0, nothing is copied or
            averaged.
    """

    def __init__(self, start: Tensors, share: float) -> None:
        self.share = share
        self.start = {name: weight.to("cpu", copy=True) for name, weight in start.items()} if share else {}
        self._unblended: Tensors = {}
        """The trained weights by name, in main memory, while ``applied_to`` has replaced them in the model; else
        empty."""

    def blended(self, weights: Tensors) -> Tensors:
        """Return the mean of the given weights and the initial ones by name, on the device of the given ones."""
        if not self.share:
            return weights
        return {name: weight.lerp(self.start[name].to(weight.device), self.share) for name, weight in weights.items()}

    @contextmanager
    def applied_to(self, model: nn.Module) -> Iterator[None]:
        """Context manager: average the weights of a model with the initial ones, and restore them exactly on exit.

        After an exception they are not restored.
        """
        if not self.share:
            yield
            return
        self._unblended = {name: weight.to("cpu", copy=True) for name, weight in weights_of(model).items()}
        copy_weights(self.blended(weights_of(model)), model)
        yield
        copy_weights(self._unblended, model)
        self._unblended = {}

    def unblended(self, model: nn.Module) -> Tensors:
        """Return the trained weights of a model by name, even within ``applied_to``, which replaces them in the
        model."""
        return self._unblended or weights_of(model)


def freeze(model: Seq2Seq, settings: TrainingConfig) -> None:
    """Freeze the parts of a model that ``training.freeze`` names, in place.

    A part is a module that has parameters, under its path in the model, or ``embeddings``, which are all token and
    position embeddings. A frozen parameter has no gradient, so that the optimizer has no state of it and does not
    change it. One that several parts share, such as the matrix of tied embeddings, is frozen in all of them.

    Raises:
        InputError: The model has no such part, or nothing is left to train.
    """
    parts = {name: [part] for name, part in model.named_modules(remove_duplicate=False) if [*part.parameters()]}
    parts["embeddings"] = [part for part in model.modules() if isinstance(part, TokenEmbedding | LearnedPositions)]
    for name in settings.freeze:
        if name not in parts:
            hint = did_you_mean(name, [*parts]) or "; some are embeddings, encoder, decoder, encoder.layers.0, output"
            raise InputError(f"training.freeze: the model has no part {name}{hint}")
        for part in parts[name]:
            part.requires_grad_(False)
    if not model.trained_parameter_count:
        raise InputError("training.freeze leaves nothing to train; name fewer parts")


def initial_model(
    config: TrainConfig, data: PreparedData, workers: Workers, checkpoint: Checkpoint | None
) -> tuple[Seq2Seq, Blend, str | None]:
    """Build the model, with the weights of the checkpoint, else of ``training.init_from``, else random ones, and freeze
    the parts that ``training.freeze`` names.

    Args:
        config: The config of the run.
        data: The data of the run, with the tokenizers.
        workers: All of them have to call this.
        checkpoint: The checkpoint to resume from; None for a new run.

    Returns:
        The model, on the CPU; the blend for ``training.start_share``; and the checksum of the weights of
        ``training.init_from``, or None if the weights came from elsewhere.

    Raises:
        InputError: The weights are corrupted or do not fit the model, or the model lacks a part to freeze.
    """
    settings = config.training
    torch.manual_seed(key(config.seed, "weights"))
    model = build_model(config.model, data.tokenizers)
    start_checksum = None
    if settings.init_from and not checkpoint:
        load_weights_from(Path(settings.init_from), model, config.model, data.tokenizers)
        start_checksum = checksum(weights_of(model))
    elif settings.initial_embeddings == "co_occurrence" and not checkpoint:
        initialize_by_co_occurrence(model, data.train, data.tokenizers.joint, workers)
    start = weights_of(model)
    if settings.start_share and checkpoint:
        start = read_weights(config.folder / START, config.model, weight_shapes(model))
    freeze(model, settings)
    blend = Blend(start, settings.start_share)
    if checkpoint:
        load_weights(model, config.model, checkpoint.folder / WEIGHTS)
    return model, blend, start_checksum
