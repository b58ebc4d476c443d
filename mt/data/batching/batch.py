"""A batch of sentence pairs as padded tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow
import torch
from torch import Tensor

from mt.data.subwords import ID_COLUMNS, TOKENS
from mt.text.subwords.tokenizer import BOS, EOS, PAD


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
    def of(cls, ids: Tensor, source: Tensor, target: Tensor) -> "Batch":
        """Return a batch of padded tensors, with ``target_positions`` and ``source_tokens`` computed from them.

        Computing them later, in the middle of an update, would make the GPU wait.
        """
        positions = (target[:, 1:] != PAD).flatten().nonzero().squeeze(1)
        return cls(ids, source, target, positions, int((source != PAD).sum()))

    @property
    def target_input(self) -> Tensor:
        """The input of the decoder: (B, T), each row from BOS to the token before the last."""
        return self.target[:, :-1]

    @property
    def target_output(self) -> Tensor:
        """The tokens that the decoder should predict: (B, T), each row from the first token to EOS."""
        return self.target[:, 1:]

    @property
    def target_tokens(self) -> int:
        """R, the number of tokens in ``target_output``, EOS included and padding not."""
        return len(self.target_positions)

    @property
    def padded_tokens(self) -> int:
        """The number of target tokens with padding; 0 for a batch without pairs."""
        return self.target_output.numel() if self.target_tokens else 0

    def halves(self) -> list["Batch"]:
        """Return two batches with half of the pairs each. A batch of a single pair is returned undivided."""
        middle = len(self.ids) // 2
        return [self._rows(slice(0, middle)), self._rows(slice(middle, None))] if middle else [self]

    def _rows(self, rows: slice) -> "Batch":
        def shortened(tokens: Tensor) -> Tensor:
            return tokens[:, : int((tokens != PAD).sum(dim=1).max())]

        return Batch.of(self.ids[rows], shortened(self.source[rows]), shortened(self.target[rows]))

    def twice(self) -> "Batch":
        """Return a batch (2B) with all pairs, followed by all pairs again.

        The first half of its ``target_positions`` belongs to the first B pairs, the second half to their repetition.
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
        """Return the batch in pinned memory, from where ``to`` copies it asynchronously."""
        return self._map(Tensor.pin_memory)

    def _map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """Return a batch with the result of the function in place of each tensor."""
        tensors: dict[str, Any] = {
            name: function(value) for name, value in vars(self).items() if torch.is_tensor(value)
        }
        return replace(self, **tensors)


def empty_batch() -> Batch:
    """Return a batch without pairs, for a worker that gets none of a batch with fewer pairs than workers.

    Its source and target are a row of padding, so that the model can be applied to them.
    """
    no_ids = torch.empty(0, dtype=torch.int64)
    return Batch(no_ids, torch.tensor([[EOS]]), torch.tensor([[BOS, PAD]]), no_ids, source_tokens=0)


def collate(
    ids: Sequence[int] | np.ndarray, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Batch:
    """Return a batch of B pairs.

    Args:
        ids: The ids of the pairs.
        sources, targets: The token ids of each sentence, without BOS and EOS.
    """
    sides = (pyarrow.array(side, TOKENS) for side in (sources, targets))
    return _collate(torch.tensor(ids, dtype=torch.int64), *sides)


def collate_table(pairs: pyarrow.Table) -> Batch:
    """Return a batch of the encoded pairs in a table with the columns ``id`` and ID_COLUMNS."""
    if not len(pairs):
        return empty_batch()
    return _collate(torch.tensor(pairs["id"].to_numpy()), *(pairs[name].combine_chunks() for name in ID_COLUMNS))


def _collate(ids: Tensor, sources: pyarrow.ListArray, targets: pyarrow.ListArray) -> Batch:
    return Batch.of(ids, _padded(sources, first=()), _padded(targets, first=(BOS,)))


def _padded(sentences: pyarrow.ListArray, first: tuple[int, ...]) -> Tensor:
    """Return sentences as a padded tensor (B, length of the longest row).

    Each row holds the token ids in ``first``, those of the sentence, EOS, and PAD up to the length of the longest row.
    """
    lengths = np.diff(sentences.offsets.to_numpy())
    ends = len(first) + lengths  # the positions of EOS
    padded = np.full((len(lengths), int(ends.max(initial=0)) + 1), PAD, dtype=np.int64)
    padded[:, : len(first)] = first
    columns = np.arange(padded.shape[1])
    padded[(columns >= len(first)) & (columns < ends[:, None])] = sentences.flatten().to_numpy()
    padded[np.arange(len(padded)), ends] = EOS
    return torch.from_numpy(padded)
