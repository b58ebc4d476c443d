"""The forward pass of a Transformer on packed rows: all tokens of a batch one after another, padded only to a static
number of rows.

Parameters, options and, up to rounding, results are those of ``mt.models.transformer``; it launches a third of the
kernels.

Shapes: N source and M target tokens of all sentences of a batch, D width, H heads, L decoder layers. In attention, N
are query rows and M key rows, d is the width of a head, B the number of sentences. The offsets of a side are an int32
tensor (B + 1,): sentence b consists of rows offsets[b] … offsets[b + 1] - 1. Every row belongs to a sentence, and a
sentence may be empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.models.attention import MultiHeadAttention
from mt.models.embedding import Embedding, LearnedPositions
from mt.models.transformer import FeedForward, Residual, Transformer
from mt.tokenizer.tokenizer import PAD


@torch.library.custom_op("mt::packed_attention", mutates_args=())
def packed_attention(
    query: Tensor, key_value: Tensor, query_offsets: Tensor, key_offsets: Tensor, longest: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """Compute softmax(QKᵀ / √d) V separately for each sentence (Vaswani et al. 2017, section 3.2.1).

    This is one opaque, differentiable operator for torch.compile. It needs a GPU with Triton;
    ``tests/packed_attention.py`` registers an implementation for CPUs.

    Args:
        query: (N, H, d).
        key_value: (M, 2, H, d), keys and values. Both may be parts of wider rows.
        query_offsets, key_offsets: The offsets of the queries and of the keys (B + 1,).
        longest: The maximum number of queries or keys of a sentence.
        causal: Whether a query attends only to keys up to its own position in the sentence.

    Returns:
        The context (N, H, d), and the base-2 logarithm of the sum of the exponentials of each query's scores (H, N).
    """
    from mt.models import triton_kernels

    out, lse = query.new_empty(query.shape), query.new_empty(query.shape[1], len(query), dtype=torch.float32)
    key, value = key_value.unbind(1)
    tensors, strides = (query, key, value, out, lse), (query.stride(0), key.stride(0))
    triton_kernels.launch(triton_kernels.attention, tensors, (query_offsets, key_offsets), strides, longest, causal)
    return out, lse


@torch.library.custom_op("mt::packed_attention_gradients", mutates_args=())
def packed_attention_gradients(
    gradient: Tensor, query: Tensor, key_value: Tensor, out: Tensor, lse: Tensor,
    query_offsets: Tensor, key_offsets: Tensor, longest: int, causal: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of ``packed_attention``: those of its queries (N, H, d) and of keys and values (M, 2, H, d).

    Args:
        gradient: The gradient of the context (N, H, d).
        query, key_value, query_offsets, key_offsets, longest, causal: The arguments of ``packed_attention``.
        out, lse: The results of ``packed_attention``.
    """
    from mt.models import triton_kernels

    dq, d_key_value = query.new_empty(query.shape), key_value.new_empty(key_value.shape)
    (key, value), (dk, dv) = key_value.unbind(1), d_key_value.unbind(1)
    tensors = query, key, value, out, gradient.contiguous(), lse, dq, dk, dv
    strides = query.stride(0), key.stride(0), dk.stride(0)
    triton_kernels.launch(
        triton_kernels.attention_gradients, tensors, (query_offsets, key_offsets), strides, longest, causal
    )
    return dq, d_key_value


@packed_attention.register_fake
def _(query: Tensor, key_value: Tensor, query_offsets: Tensor, key_offsets: Tensor, longest: int, causal: bool) -> Any:
    rows, heads, _ = query.shape
    return query.new_empty(query.shape), query.new_empty(heads, rows, dtype=torch.float32)


@packed_attention_gradients.register_fake
def _(gradient: Tensor, query: Tensor, key_value: Tensor, *others: object) -> Any:
    return query.new_empty(query.shape), key_value.new_empty(key_value.shape)


