"""The Transformer encoder-decoder (Vaswani et al. 2017), pre-norm (Xiong et al. 2020) or post-norm.

Shapes: B sentences, K hypotheses per sentence, N = B·K hypotheses, S source and T target positions, D width.
"""

from typing import cast

import torch
from torch import Tensor, nn

from mt.config import TransformerConfig
from mt.models.attention import KeyValue, MultiHeadAttention
from mt.models.embedding import POSITIONS, Embedding, output_layer, token_embeddings
from mt.models.layers import Dropout, Linear, ReluDropout, initialize
from mt.models.seq2seq import Memory, Seq2Seq, State
from mt.tokenizer.tokenizer import PAD, UNK

ACTIVATIONS = {"gelu": nn.GELU, "silu": nn.SiLU}
"""Value of ``model.activation`` except relu → class of the activation."""


class FeedForward(nn.Module):
    """The feed-forward sublayer max(0, x W₁ + b₁) W₂ + b₂ (section 3.3). GELU or SiLU can replace ReLU."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.inner = Linear(config.width, config.feed_forward)
        self.outer = Linear(config.feed_forward, config.width)
        self.activation: nn.Module = ReluDropout(config.dropout)
        if config.activation != "relu":
            self.activation = nn.Sequential(ACTIVATIONS[config.activation](), Dropout(config.dropout))
        initialize(self.inner, self.outer)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return self.outer(self.activation(self.inner(x)))


class Residual(nn.Module):
    """The residual connection around a sublayer f, with LayerNorm, and dropout on the output of f.

    ``add_output(x, f(sublayer_input(x)))`` is x + f(norm(x)) with pre-norm and norm(x + f(x)) with post-norm.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm == "pre"

    def sublayer_input(self, x: Tensor) -> Tensor:
        """Return the input (B, T, D) of the sublayer for x (B, T, D): LayerNorm of x if pre-norm, otherwise x."""
        return self.norm(x) if self.norm_first else x

    def add_output(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x + dropout(y) for the sublayer's output y, all (B, T, D). If post-norm, the sum is normalized."""
        x = x + self.dropout(y)
        return x if self.norm_first else self.norm(x)


class EncoderLayer(nn.Module):
    """An encoder layer: self-attention, then the feed-forward sublayer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config.width, config.heads, config.attention_dropout)
        self.feed_forward = FeedForward(config)
        self.around_attention = Residual(config)
        self.around_feed_forward = Residual(config)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map x (B, S, D) to (B, S, D). The mask (B, 1, 1, S) is False where a position is padding."""
        y = self.around_attention.sublayer_input(x)
        x = self.around_attention.add_output(x, self.self_attention(y, self.self_attention.keys_and_values(y), mask))

        y = self.around_feed_forward.sublayer_input(x)
        return self.around_feed_forward.add_output(x, self.feed_forward(y))


class DecoderLayer(nn.Module):
    """A decoder layer: causal self-attention, cross-attention to the memory, then the feed-forward sublayer."""

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
        """Run the layer on all positions of the targets at once, or on the one position after ``past``.

        Args:
            x: (N, T, D). Without ``past``, these are all T positions, under the causal mask; with ``past``, T is 1.
            memory: Keys and values of the encoder memory, each (B, H, S, d).
            memory_mask: (B, 1, 1, S), False where a source position is padding.
            past: Self-attention's keys and values of the earlier positions, each (N, H, ·, d).

        Returns:
            The output (N, T, D), and self-attention's keys and values of all positions up to and including x.
        """
        y = self.around_self_attention.sublayer_input(x)
        own = self.self_attention.keys_and_values(y)
        if past is not None:
            own = tuple(torch.cat(parts, dim=2) for parts in zip(past, own, strict=True))
        x = self.around_self_attention.add_output(x, self.self_attention(y, own, causal=past is None))

        y = self.around_cross_attention.sublayer_input(x)
        # All hypotheses of a sentence become queries to its memory, so the memory need not be repeated.
        queries = y.reshape(len(memory_mask), -1, y.shape[-1])  # (B, K·T, D)
        x = self.around_cross_attention.add_output(x, self.cross_attention(queries, memory, memory_mask).view_as(y))

        y = self.around_feed_forward.sublayer_input(x)
        return self.around_feed_forward.add_output(x, self.feed_forward(y)), own


class Encoder(nn.Module):
    """Embedding and a stack of encoder layers, with a final LayerNorm if pre-norm."""

    def __init__(self, config: TransformerConfig, embedding: Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = cast(
            "list[EncoderLayer]", nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        )
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()

    def forward(self, source: Tensor) -> Tensor:
        """Encode source tokens (B, S) as features (B, S, D)."""
        x, mask = self.embedding(source), (source != PAD)[:, None, None]
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """Embedding and a stack of decoder layers, with a final LayerNorm if pre-norm."""

    def __init__(self, config: TransformerConfig, embedding: Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = cast(
            "list[DecoderLayer]", nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        )
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.starts_with_pad = config.decoder_start == "pad"

    def init_state(self, memory: Memory) -> State:
        """Return the state before the first token, with one hypothesis per sentence.

        It holds the keys and values (B, H, S, d) of each cross-attention and the padding mask (B, 1, 1, S). Later
        states also hold the keys and values (N, H, ·, d) of each self-attention.
        """
        keys_and_values = [layer.cross_attention.keys_and_values(memory.features) for layer in self.layers]
        return State(len(memory.mask), [], keys_and_values, memory.mask[:, None, None])

    def forward(self, target: Tensor, state: State) -> tuple[Tensor, State]:
        """Read the next tokens (N, T). Return features (N, T, D), which predict the token after each, and the state."""
        past = state.layer_states
        if self.starts_with_pad and not past:
            target = torch.cat([torch.full_like(target[:, :1], PAD), target[:, 1:]], dim=1)
        x = self.embedding(target, past[0][0].shape[2] if past else 0)
        own: list[KeyValue] = []
        for depth, layer in enumerate(self.layers):
            x, keys_and_values = layer(x, state.memory[depth], state.padding, past[depth] if past else None)
            own.append(keys_and_values)
        return self.norm(x), State(state.num_hypotheses, own, state.memory, state.padding)


class Transformer(Seq2Seq):
    """The Transformer: encoder, decoder, embeddings and output layer.

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
    def suppressed_tokens(self) -> list[int]:
        return [PAD, UNK] if self.decoder.starts_with_pad else super().suppressed_tokens

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
        # The memory is projected for all layers before the first one runs, outside of their ``forward``, so these
        # projections are separate blocks.
        memory = [part for attention in attentions for part in (attention.key, attention.value)]
        return [*self.encoder.layers, *memory, *self.decoder.layers]
