"""Yield the batches of training pairs, epoch after epoch, and the batches of validation and test pairs.

For each epoch, augmentation and subword sampling draw a sample of every training pair, in this process or in others.
Sampling changes the lengths of sentences, so that up to a third of a planned batch would be padding. Therefore all
pairs of a window of up to MAX_WINDOW_BATCHES planned batches are sampled together, and then divided again into the same
number of batches.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow
from pyarrow.compute import list_value_length

from mt.config import AugmentationConfig
from mt.core.columns import numbers
from mt.core.randomness import generator
from mt.data.batching.batch import Batch, PackedBatch, PackedShape, collate_table, divide_evenly, pack
from mt.data.batching.plan import Plan, plan_by_length, plan_epoch, replan
from mt.data.pairs import ID_COLUMNS, SIDES, side_texts
from mt.data.parallel import ProcessPool
from mt.data.samples import (
    SAMPLES,
    SampleMaker,
    SampleRequest,
    corpus_statistics,
    replace_tokens,
    sample_lengths,
)
from mt.text.layer import TextLayer

if TYPE_CHECKING:
    import datasets

    from mt.distributed.workers import Workers

MAX_WINDOW_BATCHES = 64
"""The maximum number of planned batches in a window."""
PART_BATCHES = 4
"""The number of planned batches that a process samples at a time. Sampling fewer pairs takes longer per pair."""
GROWTH_ROWS = 4096
"""The number of pairs for estimating the growth of sentences by augmentation and subword sampling."""


@dataclass(frozen=True)
class BatchSettings:
    """The settings of training batches."""

    augmentation: AugmentationConfig
    sampling: float
    """The strength of subword sampling (see ``Tokenizer.sampler``); 0 turns it off."""
    seed: int
    """Determines the plan of each epoch, the augmentation and the subword sampling."""
    batch_tokens: int
    """The maximum number of tokens of a batch on each side, padding included. Tokens are counted before augmentation
    and subword sampling, which make sentences slightly longer."""
    packed: bool = False
    """Whether batches are packed."""
    processes: int = 0
    """The number of processes for augmentation and sampling; 0 for this process. The batches do not depend on it."""


class TrainingBatches:
    """The training batches of one worker, epoch after epoch. The trainer of a run holds one.

    The tokens of the pairs are sampled for each epoch. A sample depends only on the seed, the epoch and the pair.
    """

    def __init__(
        self,
        pairs: "datasets.Dataset",
        layers: Sequence[TextLayer],
        settings: BatchSettings,
        workers: "Workers",
        sizes: Sequence[int] | None = None,
    ) -> None:
        """
        Args:
            pairs: The training pairs as returned by ``encode_pairs``, with a column ``weight``, grouped by direction.
            layers: The text layer of each direction, which encodes changed texts.
            settings: The size of the batches, augmentation and subword sampling.
            workers: The workers that share every batch. The constructor is collective: all workers have to call it.
            sizes: The number of pairs of each direction; None for one direction.
        """
        sizes = sizes or [len(pairs)]
        self._directions = np.repeat(np.arange(len(sizes), dtype=np.int16), sizes)
        statistics = None
        if not settings.augmentation.is_off:
            languages = [layer.source_language for layer in layers]
            needs_lexicon = bool(settings.augmentation.slots or settings.augmentation.words)
            statistics = workers.run_on_main(
                lambda: corpus_statistics(pairs, languages, self._directions, needs_lexicon)
            )
        self._encoded = pairs.with_format("arrow").select_columns(["id", *ID_COLUMNS])
        self._texts = pairs.with_format("arrow").select_columns(list(SIDES))
        self._max_tokens = [int(numbers(pairs, f"{side}_length").max()) for side in SIDES]
        layers = [replace(layer, spelling=None) for layer in layers]  # it is large, and of no use for training pairs
        self._prefix_length = len(layers[0].tokenizers.source.prefix)
        self._make_samples = SampleMaker(layers, settings.augmentation, settings.sampling, settings.seed, statistics)
        self._pool = ProcessPool(self._make_samples, settings.processes)
        self._pairs = pairs
        self._settings = settings
        self._has_tags = any(layer.config.tags for layer in layers)
        """Whether sources have target tags. Such pairs are not joined."""
        self._workers = workers
        self._prefetched: dict[tuple[int, int], list[Callable[[], pyarrow.Table]]] = {}
        """Maps (epoch, number) of the next window to functions that return the samples of this worker's part of it."""
        self._plan = lru_cache(maxsize=1)(self._plan_epoch)
        self.packed_shape = self._packed_shape() if settings.packed else None
        """The shape of this worker's share of packed batches; None if batches are padded."""

    def _packed_shape(self) -> PackedShape:
        """Estimate the shape of packed batches from the plan of the first epoch and a sample of its pairs."""
        plan, lengths = self._plan(0), encoded_lengths(self._pairs)
        rows = np.concatenate([np.empty(0, dtype=np.int64), *plan.batches])  # there may be no batch
        chosen = rows[:: len(rows) // GROWTH_ROWS + 1]
        chosen = chosen[[row not in plan.joined for row in chosen.tolist()]]
        # Augmentation and subword sampling make sentences longer.
        sampled = sample_lengths(self._start_sampling(0, chosen)())
        growth = (sampled.sum(axis=1) + 1) / (lengths[:, chosen].sum(axis=1) + 1)
        shares = max(1, len(plan.batches)) * self._workers.size
        return PackedShape.from_means(plan.tokens * growth / shares, len(rows) / shares, int(lengths.max()))

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch | PackedBatch]:
        """Yield this worker's share of each batch of an epoch. A share may be empty.

        Args:
            number: The epoch, from 0.
            start: The number of batches to skip. They are not computed, except those in the window of batch ``start``.
        """
        if self.packed_shape or not self._make_samples.is_identity:
            yield from self._sampled_epoch(number, start)
            return
        for batch in self._plan(number).batches[start:]:
            yield collate_table(self._encoded_rows(self._local_share(batch)))

    def _sampled_epoch(self, epoch: int, start: int) -> Iterator[Batch | PackedBatch]:
        """Yield this worker's share of each batch, as ``epoch`` does, if pairs are augmented, sampled or packed.

        For each window, every worker samples a part of the pairs, the workers gather all parts, and every worker
        computes the same division into batches. Collective: all workers have to call this.
        """
        windows = _divide_into_windows(self._plan(epoch).batches)
        end = 0
        for number, window in enumerate(windows):
            first, end = end, end + len(window)
            if end <= start:
                continue
            parts = self._prefetched.pop((epoch, number), None)
            if parts is None:
                rows = self._local_rows(epoch, number)
                parts = [self._start_sampling(epoch, part) for part in self._divide_window(rows, len(window))]
            local = pyarrow.concat_tables([part() for part in parts]).combine_chunks()
            samples = pyarrow.concat_tables(self._workers.gather_objects(local)).combine_chunks()
            divide = divide_evenly if self.packed_shape else replan
            random = generator(self._settings.seed, "window", epoch, number)
            batches = divide(sample_lengths(samples), len(window), random)
            # While the batches of this window are yielded, the pairs of the next window are sampled: one part with each
            # batch. Parts for other processes are larger and start with the first batches, so that they end in time.
            next_window = (epoch, number + 1) if number + 1 < len(windows) else (epoch + 1, 0)
            rows = self._local_rows(*next_window)
            ahead: list[Callable[[], pyarrow.Table]] = []
            remaining = iter(self._divide_window(rows, len(window)))
            for index, batch in enumerate(batches, first):
                ahead += [self._start_sampling(next_window[0], part) for part in islice(remaining, 1)]
                if index >= start:
                    share = samples.take(self._local_share(batch))
                    yield pack(share, self.packed_shape) if self.packed_shape else collate_table(share)
            self._prefetched = {next_window: ahead}

    def _divide_window(self, rows: np.ndarray, batches: int) -> list[np.ndarray]:
        """Divide the rows of a window into parts that are sampled at a time.

        Args:
            rows: The rows.
            batches: The number of batches in the window.
        """
        return np.array_split(rows, -(-batches // PART_BATCHES) if self._settings.processes else batches)

    def _local_share(self, rows: np.ndarray) -> np.ndarray:
        return rows[self._workers.rank :: self._workers.size]

    def _local_rows(self, epoch: int, window: int) -> np.ndarray:
        """Return the rows of a window that this worker samples; none for an epoch without pairs, which has no
        window."""
        windows = _divide_into_windows(self._plan(epoch).batches)
        rows = np.concatenate(windows[window]) if windows else np.empty(0, dtype=np.int64)
        return np.array_split(rows, self._workers.size)[self._workers.rank]

    def _encoded_rows(self, rows: np.ndarray) -> pyarrow.Table:
        """Return the encoded pairs of rows (B,) before augmentation and sampling, with the columns of SAMPLES."""
        return self._encoded[rows].cast(SAMPLES).combine_chunks()

    def _start_sampling(self, epoch: int, rows: np.ndarray) -> Callable[[], pyarrow.Table]:
        """Start to draw the samples of rows (B,) in an epoch, in another process if there is one.

        Args:
            epoch: The epoch.
            rows: Rows of the planned batches of the epoch.

        Returns:
            A function that waits for the samples. They have the columns of SAMPLES and the order of ``rows``. The
            function raises RunError if the process has ended early.
        """
        plan = self._plan(epoch)
        groups: list[tuple[int, ...]] = []
        changed = np.empty(0, np.int64)
        if self._make_samples.augmentation is not None:
            is_joined = np.fromiter((row in plan.joined for row in rows.tolist()), bool, len(rows))
            changed = np.flatnonzero(self._make_samples.augmentation.is_changed(epoch, rows) | is_joined)
            groups = [plan.group(row) for row in rows[changed].tolist()]
        sources, targets = side_texts(self._texts[[row for group in groups for row in group]])
        samples = self._pool.submit(SampleRequest(epoch, self._encoded_rows(rows), changed, groups, sources, targets))
        return lambda: self._replace_too_long(samples(), rows, plan)

    def _replace_too_long(self, samples: pyarrow.Table, rows: np.ndarray, plan: Plan) -> pyarrow.Table:
        """Replace samples that are longer than every sentence of the corpus by their encoded pairs.

        A model with learned positions may lack positions for the last tokens of such samples. The encoded pairs are
        neither augmented nor sampled. Both sides are replaced, because placeholders occur in pairs. Joined pairs stay
        joined.
        """
        is_too_long = np.zeros(len(rows), dtype=bool)
        for name, limit in zip(ID_COLUMNS, self._max_tokens, strict=True):
            is_too_long |= list_value_length(samples[name]).to_numpy() > limit
        positions = np.flatnonzero(is_too_long)
        if not len(positions):
            return samples
        groups = [self._encoded_rows(np.array(plan.group(row))) for row in rows[positions].tolist()]
        tokens = []
        for name, prefix in zip(ID_COLUMNS, (self._prefix_length, 0), strict=True):
            sides = [group[name].to_pylist() for group in groups]
            tokens.append([list(chain(first, *(other[prefix:] for other in others))) for first, *others in sides])
        return replace_tokens(samples, positions, tokens)

    def close(self) -> None:
        """End the processes that draw samples. The next epoch starts new ones."""
        self._prefetched.clear()
        self._pool.close()

    def batches_in_epoch(self, number: int) -> int:
        """Return the number of batches in an epoch. It is the same for all workers."""
        return len(self._plan(number).batches)

    @property
    def num_oversized_pairs(self) -> int:
        """The number of pairs with more than ``batch_tokens`` tokens on a side. Each of them is a batch by itself."""
        return int((encoded_lengths(self._pairs).max(axis=0) > self._settings.batch_tokens).sum())

    def _plan_epoch(self, number: int) -> Plan:
        """Plan the batches of an epoch."""
        # The columns are read again for each plan instead of being stored, so that ``plan_epoch`` can free them and
        # they take no memory during the epoch.
        return plan_epoch(
            encoded_lengths(self._pairs),
            numbers(self._pairs, "weight"),
            self._settings.seed,
            number,
            self._settings.batch_tokens,
            0.0 if self._has_tags else self._settings.augmentation.joined,
            packed=self._settings.packed,
            directions=self._directions,
        )


def encoded_lengths(pairs: "datasets.Dataset") -> np.ndarray:
    """Return the lengths of N encoded pairs, EOS included: (2, N) int32, sources first."""
    lengths = np.empty((2, len(pairs)), dtype=np.int32)
    for side, side_lengths in zip(SIDES, lengths, strict=True):
        np.add(numbers(pairs, f"{side}_length"), 1, out=side_lengths)
    return lengths


def evaluation_batches(pairs: "datasets.Dataset", batch_tokens: int) -> Iterator[Batch]:
    """Yield batches of all encoded pairs, each pair once, in an order that depends only on the lengths.

    The longest pairs are first, so that a batch that is too large for the memory fails at once.

    Args:
        pairs: The pairs as returned by ``encode_pairs``.
        batch_tokens: The maximum number of tokens of a batch on each side, padding included.
    """
    encoded = pairs.with_format("arrow").select_columns(["id", *ID_COLUMNS])
    for rows in reversed(plan_by_length(encoded_lengths(pairs), batch_tokens)):
        yield collate_table(encoded[rows])


def _divide_into_windows(plan: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Divide the batches of an epoch, in order, into windows of about equal size with at most MAX_WINDOW_BATCHES."""
    count = -(-len(plan) // MAX_WINDOW_BATCHES)
    return [plan[len(plan) * number // count : len(plan) * (number + 1) // count] for number in range(count)]
