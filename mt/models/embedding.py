"""Embeddings of pieces and of their positions (Vaswani et al. 2017, sections 3.4 and 3.5)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mt.models.dropout import Dropout
from mt.text.tokenizer import PAD


class TokenEmbedding(nn.Embedding):
    """Learned vectors of pieces, multiplied by √width so that they are about as large as the position vectors, unless
    ``scaled`` is False."""

    cutoff = 0.0
    """Probability that the vector of a piece is set to zero; see ``cut_embeddings``."""

    def __init__(self, vocabulary_size: int, width: int, scaled: bool = True) -> None:
        super().__init__(vocabulary_size, width, padding_idx=PAD)
        self.scale = math.sqrt(width) if scaled else 1.0
        nn.init.normal_(self.weight, std=width**-0.5)
        with torch.no_grad():
            self.weight[PAD].zero_()

    def forward(self, pieces: Tensor) -> Tensor:
        """Maps pieces (B, T) to vectors (B, T, D)."""
        vectors = super().forward(pieces) * self.scale
        if self.cutoff == 0:
            return vectors
        return vectors * (torch.rand(*pieces.shape, 1, device=vectors.device) >= self.cutoff)


@contextmanager
def cut_embeddings(model: nn.Module, share: float) -> Iterator[None]:
    """Within this context, every source and target piece gets a vector of zeros with probability ``share`` (token
    cutoff, Shen et al. 2020)."""
    embeddings = {part for part in model.modules() if isinstance(part, TokenEmbedding)}
    for embedding in embeddings:
        embedding.cutoff = share
    try:
        yield
    finally:
        for embedding in embeddings:
            embedding.cutoff = 0.0


def sinusoidal_positions(length: int, width: int) -> Tensor:
    """Returns the table PE (length, width): PE(pos, 2i) = sin(pos / 10000^(2i/width)), and PE(pos, 2i+1) is the cosine
    of the same angle. It is on the CPU, whatever the default device."""
    position = torch.arange(length, dtype=torch.float64, device="cpu").unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64, device="cpu") * (-math.log(10000.0) / width))
    encoding = torch.empty(length, width, dtype=torch.float64, device="cpu")
    encoding[:, 0::2] = torch.sin(position * frequency)
    encoding[:, 1::2] = torch.cos(position * frequency)
    return encoding.float()


class SinusoidalPositions(nn.Module):
    """Fixed sinusoidal position vectors, as in the paper, for sentences of any length."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoidal_positions(256, width), persistent=False)
        self.table: Tensor

    def forward(self, start: int, length: int) -> Tensor:
        """Returns the vectors (length, D) of positions start … start + length - 1."""
        table = self.table
        if start + length > len(table):
            # A local name keeps this table: other threads may replace self.table for sentences of their own.
            self.table = table = sinusoidal_positions(2 * (start + length), self.width).to(table.device)
        return table[start : start + length]


class LearnedPositions(nn.Embedding):
    """One learned vector for each position, up to a fixed number of positions."""

    def __init__(self, width: int, max_positions: int) -> None:
        super().__init__(max_positions, width)
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, start: int, length: int) -> Tensor:  # type: ignore[override]
        """Returns the vectors (length, D) of positions start … start + length - 1.

        Raises:
            IndexError: A position is beyond the last learned one.
        """
        if start + length > self.num_embeddings:
            raise IndexError(f"position {start + length} of {self.num_embeddings} learned ones")
        return self.weight[start : start + length]


class Embedding(nn.Module):
    """The sum of the token embedding and the position vector, followed by dropout."""

    def __init__(
        self, tokens: TokenEmbedding, positions: SinusoidalPositions | LearnedPositions, dropout: float
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)

    def forward(self, pieces: Tensor, start: int = 0) -> Tensor:
        """Maps pieces (B, T) at positions start … start + T - 1 to vectors (B, T, D)."""
        return self.dropout(self.tokens(pieces) + self.positions(start, pieces.shape[1]))
