"""Packed batches: the sentences of a batch one after another in a row of source and a row of target tokens.

Both rows have the same length in every batch, so that a GPU can replay the kernels of an update as one CUDA graph.
"""

from dataclasses import dataclass, replace
from heapq import heapreplace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow
import torch
from pyarrow.compute import list_value_length
from torch import Tensor

from mt.data.batching.batch import Batch, collate, empty_batch
from mt.data.batching.plan import plan_in_order
from mt.data.subwords import ID_COLUMNS
from mt.models.kernels.packed_transformer import PackedSide
from mt.text.subwords.tokenizer import BOS, EOS, PAD

MARGIN = 0.005
"""The share of a row beyond the mean number of tokens. Large batches of a window differ by less."""
SENTENCE_MARGIN = 0.5
"""The further margin, in sentences of average length, because small batches differ by more."""
ROW_MULTIPLE = 16
"""Rows of a multiple of so many tokens are the fastest to multiply on a GPU."""


class PackedShape(NamedTuple):
    """The static sizes of packed batches."""

    source: int
    """The number of source tokens of a row, EOS included."""
    target: int
    """The number of target tokens of a row, EOS included."""
    sentences: int
    """The number of sentences, those of the padding included."""
    longest: int
    """The maximum number of tokens of a sentence."""

    @classmethod
    def for_means(cls, tokens: np.ndarray, sentences: float, longest: int) -> "PackedShape":
        """Return a shape for batches of about the same size.

        Args:
            tokens: (2,), the mean number of source tokens and of target tokens of a batch.
            sentences: The mean number of sentences of a batch.
            longest: The maximum number of tokens of a sentence.
        """
        rows = (tokens * (1 + MARGIN + SENTENCE_MARGIN / max(1.0, sentences))).tolist()
        source, target = (-(-max(int(row), longest) // ROW_MULTIPLE) * ROW_MULTIPLE for row in rows)
        padding = max(source, target) // longest + 2
        return cls(source, target, int(sentences * 1.1) + 8 + padding, longest)

    def covering(self, lengths: np.ndarray) -> "PackedShape":
        """Return the shape for sentences of lengths (2, B): this one unless they do not fit."""
        totals, count = lengths.sum(axis=1), lengths.shape[1]
        longest = int(lengths.max(initial=1))
        padding = max(self.source - totals[0], self.target - totals[1], 0) // self.longest + 1
        fits = totals[0] <= self.source and totals[1] <= self.target and count + padding <= self.sentences
        if fits and longest <= self.longest:
            return self
        return PackedShape.for_means(totals.astype(float), count, max(longest, self.longest))

    @property
    def sizes(self) -> list[int]:
        """The sizes of the parts of ``PackedBatch.rows``: source and target tokens, their positions, the tokens to
        predict, and the offsets of sources and of targets."""
        tokens, offsets = [self.source, self.target], [self.sentences + 1] * 2
        return [*tokens, *tokens, self.target, *offsets]


@dataclass(frozen=True)
class PackedBatch:
    """A batch of B sentence pairs in packed rows. What is left of them is filled with sentences of PAD."""

    ids: Tensor  # (B,) int64, the ids of the pairs
    rows: Tensor  # int32, all parts in the order of ``PackedShape.sizes``, so that one copy moves them to a GPU
    shape: PackedShape
    source_tokens: int
    """The number of source tokens, EOS included and padding not."""
    target_tokens: int
    """The number of tokens to predict, EOS included and padding not."""

    @property
    def padded_tokens(self) -> int:
        """The number of target tokens with padding."""
        return self.shape.target if self.target_tokens else 0

    @property
    def source(self) -> PackedSide:
        tokens, _, positions, _, _, offsets, _ = self.rows.split(self.shape.sizes)
        return PackedSide(tokens, positions, offsets, self.shape.longest)

    @property
    def target(self) -> PackedSide:
        """The input of the decoder, which begins with BOS."""
        _, tokens, _, positions, _, _, offsets = self.rows.split(self.shape.sizes)
        return PackedSide(tokens, positions, offsets, self.shape.longest)

    @property
    def gold(self) -> Tensor:
        """The token to predict after each target token; PAD where there is none."""
        return self.rows.split(self.shape.sizes)[4]

    def padded(self, batch_tokens: int) -> list[Batch]:
        """Return the pairs as padded batches of at most ``batch_tokens`` on each side, for devices without kernels for
        packed rows."""
        if not len(self.ids):
            return [empty_batch()]
        sides = [
            [tokens[first : last - 1] for first, last in pairwise(side.offsets.tolist()[: len(self.ids) + 1])]
            for tokens, side in ((self.source.tokens.numpy(), self.source), (self.gold.numpy(), self.target))
        ]
        lengths = np.array([[len(sentence) + 1 for sentence in sentences] for sentences in sides])
        return [
            collate(self.ids[batch].numpy(), *([sentences[row] for row in batch] for sentences in sides))
            for batch in plan_in_order(lengths, batch_tokens)
        ]

    def pin_memory(self) -> "PackedBatch":
        return replace(self, rows=self.rows.pin_memory())


def pack(pairs: pyarrow.Table, shape: PackedShape) -> PackedBatch:
    """Return the packed batch of the encoded pairs in a table with the columns ``id`` and ID_COLUMNS.

    Args:
        pairs: The pairs.
        shape: The shape of the batch. It is enlarged if the pairs do not fit.
    """
    columns = [pairs[name].combine_chunks() for name in ID_COLUMNS]
    lengths = np.stack([list_value_length(column).to_numpy(zero_copy_only=False) + 1 for column in columns])
    shape = shape.covering(lengths)
    rows = np.full(sum(shape.sizes), PAD, dtype=np.int32)
    sources, targets, source_positions, target_positions, gold, *offsets = np.split(rows, np.cumsum(shape.sizes)[:-1])
    count = lengths.shape[1]
    totals = lengths.sum(axis=1)
    left = np.array([shape.source, shape.target]) - totals
    padding = int(max(-(-left // shape.longest)))
    for side, (column, positions) in enumerate(zip(columns, (source_positions, target_positions), strict=True)):
        ends = lengths[side].cumsum()
        total = int(totals[side])
        positions[:total] = np.arange(total) - np.repeat(ends - lengths[side], lengths[side])
        is_last = np.zeros(total, dtype=bool)
        is_last[ends - 1] = True
        values = column.flatten().to_numpy(zero_copy_only=False)
        tokens = (sources, gold)[side][:total]
        tokens[is_last] = EOS
        tokens[~is_last] = values
        offsets[side][1 : count + 1] = ends
        paddings = np.minimum(np.arange(1, len(offsets[side]) - count), padding)
        offsets[side][count + 1 :] = total + left[side] * paddings // max(1, padding)
    is_first = target_positions[: totals[1]] == 0
    targets[: totals[1]][is_first] = BOS
    targets[: totals[1]][~is_first] = gold[: totals[1]][gold[: totals[1]] != EOS]
    ids = torch.from_numpy(pairs["id"].to_numpy().copy())
    return PackedBatch(ids, torch.from_numpy(rows), shape, int(totals[0]), int(totals[1]))


def divide_evenly(lengths: np.ndarray, count: int, random: np.random.Generator) -> list[np.ndarray]:
    """Divide pairs into batches with about as many source tokens, and as many target tokens, in each.

    The longest remaining pair goes into the batch that is the least full (Graham 1969, longest processing time first).

    Args:
        lengths: (2, N), the lengths of the pairs.
        count: The number of batches.
        random: Determines the order of pairs of equal lengths, and of the batches.

    Returns:
        The batches in random order, each an array of pair numbers, the longest first. None is empty
        if there are as many pairs as batches.
    """
    shuffled = random.permutation(lengths.shape[1])
    order = shuffled[np.argsort(-lengths.sum(axis=0)[shuffled], kind="stable")]
    shares = (lengths / lengths.sum(axis=1, keepdims=True))[:, order].T.tolist()
    batches: list[list[int]] = [[] for _ in range(count)]
    heap = [(0.0, 0.0, 0.0, number) for number in range(count)]
    for pair, (source, target) in zip(order.tolist(), shares, strict=True):
        _, sources, targets, number = heap[0]
        batches[number].append(pair)
        sources, targets = sources + source, targets + target
        heapreplace(heap, (max(sources, targets), sources, targets, number))
    return [np.array(batches[number], dtype=np.int64) for number in random.permutation(count)]
