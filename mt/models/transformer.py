"""The Transformer encoder-decoder (Vaswani et al. 2017), pre-norm (Xiong et al. 2020) or post-norm.

Shapes: B sentences, K rows (beams) of each, N = B·K rows, S source and T target positions, D width.
"""

from typing import cast

import torch
from torch import Tensor, nn

from mt.config import TransformerConfig
from mt.models.attention import KeyValue, MultiHeadAttention, padding_mask
from mt.models.dropout import Dropout, ReluDropout
from mt.models.embedding import Embedding, output_layer, token_embeddings
from mt.models.kernels.linear import Linear
from mt.models.positions import POSITIONS
from mt.models.seq2seq import Memory, Seq2Seq, State
from mt.text.subwords.tokenizer import PAD, UNK


class FeedForward(nn.Module):
    """The feed-forward sublayer max(0, x W₁ + b₁) W₂ + b₂ (section 3.3), or the same with GELU or SiLU instead of
    ReLU."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.inner = Linear(config.width, config.feed_forward)
        self.outer = Linear(config.feed_forward, config.width)
        self.activation = (
            ReluDropout(config.dropout)
            if config.activation == "relu"
            else nn.Sequential(nn.GELU() if config.activation == "gelu" else nn.SiLU(), Dropout(config.dropout))
        )
        for layer in (self.inner, self.outer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return self.outer(self.activation(self.inner(x)))


class Residual(nn.Module):
    """The residual connection around a sublayer f, with dropout on the output of f.

    ``leave(x, f(enter(x)))`` is x + f(norm(x)) with pre-norm and norm(x + f(x)) with post-norm.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm == "pre"

    def enter(self, x: Tensor) -> Tensor:
        """Return the input (B, T, D) of the sublayer for x (B, T, D)."""
        return self.norm(x) if self.norm_first else x

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sum (B, T, D) of x (B, T, D) and the sublayer's output y (B, T, D), normalised if post-norm."""
        x = x + self.dropout(y)
        return x if self.norm_first else self.norm(x)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward sublayer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config.width, config.heads, config.attention_dropout)
        self.feed_forward = FeedForward(config)
        self.around_attention = Residual(config)
        self.around_feed_forward = Residual(config)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, S, D), mask (B, 1, 1, S) → (B, S, D)"""
        y = self.around_attention.enter(x)
        x = self.around_attention.leave(x, self.self_attention(y, self.self_attention.keys_and_values(y), mask))

        y = self.around_feed_forward.enter(x)
        return self.around_feed_forward.leave(x, self.feed_forward(y))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the memory, then the feed-forward sublayer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config.width, config.heads, config.attention_dropout)
        self.cross_attention = MultiHeadAttention(config.width, config.heads, config.attention_dropout)
        self.feed_forward = FeedForward(config)
        self.around_self_attention = Residual(config)
        self.around_cross_attention = Residual(config)
        self.around_feed_forward = Residual(config)

    def forward(
        self, x: Tensor, memory: KeyValue, memory_mask: Tensor, past: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        """Run the layer on whole targets, or on the one position that follows ``past``.

        Args:
            x: (N, T, D). Without ``past`` these are all T positions, which attend to each other under the causal mask;
                with ``past``, T is 1.
            memory: The keys and values (B, H, S, d) of the memory.
            memory_mask: (B, 1, 1, S), False where a source position is padding.
            past: The self-attention's keys and values of the earlier positions.

        Returns:
            (N, T, D), and the self-attention's keys and values up to and including x.
        """
        y = self.around_self_attention.enter(x)
        own = self.self_attention.keys_and_values(y)
        if past is not None:
            own = tuple(torch.cat(parts, dim=2) for parts in zip(past, own, strict=True))
        x = self.around_self_attention.leave(x, self.self_attention(y, own, causal=past is None))

        y = self.around_cross_attention.enter(x)
        # All rows of a sentence become queries to its one memory, which need not be repeated for each of them.
        queries = y.reshape(len(memory_mask), -1, y.shape[-1])  # (B, K·T, D)
        x = self.around_cross_attention.leave(x, self.cross_attention(queries, memory, memory_mask).view_as(y))

        y = self.around_feed_forward.enter(x)
        return self.around_feed_forward.leave(x, self.feed_forward(y)), own


class Encoder(nn.Module):
    def __init__(self, config: TransformerConfig, embedding: Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = cast(
            "list[EncoderLayer]", nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        )
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()

    def forward(self, source: Tensor) -> Tensor:
        """Encode source tokens (B, S) as features (B, S, D)."""
        x, mask = self.embedding(source), padding_mask(source)
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    def __init__(self, config: TransformerConfig, embedding: Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = cast(
            "list[DecoderLayer]", nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        )
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.starts_with_pad = config.decoder_start == "pad"

    def start(self, memory: Memory) -> State:
        """Return the state before the first token. Its tensors are the keys and values (·, H, ·, d) of each layer, and
        the mask (B, 1, 1, S)."""
        keys_and_values = [layer.cross_attention.keys_and_values(memory.features) for layer in self.layers]
        return State(len(memory.mask), [], keys_and_values, memory.mask[:, None, None])

    def forward(self, target: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (N, T) that follow the state. Returns features (N, T, D) and the state after the tokens."""
        past = state.own
        if self.starts_with_pad and not past:
            target = torch.cat([torch.full_like(target[:, :1], PAD), target[:, 1:]], dim=1)
        x = self.embedding(target, past[0][0].shape[2] if past else 0)
        own: list[KeyValue] = []
        for depth, layer in enumerate(self.layers):
            x, keys_and_values = layer(x, state.memory[depth], state.padding, past[depth] if past else None)
            own.append(keys_and_values)
        return self.norm(x), State(state.rows, own, state.memory, state.padding)


class Transformer(Seq2Seq):
    """Encoder and decoder stacks over token embeddings.

    With ``config.tie_embeddings``, the output layer has the same weight as the target embedding and, if the vocabulary
    is joint, as the source embedding.
    """

    def __init__(
        self,
        config: TransformerConfig,
        source_vocabulary: int,
        target_vocabulary: int,
        joint_vocabulary: bool,
    ) -> None:
        super().__init__()
        shared = joint_vocabulary and config.tie_embeddings
        source_tokens, target_tokens = token_embeddings(
            source_vocabulary, target_vocabulary, config.width, shared, config.scale_embeddings
        )
        positions = POSITIONS[config.positions]
        self.encoder = Encoder(config, Embedding(source_tokens, positions(config), config.dropout))
        self.decoder = Decoder(config, Embedding(target_tokens, positions(config), config.dropout))
        tied_to = target_tokens if config.tie_embeddings else None
        self.output = output_layer(config.width, target_vocabulary, tied_to, config.output_bias)

    @property
    def never_written(self) -> list[int]:
        return [PAD, UNK] if self.decoder.starts_with_pad else super().never_written

    @property
    def max_length(self) -> int | None:
        return self.encoder.embedding.positions.max_length

    @property
    def hidden_matrices(self) -> list[nn.Parameter]:
        layers = [*self.encoder.layers, *self.decoder.layers]
        return [parameter for layer in layers for parameter in layer.parameters() if parameter.ndim == 2]

    @property
    def blocks(self) -> list[nn.Module]:
        attentions = [layer.cross_attention for layer in self.decoder.layers]
        # The memory is projected for all layers before the first of them runs, outside their ``forward``: so these
        # projections are blocks of their own.
        memory = [part for attention in attentions for part in (attention.key, attention.value)]
        return [*self.encoder.layers, *memory, *self.decoder.layers]
