"""Token embeddings and the output layer, which may share one matrix (Vaswani et al. 2017, section 3.4)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mt.models.dropout import Dropout
from mt.models.kernels.linear import Linear
from mt.models.positions import Positions
from mt.text.subwords.tokenizer import PAD


class TokenEmbedding(nn.Embedding):
    """Token embeddings, multiplied by √width if ``scaled``, so that they are about as large as position vectors."""

    cutoff = 0.0
    """Probability with which the vector of a token is set to zero; ``cut_embeddings`` changes it."""

    def __init__(self, vocabulary_size: int, width: int, scaled: bool = True) -> None:
        super().__init__(vocabulary_size, width, padding_idx=PAD)
        self.scale = math.sqrt(width) if scaled else 1.0
        nn.init.normal_(self.weight, std=width**-0.5)
        with torch.no_grad():
            self.weight[PAD].zero_()

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors (B, T, D) of tokens (B, T), scaled and with ``cutoff``."""
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
        tied_to: Embedding whose weight (V, D) the layer shares; None for a weight of its own.
        bias: Whether the layer has a bias, zero at first.
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
