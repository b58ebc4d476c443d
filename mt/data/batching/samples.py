"""Draw the tokens of training pairs for one epoch: pairs are joined, changed by augmentation, and cut into sampled
subwords."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow
from pyarrow.compute import list_value_length

from mt.config import AugmentationConfig
from mt.core.columns import numbers
from mt.core.randomness import key, random_bits
from mt.data.augmentation import Augmentation, CorpusStatistics
from mt.data.batching.plan import Plan
from mt.data.pairs import SIDES, side_texts
from mt.data.subwords import ID_COLUMNS, TOKENS
from mt.text.layer import TextLayer
from mt.text.subwords.sampling import SubwordSampler

if TYPE_CHECKING:
    import datasets

SAMPLES = pyarrow.schema([("id", pyarrow.int64()), *((name, TOKENS) for name in ID_COLUMNS)])
"""The columns of samples: the id of each pair, and its token ids without BOS and EOS."""


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
        self._layer = layer
        tokenizers = layer.tokenizers
        self._samplers: list[SubwordSampler] = []
        """Those of the source and of the target; none without sampling."""
        if settings.sampling:
            sampler = tokenizers.source.sampler(settings.sampling)
            same = tokenizers.source is tokenizers.target
            self._samplers = [sampler, sampler if same else tokenizers.target.sampler(settings.sampling)]
        self._seed = settings.seed
        self._augmentation = (
            Augmentation(settings.augmentation, layer, settings.seed, statistics) if statistics else None
        )

    @property
    def is_off(self) -> bool:
        """Whether every sample equals the encoded pair."""
        return not self._samplers and self._augmentation is None

    def encoded(self, rows: np.ndarray) -> pyarrow.Table:
        """Return the encoded pairs of some rows (B,), neither changed nor sampled, with the columns of SAMPLES."""
        return self._encoded[rows].cast(SAMPLES)

    def draw(self, epoch: int, rows: np.ndarray, plan: Plan) -> pyarrow.Table:
        """Return samples of some rows (B,) in an epoch, with the columns of SAMPLES and in the order of ``rows``.

        Args:
            epoch: The epoch.
            rows: Rows of the plan's batches.
            plan: The plan of the epoch, which says what rows are joined.
        """
        table = self.encoded(rows)
        if self._augmentation is not None:
            table = self._with_changes(epoch, rows, plan, table)
        if self._samplers:
            ids = table["id"].to_numpy().view(np.uint64)
            for side, name, sampler in zip(SIDES, ID_COLUMNS, self._samplers, strict=True):
                keys = random_bits(np.array([key(self._seed, f"sampling {side}", epoch)], np.uint64), ids)
                sampled = sampler.sample(table[name].combine_chunks(), keys)
                table = table.set_column(table.schema.get_field_index(name), name, sampled)
        is_too_long = np.zeros(len(rows), dtype=bool)
        for name, limit in zip(ID_COLUMNS, self._max_tokens, strict=True):
            is_too_long |= list_value_length(table[name]).to_numpy() > limit
        return self._with_unchanged(table, np.flatnonzero(is_too_long), rows, plan)

    def _with_changes(self, epoch: int, rows: np.ndarray, plan: Plan, encoded: pyarrow.Table) -> pyarrow.Table:
        """Return the encoded pairs of some rows with the tokens of those that are changed or joined replaced."""
        assert self._augmentation is not None
        is_joined = np.fromiter((row in plan.joined for row in rows.tolist()), bool, len(rows))
        changed = np.flatnonzero(self._augmentation.is_changed(epoch, rows) | is_joined)
        if not len(changed):
            return encoded
        groups = [plan.group(row) for row in rows[changed].tolist()]
        texts = self._texts[[row for group in groups for row in group]]
        pairs = self._augmentation.pairs(epoch, groups, *side_texts(texts))
        tokenizers = self._layer.tokenizers.source, self._layer.tokenizers.target
        tokens = [tokenizer.encode(side) for tokenizer, side in zip(tokenizers, zip(*pairs, strict=True), strict=True)]
        return _replaced(encoded, changed, tokens)

    def _with_unchanged(
        self, samples: pyarrow.Table, positions: np.ndarray, rows: np.ndarray, plan: Plan
    ) -> pyarrow.Table:
        """Return samples with the encoded pairs, neither changed nor sampled, at some positions.

        They replace samples that are longer than every sentence of the corpus: a model with learned positions may have
        no position for their last tokens. Both sides are replaced, because a placeholder in one of them belongs to a
        placeholder in the other. Joined pairs stay joined.
        """
        if not len(positions):
            return samples
        groups = [self.encoded(np.array(plan.group(row))) for row in rows[positions].tolist()]
        tokens = [[group[name].combine_chunks().flatten().to_pylist() for group in groups] for name in ID_COLUMNS]
        return _replaced(samples, positions, tokens)


def sample_lengths(samples: pyarrow.Table) -> np.ndarray:
    """Return the lengths of N samples, EOS included: (2, N), sources first."""
    return np.stack([list_value_length(samples[name]).to_numpy() + 1 for name in ID_COLUMNS])


def _replaced(samples: pyarrow.Table, positions: np.ndarray, tokens: Sequence[list[list[int]]]) -> pyarrow.Table:
    """Return samples with other source tokens and other target tokens at some positions, (P,)."""
    indices = np.arange(len(samples))
    indices[positions] = len(samples) + np.arange(len(positions))
    columns = [
        pyarrow.concat_arrays([samples[name].combine_chunks(), pyarrow.array(side, TOKENS)]).take(
            pyarrow.array(indices)
        )
        for name, side in zip(ID_COLUMNS, tokens, strict=True)
    ]
    return pyarrow.table([samples["id"], *columns], schema=SAMPLES)
