"""Pieces and their positions as vectors (Vaswani et al. 2017, sections 3.4 and 3.5)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mt.data.tokenizer import PAD
from mt.model.dropout import Dropout


class TokenEmbedding(nn.Embedding):
    """Learned vectors, scaled by √width so that they match the positions' size."""

    cutoff = 0.0
    """The share of pieces whose vectors are zero; see ``cut_embeddings``."""

    def __init__(self, vocabulary_size: int, width: int) -> None:
        super().__init__(vocabulary_size, width, padding_idx=PAD)
        self.scale = math.sqrt(width)
        nn.init.normal_(self.weight, std=width**-0.5)
        with torch.no_grad():
            self.weight[PAD].zero_()

    def forward(self, pieces: Tensor) -> Tensor:
        """(B, T) → (B, T, D)"""
        vectors = super().forward(pieces) * self.scale
        if self.cutoff == 0:
            return vectors
        return vectors * (torch.rand(*pieces.shape, 1, device=vectors.device) >= self.cutoff)


@contextmanager
def cut_embeddings(model: nn.Module, share: float) -> Iterator[None]:
    """Token cutoff (Shen et al. 2020): inside it, source and target pieces at random have a vector of zeros."""
    embeddings = {part for part in model.modules() if isinstance(part, TokenEmbedding)}
    for embedding in embeddings:
        embedding.cutoff = share
    try:
        yield
    finally:
        for embedding in embeddings:
            embedding.cutoff = 0.0


def sinusoidal_positions(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos(the same); (length, width)."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    encoding = torch.empty(length, width, dtype=torch.float64)
    encoding[:, 0::2] = torch.sin(position * frequency)
    encoding[:, 1::2] = torch.cos(position * frequency)
    return encoding.float()


class SinusoidalPositions(nn.Module):
    """The fixed waves of the paper, for any length."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoidal_positions(256, width), persistent=False)
        self.table: Tensor

    def forward(self, start: int, length: int) -> Tensor:
        """Positions start … start + length - 1; (length, D)."""
        table = self.table
        if start + length > len(table):
            # Through a local name: other threads may be growing the table for sentences of their own.
            self.table = table = sinusoidal_positions(2 * (start + length), self.width).to(table.device)
        return table[start : start + length]


class LearnedPositions(nn.Embedding):
    """One learned vector a position, up to a fixed length."""

    def __init__(self, width: int, max_positions: int) -> None:
        super().__init__(max_positions, width)
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, start: int, length: int) -> Tensor:  # type: ignore[override]
        """Positions start … start + length - 1; (length, D).

        Raises IndexError past the last learned position.
        """
        if start + length > self.num_embeddings:
            raise IndexError(f"position {start + length} of {self.num_embeddings} learned ones")
        return self.weight[start : start + length]


class Embedding(nn.Module):
    """Token embedding + position, then dropout."""

    def __init__(
        self, tokens: TokenEmbedding, positions: SinusoidalPositions | LearnedPositions, dropout: float
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)

    def forward(self, pieces: Tensor, start: int = 0) -> Tensor:
        """(B, T) pieces at positions start … start + T - 1 → (B, T, D)"""
        return self.dropout(self.tokens(pieces) + self.positions(start, pieces.shape[1]))
