"""Draws the tokens of training pairs for one epoch: joined, changed by augmentation, and cut by subword sampling."""

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
from mt.data.pairs import SIDES
from mt.data.subwords import ID_COLUMNS, TOKENS
from mt.text.layer import TextLayer

if TYPE_CHECKING:
    import datasets

SAMPLES = pyarrow.schema([("id", pyarrow.int64()), *((name, TOKENS) for name in ID_COLUMNS)])


@dataclass(frozen=True)
class BatchSettings:
    """How training pairs become batches."""

    augmentation: AugmentationConfig
    sampling: float
    """The strength of subword sampling (see ``Tokenizer.sample``); 0 turns it off."""
    seed: int
    """Determines the plan, the changes and the sampling."""
    batch_tokens: int
    """The most source tokens and the most target tokens in a batch, padding included. They are counted before pairs are
    changed or sampled, which lengthens sentences a little."""


class PairSampler:
    """Draws a sample of each training pair in each epoch. It depends on the seed, the epoch and the pair alone."""

    def __init__(
        self,
        pairs: "datasets.Dataset",
        layer: TextLayer,
        settings: BatchSettings,
        statistics: CorpusStatistics | None,
    ) -> None:
        """
        Args:
            pairs: From ``encode_pairs``.
            layer: Makes tokens of pairs that are changed or sampled.
            settings: Augmentation and sampling.
            statistics: The statistics for augmentation; None if it is off.
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
        """Whether all samples are the encoded pairs as they are."""
        return not self._sampling and self._augmentation is None

    def encoded(self, rows: np.ndarray) -> pyarrow.Table:
        """Return the encoded pairs of some rows, unchanged, with the columns of SAMPLES."""
        return self._encoded[rows].cast(SAMPLES)

    def draw(self, epoch: int, rows: np.ndarray, plan: Plan) -> pyarrow.Table:
        """Return a sample for each of some rows (B,), with the columns of SAMPLES."""
        table = self.encoded(rows)
        changed = np.flatnonzero(self._is_changed(epoch, rows, plan))
        if not len(changed):
            return table
        ids = table["id"].to_numpy()[changed].tolist()
        groups = [plan.group(row) for row in rows[changed].tolist()]
        texts = self._marked_texts(epoch, groups)
        columns = [table[name].combine_chunks().to_numpy(zero_copy_only=False) for name in ID_COLUMNS]
        pairs = zip(changed.tolist(), groups, self._tokens(epoch, ids, texts), strict=True)
        for position, group, (source, target) in pairs:
            is_too_long = len(source) > self._max_tokens[0] or len(target) > self._max_tokens[1]
            columns[0][position], columns[1][position] = self._unchanged(group) if is_too_long else (source, target)
        return pyarrow.table([table["id"], *(pyarrow.array(column, TOKENS) for column in columns)], schema=SAMPLES)

    def _is_changed(self, epoch: int, rows: np.ndarray, plan: Plan) -> np.ndarray:
        if self._sampling or self._augmentation is None:
            return np.full(len(rows), bool(self._sampling))
        is_joined = np.fromiter((row in plan.joined for row in rows.tolist()), bool, len(rows))
        return self._augmentation.is_changed(epoch, rows) | is_joined

    def _marked_texts(self, epoch: int, groups: list[tuple[int, ...]]) -> list[tuple[str, str]]:
        """Return the texts for the tokenizer of groups of rows that are joined."""
        rows = [row for group in groups for row in group]
        table = self._texts[rows]
        sources, targets = (table[side].to_pylist() for side in SIDES)
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
        """Yield the tokens of pairs, given their ids and marked texts."""
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
        """Return the tokens of a group in place of a sample that is longer than every sentence of the corpus: a model
        with learned positions may have no position for its end.

        Both sides are unchanged then, because a placeholder in one belongs to a placeholder in the other.
        """
        table = self._encoded[list(group)]
        source, target = (table[name].combine_chunks().flatten().to_numpy() for name in ID_COLUMNS)
        return source, target
