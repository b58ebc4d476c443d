"""The initial weights of a run: random, co-occurrence embeddings, or those of a base run or checkpoint; frozen parts;
and the interpolation of trained with initial weights.

Co-occurrence embeddings: a subword and its translation occur in the same training pairs, so counts reveal translations
before the first update. This is cross-language latent semantic indexing (Landauer & Littman 1990) with the subwords of
both languages in one space. The matrix of the cosines n(a and b) / √(n(a) n(b)), where n counts pairs, is decomposed.
Its first component is omitted, and the vectors are scaled to length one.
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
from mt.training.checkpoint import INITIAL_WEIGHTS, Checkpoint
from mt.training.preparation import PreparedData
from mt.translation.trained_model import load_weights_from

logger = logging.getLogger(__name__)

MAX_PAIRS = 200_000
"""Maximum number of pairs to count. They are evenly spaced, whatever the weights of the corpora in a mixture are."""
MAX_TOKENS = 5_000_000
"""Approximate maximum number of tokens in these pairs, which limits memory if sentences are long."""
PAIRS_AT_ONCE = 20_000
"""Number of pairs that are multiplied at a time, which limits memory if vectors are wide."""
MIN_SUBWORD_PAIRS = 2
"""Subwords in fewer pairs keep their random vectors."""
COUNTED_SHARE = 0.7
"""Length of the co-occurrence part of a vector of length one. The random part has length √(1 - COUNTED_SHARE²). Without
it, subwords that occur in the same pairs would have the same vector."""
SUBSPACE_ITERATIONS = 4
"""Iterations of subspace iteration."""
NOISE = 1e-5
"""Eigenvalues below this share of the largest one are rounding errors and set to zero."""


def initialize_by_co_occurrence(model: Seq2Seq, pairs: datasets.Dataset, joint: bool, workers: Workers) -> None:
    """Mix co-occurrence vectors into the random embeddings of a new model, in place.

    Args:
        model: The model, on the CPU.
        pairs: The encoded training pairs.
        joint: Whether source and target have one vocabulary.
        workers: All of them have to call this. Only the main process counts.
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
        _mix_into_random(source, vectors[: len(source)])
        if target is not source:
            _mix_into_random(target, vectors[first_target:])
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
    first eigenvector is omitted, because it reflects the frequency of a subword. Subspace iteration (Halko et al.
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
    parts = [_sparse_occurrences(subwords[part], pairs[part], counts) for part in slices]

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


def _sparse_occurrences(subwords: np.ndarray, pairs: np.ndarray, counts: Tensor) -> tuple[Tensor, Tensor]:
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


def _mix_into_random(weight: Tensor, vectors: Tensor) -> None:
    """Mix vectors (V, D) into the random rows of ``weight`` (V, D), in place. Rows with a zero vector do not change."""
    known = vectors.any(dim=1)
    weight[known] = COUNTED_SHARE * vectors[known] + (1 - COUNTED_SHARE**2) ** 0.5 * weight[known]


class WeightInterpolation:
    """Averages trained weights with the initial ones (WiSE-FT, Wortsman et al. 2022, section 3). The trainer holds one.

    Fine-tuning changes the weights so little that their weighted mean with the base model's is a good model, too.

    Args:
        initial_weights: The initial weights by name. They are copied to main memory.
        base_weight: The interpolation weight of the base model (α, 0–1), ``training.start_share``. With 0, nothing is
            copied or averaged.
    """

    def __init__(self, initial_weights: Tensors, base_weight: float) -> None:
        self.base_weight = base_weight
        self.initial_weights: Tensors = {}
        if base_weight:
            self.initial_weights = {name: weight.to("cpu", copy=True) for name, weight in initial_weights.items()}
        self._trained_weights: Tensors = {}
        """The trained weights by name, in main memory, while ``applied_to`` has replaced them in the model; else
        empty."""

    def interpolated(self, weights: Tensors) -> Tensors:
        """Return the mean of the given weights and the initial ones by name, on the device of the given ones."""
        if not self.base_weight:
            return weights
        initial = self.initial_weights
        return {name: w.lerp(initial[name].to(w.device), self.base_weight) for name, w in weights.items()}

    @contextmanager
    def applied_to(self, model: nn.Module) -> Iterator[None]:
        """Context manager: average the weights of a model with the initial ones, and restore them exactly on exit.

        After an exception they are not restored.
        """
        if not self.base_weight:
            yield
            return
        self._trained_weights = {name: weight.to("cpu", copy=True) for name, weight in weights_of(model).items()}
        copy_weights(self.interpolated(weights_of(model)), model)
        yield
        copy_weights(self._trained_weights, model)
        self._trained_weights = {}

    def trained_weights(self, model: nn.Module) -> Tensors:
        """Return the trained weights of a model by name, even within ``applied_to``, which replaces them in the
        model."""
        return self._trained_weights or weights_of(model)


def freeze(model: Seq2Seq, settings: TrainingConfig) -> None:
    """Freeze the parts of a model that ``training.freeze`` names, in place.

    A part is the path of a module with parameters, or ``embeddings``: all token and position embeddings. A frozen
    parameter gets no gradient, no optimizer state and no weight decay. A parameter that several parts share, such as
    the matrix of tied embeddings, is frozen in all of them.

    Raises:
        InputError: The model has no such part, or nothing is left to train.
    """
    parts = {name: [part] for name, part in model.named_modules(remove_duplicate=False) if [*part.parameters()]}
    parts["embeddings"] = [part for part in model.modules() if isinstance(part, TokenEmbedding | LearnedPositions)]
    for name in settings.freeze:
        if name not in parts:
            hint = did_you_mean(name, [*parts]) or "; examples: embeddings, encoder, decoder, encoder.layers.0, output"
            raise InputError(f"training.freeze: the model has no part {name}{hint}")
        for part in parts[name]:
            part.requires_grad_(False)
    if not model.trained_parameter_count:
        raise InputError("training.freeze leaves nothing to train; name fewer parts")


def initial_model(
    config: TrainConfig, data: PreparedData, workers: Workers, checkpoint: Checkpoint | None
) -> tuple[Seq2Seq, WeightInterpolation, str | None]:
    """Build the model, load or initialize its weights, and freeze the parts in ``training.freeze``.

    The weights are those of the checkpoint, else those of ``training.init_from``, else random.

    Args:
        config: The config of the run.
        data: The data of the run, with the tokenizers.
        workers: All of them have to call this.
        checkpoint: The checkpoint to resume from; None for a new run.

    Returns:
        The model, on the CPU; the interpolation for ``training.start_share``; and the checksum of the weights of
        ``training.init_from``, or None if they were not loaded.

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
        start = read_weights(config.folder / INITIAL_WEIGHTS, config.model, weight_shapes(model))
    freeze(model, settings)
    interpolation = WeightInterpolation(start, settings.start_share)
    if checkpoint:
        load_weights(model, config.model, checkpoint.folder / WEIGHTS)
    return model, interpolation, start_checksum
