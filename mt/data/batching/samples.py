"""Draw the tokens of training pairs for one epoch: pairs are joined, changed by augmentation, and cut into sampled
subwords."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow

from mt.config import AugmentationConfig
from mt.core.columns import numbers
from mt.core.randomness import key
from mt.data.augmentation import Augmentation, CorpusStatistics
from mt.data.batching.plan import Plan
from mt.data.pairs import SIDES, side_texts
from mt.data.subwords import ID_COLUMNS, TOKENS, token_ids
from mt.text.layer import TextLayer

if TYPE_CHECKING:
    import datasets

SAMPLES = pyarrow.schema([("id", pyarrow.int64()), *((name, TOKENS) for name in ID_COLUMNS)])
"""The columns of samples: the id of each pair, and its token ids without BOS and EOS."""


@dataclass(frozen=True)
class BatchSettings:
    """The settings of the batches that training pairs form."""

    augmentation: AugmentationConfig
    sampling: float
    """The strength of subword sampling (see ``Tokenizer.sample``); 0 turns it off."""
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
        self._sampling = settings.sampling
        self._seed = settings.seed
        self._augmentation = (
            Augmentation(settings.augmentation, layer, settings.seed, statistics) if statistics else None
        )

    @property
    def is_off(self) -> bool:
        """Whether every sample equals the encoded pair."""
        return not self._sampling and self._augmentation is None

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
        changed = np.flatnonzero(self._is_changed(epoch, rows, plan))
        if not len(changed):
            return table
        ids = table["id"].to_numpy()[changed].tolist()
        groups = [plan.group(row) for row in rows[changed].tolist()]
        texts = self._marked_texts(epoch, groups)
        columns = token_ids(table)
        pairs = zip(changed.tolist(), groups, self._tokens(epoch, ids, texts), strict=True)
        for position, group, (source, target) in pairs:
            is_too_long = len(source) > self._max_tokens[0] or len(target) > self._max_tokens[1]
            columns[0][position], columns[1][position] = self._unchanged(group) if is_too_long else (source, target)
        return pyarrow.table([table["id"], *(pyarrow.array(column, TOKENS) for column in columns)], schema=SAMPLES)

    def _is_changed(self, epoch: int, rows: np.ndarray, plan: Plan) -> np.ndarray:
        """Return whether the sample of each row has to be computed and is not the encoded pair, (B,) bool."""
        if self._sampling or self._augmentation is None:
            return np.full(len(rows), bool(self._sampling))
        is_joined = np.fromiter((row in plan.joined for row in rows.tolist()), bool, len(rows))
        return self._augmentation.is_changed(epoch, rows) | is_joined

    def _marked_texts(self, epoch: int, groups: list[tuple[int, ...]]) -> list[tuple[str, str]]:
        """Return the source and target of each group of joined rows, prepared for the tokenizer."""
        sources, targets = side_texts(self._texts[[row for group in groups for row in group]])
        texts = []
        end = 0
        for group in groups:
            start, end = end, end + len(group)
            if self._augmentation is None:
                texts.append(self._layer.prepare_pair(sources[start], targets[start]))
            else:
                texts.append(self._augmentation.pair(epoch, group[0], sources[start:end], targets[start:end]))
        return texts

    def _tokens(
        self, epoch: int, ids: list[int], texts: list[tuple[str, str]]
    ) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the token ids of the source and the target of each pair.

        Args:
            epoch: The epoch, on which subword sampling depends.
            ids: The ids of the pairs, on which subword sampling depends, too.
            texts: The texts of the pairs, prepared for the tokenizer.
        """
        source_tokenizer, target_tokenizer = self._layer.tokenizers.source, self._layer.tokenizers.target
        if not self._sampling:
            sources, targets = zip(*texts, strict=True)
            yield from zip(source_tokenizer.encode(sources), target_tokenizer.encode(targets), strict=True)
            return
        for number, (source, target) in zip(ids, texts, strict=True):
            source_key, target_key = (key(self._seed, f"sampling {side}", epoch, number) for side in SIDES)
            yield (
                source_tokenizer.sample(source, self._sampling, source_key),
                target_tokenizer.sample(target, self._sampling, target_key),
            )

    def _unchanged(self, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the encoded source and target ids of a group of joined rows, neither changed nor sampled.

        They replace a sample that is longer than every sentence of the corpus: a model with learned positions may have
        no position for its last tokens. Both sides are replaced, because a placeholder in one of them belongs to a
        placeholder in the other.
        """
        table = self._encoded[list(group)]
        source, target = (table[name].combine_chunks().flatten().to_numpy() for name in ID_COLUMNS)
        return source, target
