"""A batch of sentence pairs: as padded tensors, or packed.

In a packed batch, all sources are concatenated in one row of tokens, and all targets in another. The length of each row
is the same in every batch, so that a GPU can replay the kernels of an update as one CUDA graph.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import torch
from torch import Tensor

from mt.core.ragged import positions_in_rows
from mt.data.batching.plan import plan_by_length
from mt.data.pairs import ID_COLUMNS
from mt.data.samples import SAMPLES, sample_lengths
from mt.models.packed_transformer import PackedSide
from mt.tokenizer.tokenizer import BOS, EOS, PAD

MARGIN = 0.005
"""The spare share of a row beyond the mean number of tokens of a batch. Large batches of a window differ by less."""
SENTENCE_MARGIN = 0.5
"""Additional spare room of a row, in sentences of average length, because small batches differ by more."""
ROW_MULTIPLE = 16
"""The length of a row is a multiple of this. GPUs multiply such matrices fastest."""


@dataclass(frozen=True)
class Batch:
    """A batch of B sentence pairs as token ids, padded on the right with PAD."""

    ids: Tensor  # (B,) int64, the ids of the pairs
    source: Tensor  # (B, S) int64, … EOS
    target: Tensor  # (B, T + 1) int64, BOS … EOS
    target_positions: Tensor  # (R,) int64, the positions in the flattened ``target_output`` that are not padding
    source_tokens: int
    """The number of tokens in ``source``, EOS included and padding not."""

    @classmethod
    def from_tensors(cls, ids: Tensor, source: Tensor, target: Tensor) -> "Batch":
        """Return a batch of padded tensors, and compute ``target_positions`` and ``source_tokens`` from them.

        If they were computed later, during an update, the GPU would wait for them.
        """
        positions = (target[:, 1:] != PAD).flatten().nonzero().squeeze(1)
        return cls(ids, source, target, positions, int((source != PAD).sum()))

    @property
    def target_input(self) -> Tensor:
        """The input of the decoder, (B, T): each row from BOS to the token before the last."""
        return self.target[:, :-1]

    @property
    def target_output(self) -> Tensor:
        """The labels of the decoder, (B, T): each row from the first token to EOS."""
        return self.target[:, 1:]

    @property
    def target_tokens(self) -> int:
        """R, the number of tokens in ``target_output``, EOS included and padding not."""
        return len(self.target_positions)

    @property
    def padded_tokens(self) -> int:
        """The number of target tokens including padding; 0 for a batch without pairs."""
        return self.target_output.numel() if self.target_tokens else 0

    def split_in_halves(self) -> list["Batch"]:
        """Split the batch into two with half of the pairs each. A batch of a single pair is not split."""
        middle = len(self.ids) // 2
        return [self.select(slice(0, middle)), self.select(slice(middle, None))] if middle else [self]

    def select(self, rows: slice | Tensor) -> "Batch":
        """Return a batch of some of the pairs, padded to the longest of them."""

        def trim(tokens: Tensor) -> Tensor:
            return tokens[:, : int((tokens != PAD).sum(dim=1).max())]

        return Batch.from_tensors(self.ids[rows], trim(self.source[rows]), trim(self.target[rows]))

    def repeated_twice(self) -> "Batch":
        """Return a batch (2B) that contains all pairs twice, the second copies after the first.

        The first half of its ``target_positions`` belongs to the first copies, the second half to the second copies.
        """
        return Batch(
            self.ids.repeat(2),
            self.source.repeat(2, 1),
            self.target.repeat(2, 1),
            torch.cat([self.target_positions, self.target_positions + self.target_output.numel()]),
            2 * self.source_tokens,
        )

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on a device. A copy from pinned memory to a GPU is asynchronous."""
        non_blocking = torch.device(device).type == "cuda"
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> "Batch":
        """Return the batch in pinned memory, from which ``to`` copies it asynchronously."""
        return self._map(Tensor.pin_memory)

    def _map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """Apply a function to each tensor of the batch."""
        tensors: dict[str, Any] = {
            name: function(value) for name, value in vars(self).items() if torch.is_tensor(value)
        }
        return replace(self, **tensors)


