"""Token embeddings, position encodings and the output layer (Vaswani et al. 2017, sections 3.4 and 3.5)."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mt.config import TransformerConfig
from mt.models.layers import Dropout, Linear
from mt.tokenizer.tokenizer import PAD


class Positions(nn.Module):
    """Base class of position encodings: vectors that are added to token embeddings.

    ``forward(start, length)`` returns the vectors (length, D) of positions start … start + length - 1.
    """

    max_length: int | None = None
    """The maximum length of a sequence; None if there is no limit."""


def sinusoidal_positions(length: int, width: int) -> Tensor:
    """Return the table PE (length, width) with PE(pos, 2i) = sin(pos / 10000^(2i/width)) and PE(pos, 2i+1) = cos of the
    same angle, on the CPU even if torch's default device is another one."""
    position = torch.arange(length, dtype=torch.float64, device="cpu").unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64, device="cpu") * (-math.log(10000.0) / width))
    encoding = torch.empty(length, width, dtype=torch.float64, device="cpu")
    encoding[:, 0::2] = torch.sin(position * frequency)
    encoding[:, 1::2] = torch.cos(position * frequency)
    return encoding.float()


class SinusoidalPositions(Positions):
    """Fixed sinusoidal position vectors, as in the paper, for sentences of any length."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoidal_positions(256, width), persistent=False)
        self.table: Tensor

    def forward(self, start: int, length: int) -> Tensor:
        table = self.table
        if start + length > len(table):
            # Other threads may replace self.table, but not the local variable.
            self.table = table = sinusoidal_positions(2 * (start + length), self.width).to(table.device)
        return table[start : start + length]


class LearnedPositions(Positions):
    """One learned vector for each of ``max_positions`` positions."""

    def __init__(self, width: int, max_positions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, width))
        nn.init.normal_(self.weight, std=width**-0.5)
        self.max_length = max_positions

    def forward(self, start: int, length: int) -> Tensor:
        """Return the vectors (length, D) of positions start … start + length - 1.

        Raises:
            IndexError: A position has no learned vector.
        """
        if start + length > len(self.weight):
            raise IndexError(f"sequence of {start + length} positions, but model.max_positions={self.max_length}")
        return self.weight[start : start + length]


POSITIONS: dict[str, Callable[[TransformerConfig], Positions]] = {
    "sinusoidal": lambda config: SinusoidalPositions(config.width),
    "learned": lambda config: LearnedPositions(config.width, config.max_positions),
}
"""Value of ``model.positions`` → constructor of the position encoding."""


class TokenEmbedding(nn.Embedding):
    """Token embeddings. With ``scaled``, they are multiplied by √width, to be about as large as position vectors."""

    cutoff = 0.0
    """Probability that the vector of a token is set to zero; ``cut_embeddings`` changes it."""

    def __init__(self, vocabulary_size: int, width: int, scaled: bool = True) -> None:
        super().__init__(vocabulary_size, width, padding_idx=PAD)
        self.scale = math.sqrt(width) if scaled else 1.0
        nn.init.normal_(self.weight, std=width**-0.5)
        with torch.no_grad():
            self.weight[PAD].zero_()

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scaled vectors (B, T, D) of tokens (B, T), with ``cutoff``."""
        vectors = super().forward(tokens) * self.scale
        if self.cutoff == 0:
            return vectors
        return vectors * (torch.rand(*tokens.shape, 1, device=vectors.device) >= self.cutoff)


def token_embeddings(
    source: int, target: int, width: int, shared: bool, scaled: bool = True
) -> tuple[TokenEmbedding, TokenEmbedding]:
    """Create the source and the target embedding, or a single one that is returned twice.

    Args:
        source: Size of the source vocabulary.
        target: Size of the target vocabulary.
        width: Size of the vectors, D.
        shared: Whether both sides share one embedding.
        scaled: Whether vectors are multiplied by √width.
    """
    first = TokenEmbedding(source, width, scaled)
    return first, first if shared else TokenEmbedding(target, width, scaled)


def output_layer(width: int, vocabulary: int, tied_to: TokenEmbedding | None, bias: bool = False) -> Linear:
    """Create an output layer from features to logits.

    Args:
        width: Size of the features, D.
        vocabulary: Size of the target vocabulary, V.
        tied_to: Embedding with which the layer shares its weight (V, D); None for a separate weight.
        bias: Whether the layer has a bias, initialized with zeros.
    """
    layer = Linear(width, vocabulary, bias=bias)
    if bias:
        nn.init.zeros_(layer.bias)
    if tied_to is not None:
        layer.weight = tied_to.weight
    else:
        nn.init.normal_(layer.weight, std=width**-0.5)
    return layer


@contextmanager
def cut_embeddings(model: nn.Module, share: float) -> Iterator[None]:
    """Context manager: embed each source or target token as zeros with probability ``share`` (token cutoff, Shen et al.
    2020)."""
    embeddings = {part for part in model.modules() if isinstance(part, TokenEmbedding)}
    for embedding in embeddings:
        embedding.cutoff = share
    try:
        yield
    finally:
        for embedding in embeddings:
            embedding.cutoff = 0.0


class Embedding(nn.Module):
    """The sum of the token embedding and the position vector, followed by dropout."""

    def __init__(self, tokens: TokenEmbedding, positions: Positions, dropout: float) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        """Map tokens (B, T) at positions start … start + T - 1 to vectors (B, T, D)."""
        return self.dropout(self.tokens(tokens) + self.positions(start, tokens.shape[1]))
