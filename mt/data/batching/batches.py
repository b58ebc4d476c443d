"""Yields the batches of the training pairs, epoch after epoch, and those of pairs to validate and test on.

Subword sampling and augmentation make equal lengths unequal, so that up to a third of every batch would be padding.
Therefore the pairs of up to MAX_WINDOW_BATCHES planned batches are drawn together and then divided again into as many
batches.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow
from pyarrow.compute import list_value_length

from mt.core.columns import numbers
from mt.core.randomness import generator
from mt.data.augmentation import corpus_statistics
from mt.data.batching.batch import Batch, collate_table
from mt.data.batching.plan import Lengths, Plan, encoded_lengths, plan_anew, plan_epoch, plan_in_order
from mt.data.batching.samples import BatchSettings, PairSampler
from mt.data.subwords import ID_COLUMNS
from mt.text.layer import TextLayer

if TYPE_CHECKING:
    import datasets

    from mt.distributed.workers import Workers

MAX_WINDOW_BATCHES = 64
"""Number of planned batches whose pairs are divided into batches again after they were changed or sampled."""


class TrainingBatches:
    """Batches of the encoded training pairs, epoch after epoch."""

    def __init__(
        self, pairs: "datasets.Dataset", layer: TextLayer, settings: BatchSettings, workers: "Workers"
    ) -> None:
        """
        Args:
            pairs: From ``encode_pairs``, with a weight for each pair.
            layer: Makes tokens of pairs that are changed or sampled.
            settings: The size of the batches, augmentation and sampling.
            workers: Each gets its share of every batch.
        """
        augmentation = settings.augmentation
        statistics = None
        if not augmentation.is_off:
            statistics = workers.run_on_leader(
                lambda: corpus_statistics(pairs, layer.source_language, bool(augmentation.slots))
            )
        self._sampler = PairSampler(pairs, layer, settings, statistics)
        self._pairs = pairs
        self._settings = settings
        self._workers = workers
        self._drawn_ahead: dict[tuple[int, int], list[pyarrow.Table]] = {}
        """This worker's pairs of the next window, by the window's epoch and number."""
        self._planned: tuple[int, Plan] = (-1, Plan([], {}))

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yield this worker's part of each batch of an epoch, from batch ``start`` on. A part may be empty.

        The earlier batches are not made. Where pairs are changed or sampled, at most one window of them is so again.
        """
        if not self._sampler.is_off:
            yield from self._sampled_epoch(number, start)
            return
        for batch in self._plan(number).batches[start:]:
            yield collate_table(self._sampler.encoded(self._share(batch)))

    def _sampled_epoch(self, epoch: int, start: int) -> Iterator[Batch]:
        windows = _windows(self._plan(epoch).batches)
        end = 0
        for number, window in enumerate(windows):
            first, end = end, end + len(window)
            if end <= start:
                continue
            own = self._drawn_ahead.pop((epoch, number), None) or [self._draw(epoch, self._own_rows(epoch, number))]
            samples = pyarrow.concat_tables(self._workers.gather_objects(pyarrow.concat_tables(own).combine_chunks()))
            batches = plan_anew(_lengths(samples), len(window), generator(self._settings.seed, "window", epoch, number))
            # The next window's pairs are drawn while these batches are handed out, some of them with each batch.
            next_window = (epoch, number + 1) if number + 1 < len(windows) else (epoch + 1, 0)
            parts = np.array_split(self._own_rows(*next_window), len(window))
            ahead: list[pyarrow.Table] = []
            for index, (batch, part) in enumerate(zip(batches, parts, strict=True), first):
                ahead.append(self._draw(next_window[0], part))
                if index >= start:
                    yield collate_table(samples.take(self._share(batch)))
            self._drawn_ahead = {next_window: ahead}

    def _share(self, rows: np.ndarray) -> np.ndarray:
        return rows[self._workers.rank :: self._workers.size]

    def _own_rows(self, epoch: int, window: int) -> np.ndarray:
        """Return the rows of a window that this worker draws. An epoch may have no pairs, and so no window."""
        windows = _windows(self._plan(epoch).batches)
        rows = np.concatenate(windows[window]) if windows else np.empty(0, dtype=np.int64)
        return np.array_split(rows, self._workers.size)[self._workers.rank]

    def _draw(self, epoch: int, rows: np.ndarray) -> pyarrow.Table:
        return self._sampler.draw(epoch, rows, self._plan(epoch))

    def batches_in_epoch(self, number: int) -> int:
        return len(self._plan(number).batches)

    @property
    def longer_than_a_batch(self) -> int:
        """Number of pairs that alone exceed the budget of a batch on either side. Each is a batch by itself."""
        return int((np.maximum(*encoded_lengths(self._pairs)) > self._settings.batch_tokens).sum())

    def _plan(self, number: int) -> Plan:
        if self._planned[0] != number:
            # These columns are read again for each plan and not kept in variables, so that ``plan_epoch`` can free
            # them: they take no memory during an epoch.
            plan = plan_epoch(
                encoded_lengths(self._pairs),
                numbers(self._pairs, "weight"),
                self._settings.seed,
                number,
                self._settings.batch_tokens,
                self._settings.augmentation.joined,
            )
            self._planned = number, plan
        return self._planned[1]


def evaluation_batches(pairs: "datasets.Dataset", batch_tokens: int) -> Iterator[Batch]:
    """Yield every encoded pair once, in the same batches each time.

    The longest pairs come first, so that a batch too large for the memory fails at once and not after all the others.
    """
    encoded = pairs.with_format("arrow").select_columns(["id", *ID_COLUMNS])
    for rows in reversed(plan_in_order(encoded_lengths(pairs), batch_tokens)):
        yield collate_table(encoded[rows])


def _lengths(samples: pyarrow.Table) -> Lengths:
    source, target = (list_value_length(samples[name]).to_numpy() + 1 for name in ID_COLUMNS)
    return source, target


def _windows(plan: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Divide the batches of an epoch into windows of about equal size, at most MAX_WINDOW_BATCHES each."""
    count = -(-len(plan) // MAX_WINDOW_BATCHES)
    return [plan[len(plan) * number // count : len(plan) * (number + 1) // count] for number in range(count)]