def collate(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """Return a padded batch of B pairs with the ids 0 … B - 1, given the token ids of each sentence without BOS and
    EOS."""
    return collate_table(pyarrow.table([range(len(sources)), list(sources), list(targets)], schema=SAMPLES))


def collate_table(pairs: pyarrow.Table) -> Batch:
    """Return a padded batch of the encoded pairs in a table with the columns ``id`` and ID_COLUMNS.

    The table is empty if a batch has fewer pairs than workers. Source and target are then one row without tokens to
    predict, so that the model can be applied to the batch.
    """
    ids = torch.tensor(pairs["id"].to_numpy())
    if not len(pairs):
        return Batch(ids, torch.tensor([[EOS]]), torch.tensor([[BOS, PAD]]), ids, source_tokens=0)
    sources, targets = (pairs[name].combine_chunks() for name in ID_COLUMNS)
    return Batch.from_tensors(ids, _pad(sources, first=()), _pad(targets, first=(BOS,)))


def _pad(sentences: pyarrow.ListArray, first: tuple[int, ...]) -> Tensor:
    """Return sentences as a padded tensor, (B, length of the longest row).

    Each row consists of the token ids ``first``, those of the sentence, EOS, and PAD.
    """
    lengths = np.diff(sentences.offsets.to_numpy())
    ends = len(first) + lengths  # the positions of EOS
    padded = np.full((len(lengths), int(ends.max(initial=0)) + 1), PAD, dtype=np.int64)
    padded[:, : len(first)] = first
    columns = np.arange(padded.shape[1])
    padded[(columns >= len(first)) & (columns < ends[:, None])] = sentences.flatten().to_numpy()
    padded[np.arange(len(padded)), ends] = EOS
    return torch.from_numpy(padded)


class PackedShape(NamedTuple):
    """The static sizes of packed batches."""

    source: int
    """The length of the row of source tokens."""
    target: int
    """The length of the row of target tokens."""
    sentences: int
    """The number of sentences, including those that consist of padding."""
    longest: int
    """The maximum number of tokens of a sentence."""

    @classmethod
    def from_means(cls, tokens: np.ndarray, sentences: float, longest: int) -> "PackedShape":
        """Return a shape for batches of about the same size, given the mean sizes.

        Args:
            tokens: (2,), the mean number of source tokens and of target tokens of a batch.
            sentences: The mean number of sentences of a batch.
            longest: The maximum number of tokens of a sentence.
        """
        rows = (tokens * (1 + MARGIN + SENTENCE_MARGIN / max(1.0, sentences))).tolist()
        source, target = (-(-max(int(row), longest) // ROW_MULTIPLE) * ROW_MULTIPLE for row in rows)
        padding = max(source, target) // longest + 2
        return cls(source, target, int(sentences * 1.1) + 8 + padding, longest)

    def enlarged_for(self, lengths: np.ndarray) -> "PackedShape":
        """Return this shape if sentences of lengths (2, B) fit, otherwise a larger one."""
        totals, count = lengths.sum(axis=1), lengths.shape[1]
        left = np.array(self[:2]) - totals
        longest = max(int(lengths.max(initial=1)), self.longest)
        if longest == self.longest and left.min() >= 0 and count + left.max() // longest + 1 <= self.sentences:
            return self
        return PackedShape.from_means(totals.astype(float), count, longest)

    @property
    def sizes(self) -> list[int]:
        """The sizes of the parts of ``PackedBatch.rows``: source and target tokens, their positions, the tokens to
        predict, and the offsets of sources and of targets."""
        tokens, offsets = [self.source, self.target], [self.sentences + 1] * 2
        return [*tokens, *tokens, self.target, *offsets]


@dataclass(frozen=True)
class PackedBatch:
    """A batch of B sentence pairs in packed rows. The rest of each row is filled with sentences of PAD."""

    pairs: pyarrow.Table
    """The encoded pairs, with the columns of SAMPLES."""
    rows: Tensor  # int32, all parts in the order of ``PackedShape.sizes``, so that one copy moves all to a GPU
    shape: PackedShape
    source_tokens: int
    """The number of source tokens, EOS included and padding not."""
    target_tokens: int
    """The number of tokens to predict, EOS included and padding not."""

    @property
    def padded_tokens(self) -> int:
        """The number of target tokens including padding; 0 for a batch without pairs."""
        return self.shape.target if self.target_tokens else 0

    def unpack(self) -> tuple[PackedSide, PackedSide, Tensor]:
        """Split ``rows`` into the sources, the inputs of the decoder (each from BOS on), and the labels, which are the
        token to predict at each position, or PAD."""
        source, target, source_positions, target_positions, labels, source_offsets, target_offsets = self.rows.split(
            self.shape.sizes
        )
        longest = self.shape.longest
        sources = PackedSide(source, source_positions, source_offsets, longest)
        return sources, PackedSide(target, target_positions, target_offsets, longest), labels

    def to_padded(self, batch_tokens: int) -> list[Batch]:
        """Return the pairs as padded batches of at most ``batch_tokens`` tokens on each side.

        They are for devices without kernels for packed rows.
        """
        plan = plan_by_length(sample_lengths(self.pairs), batch_tokens)
        return [collate_table(self.pairs.take(rows)) for rows in plan] or [collate_table(self.pairs)]

    def to(self, device: torch.device) -> "PackedBatch":
        return replace(self, rows=self.rows.to(device))

    def pin_memory(self) -> "PackedBatch":
        return replace(self, rows=self.rows.pin_memory())


def pack(pairs: pyarrow.Table, shape: PackedShape) -> PackedBatch:
    """Return a packed batch of encoded pairs.

    Args:
        pairs: The pairs, with the columns of SAMPLES.
        shape: The shape of the batch. It is enlarged if the pairs do not fit.
    """
    lengths = sample_lengths(pairs)
    shape = shape.enlarged_for(lengths)
    rows = np.full(sum(shape.sizes), PAD, dtype=np.int32)
    sources, targets, *positions, labels, source_offsets, target_offsets = np.split(rows, np.cumsum(shape.sizes)[:-1])
    count = np.arange(lengths.shape[1])
    sides = zip(ID_COLUMNS, lengths, (sources, labels), positions, (source_offsets, target_offsets), strict=True)
    for column, side_lengths, tokens, position, offsets in sides:
        values = pairs[column].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        ends = side_lengths.cumsum()
        total = int(side_lengths.sum())
        tokens[:total] = np.insert(values, ends - 1 - count, EOS)
        position[:total] = positions_in_rows(side_lengths)
        offsets[1 : len(side_lengths) + 1] = ends
        paddings = np.arange(1, len(offsets) - len(side_lengths)) * shape.longest
        offsets[len(side_lengths) + 1 :] = np.minimum(total + paddings, len(tokens))
    targets[:total] = np.insert(values, ends - side_lengths - count, BOS)
    return PackedBatch(pairs, torch.from_numpy(rows), shape, *lengths.sum(axis=1).tolist())


def divide_evenly(lengths: np.ndarray, count: int, random: np.random.Generator) -> list[np.ndarray]:
    """Divide pairs into batches with about the same number of source tokens, and of target tokens.

    The longest remaining pair is added to the least full batch (Graham 1969, longest processing time first).

    Args:
        lengths: (2, N), the lengths of the pairs.
        count: The number of batches.
        random: Determines the order of pairs of equal lengths, and of the batches.

    Returns:
        The batches in random order, each an array of pair numbers in descending order of length. No batch is empty if
        there are at least as many pairs as batches.
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
