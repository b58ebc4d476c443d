"""The architectures and their sizes."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from mt.config.fields import For, Layers, NotABool, Probability, Section, Size


class TransformerConfig(Section):
    """Encoder and decoder made of attention layers (Vaswani et al. 2017; the letters in brackets are the paper's)."""

    architecture: Literal["transformer"]
    width: Size = 192
    """The size of every vector between layers (d_model)."""
    feed_forward: Size = 768
    """The inner size of the feed-forward blocks (d_ff)."""
    heads: Size = 4
    """The number of attention heads (h). It must divide width."""
    encoder_layers: Layers = 3
    """How many layers read the source."""
    decoder_layers: Layers = 3
    """How many layers write the target."""
    dropout: Probability = 0.1
    """Dropout on embeddings, residual branches and the feed-forward activation (P_drop)."""
    attention_dropout: Probability = 0.0
    """Dropout on the attention weights."""
    activation: Literal["relu", "gelu", "silu"] = "relu"
    """The activation in the feed-forward blocks."""
    norm: Literal["pre", "post"] = "pre"
    """LayerNorm before each block (pre, which trains more steadily) or after it (post, as in the paper)."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """How positions are encoded."""
    max_positions: Annotated[int, NotABool, Field(ge=1, le=1_000_000), For("positions", "learned")] = 512
    """The longest sequence that learned positions can take."""
    tie_embeddings: bool = True
    """Use the target embedding as the output matrix, and with a joint vocabulary as the source embedding too."""
    scale_embeddings: bool = True
    """Multiply embeddings by √width, as in the paper. This and the next two are for models that come from MarianMT."""
    output_bias: bool = False
    """Add a learned bias to the score of each piece."""
    decoder_start: Literal["bos", "pad"] = "bos"
    """What the decoder reads first: a piece of its own (bos), or the one that also pads (pad), as in MarianMT."""

    def contradictions(self) -> Iterator[str]:
        if self.width % self.heads:
            divisors = [n for n in range(1, self.width + 1) if self.width % n == 0]
            below, above = ([n for n in divisors if sign * n > sign * self.heads] for sign in (-1, 1))
            nearest = " or ".join(map(str, below[-1:] + above[:1]))
            yield f"heads={self.heads} does not divide width={self.width}; nearest that does: {nearest}"
        if self.positions == "sinusoidal" and self.width % 2:
            yield f"sinusoidal positions need an even width, not {self.width}"


class RNNAttentionConfig(Section):
    """A bidirectional LSTM encoder, and an LSTM decoder that attends to it (Bahdanau et al. 2015, with what later made
    recurrent models strong; the letters in brackets are the paper's)."""

    architecture: Literal["rnn_attention"]
    width: Size = 192
    """The size of embeddings (m) and of the readout (l)."""
    hidden: Size = 352
    """The size of the decoder's states (n). Each of the encoder's two directions has half of it."""
    encoder_layers: Layers = 2
    """How many bidirectional layers read the source."""
    decoder_layers: Layers = 1
    """How many layers write the target."""
    attention: Literal["additive", "dot"] = "additive"
    """additive (Bahdanau et al. 2015), or dot (Luong et al. 2015, scaled)."""
    dropout: Probability = 0.1
    """Dropout on embeddings, on what each layer hands on (the memory included), and on the readout."""
    variational_dropout: bool = False
    """true: one dropout mask for all positions of a sentence (Gal & Ghahramani 2016); false: a new mask at each."""
    layer_norm: bool = True
    """LayerNorm after every encoder layer and after the readout (Ba et al. 2016)."""
    residual: bool = True
    """Residual connections around every layer but the first (Wu et al. 2016, section 3.1)."""
    readout: bool = True
    """Predict from state, context and embedding together (appendix A.2.2). false: from the state alone."""
    tie_embeddings: bool = True
    """Use the target embedding as the output matrix, and with a joint vocabulary as the source embedding too."""

    def contradictions(self) -> Iterator[str]:
        if self.hidden % 2:
            yield f"hidden={self.hidden} is shared by two directions: take {self.hidden + 1}"
        if self.tie_embeddings and not self.readout and self.hidden != self.width:
            yield (
                f"tie_embeddings=true without a readout needs hidden={self.width}, the embeddings' width, "
                f"not {self.hidden}"
            )


ModelConfig = Annotated[TransformerConfig | RNNAttentionConfig, Field(discriminator="architecture")]
