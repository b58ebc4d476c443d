"""A batch of sentence pairs as padded tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow
import torch
from torch import Tensor

from mt.data.subwords import ID_COLUMNS
from mt.text.subwords.tokenizer import BOS, EOS, PAD


@dataclass(frozen=True)
class Batch:
    """A batch of sentence pairs, padded on the right with PAD."""

    ids: Tensor  # (B,) int64, the ids of the pairs
    source: Tensor  # (B, S) int64, … EOS
    target: Tensor  # (B, T + 1) int64, BOS … EOS
    target_positions: Tensor  # (R,) int64, the positions in ``target_output``, flattened, that are not padding
    source_tokens: int
    """Number of tokens in ``source``, with EOS and without padding."""

    @classmethod
    def of(cls, ids: Tensor, source: Tensor, target: Tensor) -> "Batch":
        """Return a batch with the positions that are not padding. Finding them later, in the middle of a step, would
        make the GPU wait."""
        positions = (target[:, 1:] != PAD).flatten().nonzero().squeeze(1)
        return cls(ids, source, target, positions, int((source != PAD).sum()))

    @property
    def target_input(self) -> Tensor:
        """Input of the decoder, BOS …: (B, T)."""
        return self.target[:, :-1]

    @property
    def target_output(self) -> Tensor:
        """Tokens that the decoder should predict, … EOS: (B, T)."""
        return self.target[:, 1:]

    @property
    def target_tokens(self) -> int:
        """R, the number of tokens in ``target_output``, with EOS and without padding."""
        return len(self.target_positions)

    def halves(self) -> list["Batch"]:
        """Return two batches with half of the pairs each, or this batch alone if it has a single pair."""
        middle = len(self.ids) // 2
        return [self._rows(slice(0, middle)), self._rows(slice(middle, None))] if middle else [self]

    def _rows(self, rows: slice) -> "Batch":
        def shortened(tokens: Tensor) -> Tensor:
            return tokens[:, : int((tokens != PAD).sum(dim=1).max())]

        return Batch.of(self.ids[rows], shortened(self.source[rows]), shortened(self.target[rows]))

    def twice(self) -> "Batch":
        """Return a batch with all pairs, followed by the same pairs again. The first half of its ``target_positions``
        belongs to the pairs, the second half to their repetition."""
        return Batch(
            self.ids.repeat(2),
            self.source.repeat(2, 1),
            self.target.repeat(2, 1),
            torch.cat([self.target_positions, self.target_positions + self.target_output.numel()]),
            2 * self.source_tokens,
        )

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on a device. A copy from pinned memory to a GPU runs in parallel with other work."""
        non_blocking = torch.device(device).type == "cuda"
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> "Batch":
        """Return the batch in pinned memory. A GPU copies from there by itself."""
        return self._map(Tensor.pin_memory)

    def _map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        return Batch(
            function(self.ids),
            function(self.source),
            function(self.target),
            function(self.target_positions),
            self.source_tokens,
        )


def empty_batch() -> Batch:
    """Return a batch of padding alone, for a worker without a share: a batch can have fewer pairs than workers."""
    no_ids = torch.empty(0, dtype=torch.int64)
    return Batch(no_ids, torch.tensor([[EOS]]), torch.tensor([[BOS, PAD]]), no_ids, source_tokens=0)


def collate(
    ids: Sequence[int] | np.ndarray, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Batch:
    """Return the batch of B pairs, whose tokens come without BOS and EOS."""
    return Batch.of(torch.tensor(ids, dtype=torch.int64), _padded(sources, first=()), _padded(targets, first=(BOS,)))


def collate_table(pairs: pyarrow.Table) -> Batch:
    """Return the batch of encoded pairs, with columns ``id`` and ID_COLUMNS."""
    if not len(pairs):
        return empty_batch()
    sources, targets = (pairs[name].combine_chunks().to_numpy(zero_copy_only=False) for name in ID_COLUMNS)
    return collate(pairs["id"].to_numpy(), sources, targets)


def _padded(sentences: Sequence[Sequence[int]], first: tuple[int, ...]) -> Tensor:
    """Return a tensor (B, longest) with rows of ``first``, the sentence, EOS, and PAD up to the longest row."""
    width = max((len(tokens) for tokens in sentences), default=0) + len(first) + 1
    padded = np.full((len(sentences), width), PAD, dtype=np.int64)
    padded[:, : len(first)] = first
    for row, tokens in zip(padded, sentences, strict=True):
        end = len(first) + len(tokens)
        row[len(first) : end] = tokens
        row[end] = EOS
    return torch.from_numpy(padded)
