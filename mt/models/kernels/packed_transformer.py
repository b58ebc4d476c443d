"""The forward pass of a Transformer on packed rows: sentences one after another, without padding, in one static shape.

It has the parameters, options and results of ``mt.models.transformer``, up to rounding, and a third of its kernels.

Shapes: N source and M target tokens of all sentences of a batch, D width, H heads, L decoder layers.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.models.attention import MultiHeadAttention
from mt.models.embedding import Embedding
from mt.models.kernels.packed_attention import packed_attention
from mt.models.kernels.parameter_stacks import ParameterStacks
from mt.models.positions import LearnedPositions
from mt.models.transformer import FeedForward, Residual, Transformer
from mt.text.subwords.tokenizer import PAD


@dataclass(frozen=True)
class PackedSide:
    """The sources, or the targets, of a batch of B sentence pairs."""

    tokens: Tensor  # (N,) int32
    positions: Tensor  # (N,) int32, the position of each token in its sentence
    offsets: Tensor  # (B + 1,) int32, as for ``packed_attention``
    longest: int
    """The maximum number of tokens of a sentence, on either side."""


class PackedTransformer:
    """Computes the features of packed rows with the parameters of a Transformer."""

    def __init__(self, model: Transformer, precision: torch.dtype) -> None:
        """
        Args:
            model: The model. It must not have dropout of attention weights.
            precision: The number format of matrix products.
        """
        self.model = model
        self.precision = precision
        self.stacks = ParameterStacks(model, _products(model))
        self._weights: dict[Tensor, Tensor] = {}

    def use(self, leaves: list[Tensor]) -> tuple[Tensor, Tensor | None]:
        """Set the weights of the next calls of ``features``, which ``ParameterStacks.leaves`` returned.

        Returns:
            Weight (V, D) and bias (V,) of the output layer; None if it has no bias.
        """
        self._weights = self.stacks.weights(leaves, self.precision)
        output = self.model.output
        return self._weights[output.weight].to(self.precision), self._weights.get(output.bias)

    def features(self, source: PackedSide, target: PackedSide) -> Tensor:
        """Return the decoder features (M, D) that predict the token after each target token."""
        encoder, decoder = self.model.encoder, self.model.decoder
        x = self._embedded(encoder.embedding, source)
        for layer in encoder.layers:
            x = self._self_attention(layer.around_attention, layer.self_attention, x, source, causal=False)
            x = self._feed_forward(layer.around_feed_forward, layer.feed_forward, x)
        memory = self._normalised(encoder.norm, x).to(self.precision)
        cross = [layer.cross_attention for layer in decoder.layers]
        keys_and_values = self._product(cross[0].key, memory).unflatten(1, (len(cross), 2, cross[0].heads, -1))

        x = self._embedded(decoder.embedding, target)
        for layer, key_value in zip(decoder.layers, keys_and_values.unbind(1), strict=True):
            x = self._self_attention(layer.around_self_attention, layer.self_attention, x, target, causal=True)

            attention = layer.cross_attention
            query = self._product(attention.query, self._input(layer.around_cross_attention, x))
            query = query.unflatten(1, (attention.heads, -1))
            y, _ = packed_attention(query, key_value, target.offsets, source.offsets, target.longest, causal=False)
            x = self._output(layer.around_cross_attention, x, self._product(attention.output, y.flatten(1)))

            x = self._feed_forward(layer.around_feed_forward, layer.feed_forward, x)
        return self._normalised(decoder.norm, x).to(self.precision)

    def _embedded(self, embedding: Embedding, side: PackedSide) -> Tensor:
        tokens, positions = embedding.tokens, embedding.positions
        ids = side.tokens
        if embedding is self.model.decoder.embedding and self.model.decoder.starts_with_pad:
            ids = ids.where(side.positions > 0, PAD)
        x = functional.embedding(ids, self._weights[tokens.weight], padding_idx=PAD) * tokens.scale
        if tokens.cutoff:
            x = x * (torch.rand(len(x), 1, device=x.device) >= tokens.cutoff)
        if isinstance(positions, LearnedPositions):
            table = self._weights[positions.weight]
        else:
            table = positions(0, side.longest)
        return embedding.dropout(x + functional.embedding(side.positions, table))

    def _self_attention(
        self, residual: Residual, attention: MultiHeadAttention, x: Tensor, side: PackedSide, causal: bool
    ) -> Tensor:
        qkv = self._product(attention.query, self._input(residual, x)).unflatten(1, (3, attention.heads, -1))
        query, key_value = qkv.split([1, 2], dim=1)
        y, _ = packed_attention(query.squeeze(1), key_value, side.offsets, side.offsets, side.longest, causal)
        return self._output(residual, x, self._product(attention.output, y.flatten(1)))

    def _feed_forward(self, residual: Residual, feed_forward: FeedForward, x: Tensor) -> Tensor:
        y = feed_forward.activation(self._product(feed_forward.inner, self._input(residual, x)))
        return self._output(residual, x, self._product(feed_forward.outer, y))

    def _input(self, residual: Residual, x: Tensor) -> Tensor:
        return (self._normalised(residual.norm, x) if residual.norm_first else x).to(self.precision)

    def _output(self, residual: Residual, x: Tensor, y: Tensor) -> Tensor:
        x = x + residual.dropout(y)
        return x if residual.norm_first else self._normalised(residual.norm, x)

    def _normalised(self, norm: nn.Module, x: Tensor) -> Tensor:
        if not isinstance(norm, nn.LayerNorm):  # post-norm layers need no norm after the last one
            return x
        return functional.layer_norm(x, x.shape[-1:], self._weights[norm.weight], self._weights[norm.bias], norm.eps)

    def _product(self, layer: nn.Linear, x: Tensor) -> Tensor:
        """Multiply x with the weights of a layer, and with those of all layers that form a product with it."""
        return functional.linear(x, self._weights[layer.weight], self._weights[layer.bias])


def _products(model: Transformer) -> list[list[nn.Linear]]:
    """Return the layers that have one input: query, key and value of each self-attention, and key and value of all
    cross-attentions."""
    layers = [*model.encoder.layers, *model.decoder.layers]
    attentions = [layer.self_attention for layer in layers]
    cross = [part for x in model.decoder.layers for part in (x.cross_attention.key, x.cross_attention.value)]
    return [*([attention.query, attention.key, attention.value] for attention in attentions), cross]