def _save(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    query, key_value, query_offsets, key_offsets, ctx.longest, ctx.causal = inputs
    ctx.set_materialize_grads(False)  # the second output has no gradient
    ctx.save_for_backward(query, key_value, *output, query_offsets, key_offsets)


def _backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    gradients = packed_attention_gradients(gradient, *ctx.saved_tensors, ctx.longest, ctx.causal)
    return *gradients, None, None, None, None


packed_attention.register_autograd(_backward, setup_context=_save)


class ParameterStacks:
    """Copies of a model's parameters in a few tensors (stacks), one for each shape and kind.

    A few kernels then cast, clip and sum all parameters. On a GPU, a kernel for each parameter would take longer to
    launch than to compute. The parameters themselves do not change, so optimizer, checkpoints and export are not
    affected.
    """

    def __init__(self, model: nn.Module, products: Sequence[Sequence[nn.Linear]]) -> None:
        """
        Args:
            model: The model.
            products: Lists of linear layers with biases that have the same input, which are computed as one product.
        """
        groups: list[list[Tensor]] = []
        for layers in products:
            groups += [layer.weight for layer in layers], [layer.bias for layer in layers]
        grouped = {parameter for group in groups for parameter in group}
        groups += [[parameter] for parameter in model.parameters() if parameter not in grouped]
        full_precision = {
            parameter
            for part in model.modules()
            if not isinstance(part, nn.Linear)
            for parameter in part.parameters(recurse=False)
        }
        self._stacks: dict[tuple, list[list[Tensor]]] = {}
        """(shape, whether the parameters are used in fp32) → the groups of parameters in this stack, in order."""
        for group in groups:
            self._stacks.setdefault((group[0].shape, group[0] in full_precision), []).append(group)
        self.gradients = [torch.zeros_like(stack) for stack in self.stacked_parameters()]
        """The gradient of each stack, a sum."""
        parameters = [parameter for groups in self._stacks.values() for group in groups for parameter in group]
        parts = [part for gradient in self.gradients for part in gradient.unbind()]
        self.parameter_gradients = list(zip(parameters, parts, strict=True))
        """Each parameter with its part of ``gradients``."""

    def stacked_parameters(self) -> list[Tensor]:
        """Return copies of the parameters, one tensor for each stack. Gradients are taken with respect to them."""
        return [
            torch.stack([parameter.detach() for group in groups for parameter in group]).requires_grad_()
            for groups in self._stacks.values()
        ]

    def weights(self, stacked: Sequence[Tensor], precision: torch.dtype) -> dict[Tensor, Tensor]:
        """Return the weights of the forward pass by their parameter, or by the first one of a product.

        The weights (O, I) of a product are one above the other. Parameters of linear layers are in ``precision``, and
        all others in fp32.

        Args:
            stacked: From ``stacked_parameters``.
            precision: The number format of matrix products.
        """
        weights: dict[Tensor, Tensor] = {}
        for ((_, in_fp32), groups), parameters in zip(self._stacks.items(), stacked, strict=True):
            stack = parameters if in_fp32 else parameters.to(precision)
            for group, part in zip(groups, stack.split([len(group) for group in groups]), strict=True):
                weights[group[0]] = part.flatten(0, 1)
        return weights


@dataclass(frozen=True)
class PackedSide:
    """The sources, or the targets, of a batch of B sentence pairs."""

    tokens: Tensor  # (N,) int32
    positions: Tensor  # (N,) int32, the position of each token in its sentence
    offsets: Tensor  # (B + 1,) int32, as for ``packed_attention``
    longest: int
    """The maximum number of tokens of a sentence on either side."""


@dataclass
class PackedTransformer:
    """Computes the features of packed rows with the parameters of a Transformer."""

    model: Transformer
    """The model. It must not have dropout of attention weights."""
    precision: torch.dtype
    """The number format of matrix products."""

    def __post_init__(self) -> None:
        self.stacks = ParameterStacks(self.model, _products(self.model))
        self._weights: dict[Tensor, Tensor] = {}

    def use(self, stacked: list[Tensor]) -> tuple[Tensor, Tensor | None]:
        """Set the weights of the next calls of ``features``, which ``ParameterStacks.stacked_parameters`` returned.

        Returns:
            Weight (V, D) and bias (V,) of the output layer; None if it has no bias.
        """
        self._weights = self.stacks.weights(stacked, self.precision)
        output = self.model.output
        return self._weights[output.weight].to(self.precision), self._weights.get(output.bias)

    def features(self, source: PackedSide, target: PackedSide) -> Tensor:
        """Return the decoder features (M, D) that predict the token after each target token."""
        encoder, decoder = self.model.encoder, self.model.decoder
        x = self._embed(encoder.embedding, source)
        for layer in encoder.layers:
            x = self._self_attention(layer.around_attention, layer.self_attention, x, source, causal=False)
            x = self._feed_forward(layer.around_feed_forward, layer.feed_forward, x)
        memory = self._layer_norm(encoder.norm, x).to(self.precision)
        cross = [layer.cross_attention for layer in decoder.layers]
        keys_and_values = self._product(cross[0].key, memory).unflatten(1, (len(cross), 2, cross[0].heads, -1))

        x = self._embed(decoder.embedding, target)
        for layer, key_value in zip(decoder.layers, keys_and_values.unbind(1), strict=True):
            x = self._self_attention(layer.around_self_attention, layer.self_attention, x, target, causal=True)

            attention = layer.cross_attention
            query = self._product(attention.query, self._input(layer.around_cross_attention, x))
            query = query.unflatten(1, (attention.heads, -1))
            y, _ = packed_attention(query, key_value, target.offsets, source.offsets, target.longest, causal=False)
            x = self._output(layer.around_cross_attention, x, self._product(attention.output, y.flatten(1)))

            x = self._feed_forward(layer.around_feed_forward, layer.feed_forward, x)
        return self._layer_norm(decoder.norm, x).to(self.precision)

    def _embed(self, embedding: Embedding, side: PackedSide) -> Tensor:
        """Return the sum of token embeddings and position vectors of a side (N, D), with cutoff and dropout."""
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
        return (self._layer_norm(residual.norm, x) if residual.norm_first else x).to(self.precision)

    def _output(self, residual: Residual, x: Tensor, y: Tensor) -> Tensor:
        x = x + residual.dropout(y)
        return x if residual.norm_first else self._layer_norm(residual.norm, x)

    def _layer_norm(self, norm: nn.Module, x: Tensor) -> Tensor:
        if not isinstance(norm, nn.LayerNorm):  # post-norm layers need no norm after the last one
            return x
        return functional.layer_norm(x, x.shape[-1:], self._weights[norm.weight], self._weights[norm.bias], norm.eps)

    def _product(self, layer: nn.Linear, x: Tensor) -> Tensor:
        """Multiply x by the weights of a layer, and of all layers that are computed as one product with it."""
        return functional.linear(x, self._weights[layer.weight], self._weights[layer.bias])


def _products(model: Transformer) -> list[list[nn.Linear]]:
    """Return lists of layers with the same input: query, key and value of each self-attention, and key and value of all
    cross-attentions."""
    layers = [*model.encoder.layers, *model.decoder.layers]
    attentions = [layer.self_attention for layer in layers]
    cross = [part for x in model.decoder.layers for part in (x.cross_attention.key, x.cross_attention.value)]
    return [*([attention.query, attention.key, attention.value] for attention in attentions), cross]
