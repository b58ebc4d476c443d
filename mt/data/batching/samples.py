"""Draw samples of training pairs for one epoch, by augmentation and subword sampling, in this process or in others."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow
from pyarrow.compute import list_value_length

from mt.config import AugmentationConfig
from mt.core.columns import numbers
from mt.data.augmentation import CorpusStatistics
from mt.data.batching.plan import Plan
from mt.data.pairs import SIDES, side_texts
from mt.data.parallel import ProcessPool
from mt.data.samples import SAMPLES, SampleMaker, SampleRequest, replaced
from mt.data.subwords import ID_COLUMNS
from mt.text.layer import TextLayer

if TYPE_CHECKING:
    import datasets


@dataclass(frozen=True)
class BatchSettings:
    """The settings of the batches that training pairs form."""

    augmentation: AugmentationConfig
    sampling: float
    """The strength of subword sampling (see ``Tokenizer.sampler``); 0 turns it off."""
    seed: int
    """Determines the plan of each epoch, the augmentation and the subword sampling."""
    batch_tokens: int
    """The most tokens of a batch on each side, padding included. They are counted before augmentation and subword
    sampling, which make sentences a little longer."""
    packed: bool = False
    """Whether batches are packed."""
    processes: int = 0
    """The number of processes that augment and sample pairs; 0: this process does it. The batches are the same."""


class PairSampler:
    """Draws the tokens of training pairs for an epoch, by augmentation and subword sampling.

    A sample depends on the seed, the epoch and the pair alone. The ``TrainingBatches`` of a run hold one instance.
    """

    def __init__(
        self,
        pairs: "datasets.Dataset",
        layer: TextLayer,
        settings: BatchSettings,
        statistics: CorpusStatistics | None,
    ) -> None:
        """
        Args:
            pairs: All training pairs, as ``encode_pairs`` returns them.
            layer: The text layer, which makes tokens of changed texts.
            settings: The settings of augmentation and subword sampling.
            statistics: The corpus statistics that augmentation needs; None if augmentation is off.
        """
        self._encoded = pairs.with_format("arrow").select_columns(["id", *ID_COLUMNS])
        self._texts = pairs.with_format("arrow").select_columns(list(SIDES))
        self._max_tokens = [int(numbers(pairs, f"{side}_length").max()) for side in SIDES]
        layer = replace(layer, spelling=None)  # it is large, and of no use for training pairs
        self._make = SampleMaker(layer, settings.augmentation, settings.sampling, settings.seed, statistics)
        self._pool = ProcessPool(self._make, settings.processes)

    @property
    def is_off(self) -> bool:
        """Whether every sample equals the encoded pair."""
        return self._make.is_off

    def close(self) -> None:
        """End the processes. The next samples start others."""
        self._pool.close()

    def encoded(self, rows: np.ndarray) -> pyarrow.Table:
        """Return the encoded pairs of some rows (B,), neither changed nor sampled, with the columns of SAMPLES."""
        return self._encoded[rows].cast(SAMPLES).combine_chunks()

    def draw(self, epoch: int, rows: np.ndarray, plan: Plan) -> pyarrow.Table:
        """Return samples of some rows (B,) in an epoch, with the columns of SAMPLES and in the order of ``rows``.

        Args:
            epoch: The epoch.
            rows: Rows of the plan's batches.
            plan: The plan of the epoch, which says what rows are joined.
        """
        return self._shortened(self._make(self._request(epoch, rows, plan)), rows, plan)

    def draw_ahead(self, epoch: int, rows: np.ndarray, plan: Plan) -> Callable[[], pyarrow.Table]:
        """Begin to ``draw`` in another process, if there is one. Return a function that waits for the samples.

        The function raises RunError if the process has ended early.
        """
        samples = self._pool.submit(self._request(epoch, rows, plan))
        return lambda: self._shortened(samples(), rows, plan)

    def _request(self, epoch: int, rows: np.ndarray, plan: Plan) -> SampleRequest:
        groups: list[tuple[int, ...]] = []
        changed = np.empty(0, np.int64)
        if self._make.augmentation is not None:
            is_joined = np.fromiter((row in plan.joined for row in rows.tolist()), bool, len(rows))
            changed = np.flatnonzero(self._make.augmentation.is_changed(epoch, rows) | is_joined)
            groups = [plan.group(row) for row in rows[changed].tolist()]
        sources, targets = side_texts(self._texts[[row for group in groups for row in group]])
        return SampleRequest(epoch, self.encoded(rows), changed, groups, sources, targets)

    def _shortened(self, samples: pyarrow.Table, rows: np.ndarray, plan: Plan) -> pyarrow.Table:
        """Return samples with encoded pairs in place of those that are longer than every sentence of the corpus.

        A model with learned positions may have no position for their last tokens. The encoded pairs are neither changed
        nor sampled. Both sides are replaced, because a placeholder in one of them belongs to a placeholder in the
        other. Joined pairs stay joined.
        """
        is_too_long = np.zeros(len(rows), dtype=bool)
        for name, limit in zip(ID_COLUMNS, self._max_tokens, strict=True):
            is_too_long |= list_value_length(samples[name]).to_numpy() > limit
        positions = np.flatnonzero(is_too_long)
        if not len(positions):
            return samples
        groups = [self.encoded(np.array(plan.group(row))) for row in rows[positions].tolist()]
        tokens = [[group[name].combine_chunks().flatten().to_pylist() for group in groups] for name in ID_COLUMNS]
        return replaced(samples, positions, tokens)
