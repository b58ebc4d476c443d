"""The settings of each model architecture, and the presets in ``conf/model``."""

from collections.abc import Iterator
from typing import Annotated, Literal

import yaml
from pydantic import Field, TypeAdapter

from mt.config.fields import For, Layers, Probability, Section, Size, Within
from mt.core.installation import CONF

AUTO = "auto"
"""The default of ``model=``. It sets no size, so that ``training.minutes`` may choose one."""
DEFAULT_ARCHITECTURE = "transformer"
"""The architecture of the preset AUTO."""


class TransformerConfig(Section):
    """Transformer encoder and decoder (Vaswani et al. 2017, whose symbols are in brackets)."""

    architecture: Literal["transformer"]
    width: Size = 192
    """Size of embeddings and hidden states (d_model)."""
    feed_forward: Size = 768
    """Inner size of the feed-forward blocks (d_ff)."""
    heads: Size = 4
    """Number of attention heads (h). It must divide width."""
    encoder_layers: Layers = 3
    """Number of encoder layers."""
    decoder_layers: Layers = 3
    """Number of decoder layers."""
    dropout: Probability = 0.1
    """Dropout probability on embeddings, residual branches and the feed-forward activation (P_drop)."""
    attention_dropout: Probability = 0.0
    """Dropout probability on attention weights."""
    activation: Literal["relu", "gelu", "silu"] = "relu"
    """Activation function of the feed-forward blocks: relu, gelu or silu."""
    norm: Literal["pre", "post"] = "pre"
    """Position of LayerNorm: before each block (pre, with which training is more stable) or after it (post, as in the
    paper)."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """Position encoding: sinusoidal or learned."""
    max_positions: Annotated[int, Within(1, 1_000_000), For("positions", "learned")] = 512
    """With positions=learned: the maximum number of tokens in a sequence."""
    tie_embeddings: bool = True
    """Use the target embedding as the output matrix, and with a joint vocabulary as the source embedding too."""
    scale_embeddings: bool = True
    """Multiply embeddings by √width, as in the paper. false: for models from MarianMT."""
    output_bias: bool = False
    """Add a learned bias to the logits. true: for models from MarianMT."""
    decoder_start: Literal["bos", "pad"] = "bos"
    """First token of the decoder's input: the BOS token (bos), or the padding token (pad), for models from MarianMT."""

    def validation_errors(self) -> Iterator[str]:
        if self.width % self.heads:
            divisors = [n for n in range(1, self.width + 1) if self.width % n == 0]
            below, above = ([n for n in divisors if sign * n > sign * self.heads] for sign in (-1, 1))
            nearest = " or ".join(map(str, below[-1:] + above[:1]))
            yield f"heads={self.heads} does not divide width={self.width}; nearest that does: {nearest}"
        if self.positions == "sinusoidal" and self.width % 2:
            yield f"width={self.width}: sinusoidal positions need an even width, such as {self.width + 1}"


class RNNAttentionConfig(Section):
    """Bidirectional LSTM encoder and LSTM decoder with attention (Bahdanau et al. 2015, whose symbols are in brackets,
    with later improvements)."""

    architecture: Literal["rnn_attention"]
    width: Size = 192
    """Size of embeddings (m) and of the readout (l)."""
    hidden: Size = 352
    """Size of the decoder's hidden states (n). Each of the encoder's two directions has half of it."""
    encoder_layers: Layers = 2
    """Number of bidirectional encoder layers."""
    decoder_layers: Layers = 1
    """Number of decoder layers."""
    attention: Literal["additive", "dot"] = "additive"
    """Attention function: additive (Bahdanau et al. 2015) or dot, the scaled dot product (Luong et al. 2015)."""
    dropout: Probability = 0.1
    """Dropout probability on embeddings, on the output of each layer, including the encoder memory, and on the
    readout."""
    variational_dropout: bool = False
    """true: one dropout mask for all positions of a sentence (Gal & Ghahramani 2016). false: a new mask at each."""
    layer_norm: bool = True
    """LayerNorm after every encoder layer and after the readout (Ba et al. 2016)."""
    residual: bool = True
    """Residual connections around every layer but the first (Wu et al. 2016, section 3.1)."""
    readout: bool = True
    """Predict from state, context and embedding together (appendix A.2.2). false: from the state alone."""
    tie_embeddings: bool = True
    """Use the target embedding as the output matrix, and with a joint vocabulary as the source embedding too."""

    def validation_errors(self) -> Iterator[str]:
        if self.hidden % 2:
            yield f"hidden={self.hidden} must be even, half for each direction: take {self.hidden + 1}"
        if self.tie_embeddings and not self.readout and self.hidden != self.width:
            yield f"tie_embeddings=true with readout=false needs equal sizes: set hidden={self.width}, as width"


ModelConfig = Annotated[TransformerConfig | RNNAttentionConfig, Field(discriminator="architecture")]


def model_presets(architecture: str) -> dict[str, ModelConfig]:
    """Return the model of each preset of an architecture by the preset's name.

    AUTO is skipped, and so are presets that are another name of a preset.
    """
    files = [file for file in sorted((CONF / "model").glob("*.yaml")) if file.stem != AUTO]
    values = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}
    own = {name: model for name, model in values.items() if model.get("architecture") == architecture}
    return TypeAdapter(dict[str, ModelConfig]).validate_python(own)
