"""The settings of ``train.py``."""

from collections.abc import Iterator
from pathlib import Path

from mt.config.data import SPLITS, DataConfig, PileConfig, UnsplitConfig, has_explicit_split, single_corpora
from mt.config.decoding import ONE_BEST, DecodingConfig
from mt.config.fields import PathText, RunName, Section, Seed
from mt.config.model import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.config.text import TextConfig
from mt.config.tokenizer import TokenizerConfig
from mt.config.training import TrainingConfig

PACKED_OPTIONS = (
    "architecture", "width", "feed_forward", "heads", "encoder_layers", "decoder_layers", "dropout", "activation",
    "norm", "max_positions", "tie_embeddings", "scale_embeddings", "output_bias", "decoder_start",
)  # fmt: skip
"""The settings of a Transformer of which packed batches allow every value."""
PACKED_VALUES: dict[str, tuple[object, ...]] = {"positions": ("sinusoidal", "learned"), "attention_dropout": (0.0,)}
"""The values that packed batches allow of other settings of a Transformer."""


class TrainConfig(Section):
    """``python train.py``"""

    name: RunName
    """Name of the run, and of its folder. If it is not set: the name of the experiment, or DATA-MODEL."""
    runs: PathText = "runs"
    """Folder that contains the run folders."""
    seed: Seed = 1
    """Random seed for the initial weights, the order of batches, dropout and subword regularization."""
    data: DataConfig
    text: TextConfig = TextConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    choice: PathText | None = None
    """Run folder to take the settings from that training.minutes chose there, so that both runs can be compared. null:
    this run chooses its own."""

    @property
    def folder(self) -> Path:
        """The run folder."""
        return Path(self.runs) / self.name

    def contradictions(self) -> Iterator[str]:
        has_dropout = self.model.dropout or getattr(self.model, "attention_dropout", 0)
        if self.training.batching == "packed" and (reason := why_not_packed(self.model, self.training.shard)):
            yield f"training.batching=packed {reason}: take padded"
        if self.training.objective == "r_drop" and not has_dropout:
            yield "training.objective=r_drop compares two dropout masks: set model.dropout > 0"
        optimizer = self.training.optimizer
        if isinstance(self.model, RNNAttentionConfig):
            if self.model.variational_dropout and not self.model.dropout:
                yield "model.variational_dropout=true has no effect without dropout: set model.dropout > 0"
            if optimizer.kind == "muon":
                yield "training.optimizer.kind=muon is for Transformers: for an LSTM, take auto or adamw"
            elif optimizer.kind == "auto" and optimizer.differs_from_default("muon_iterations"):
                given = f"training.optimizer.muon_iterations={optimizer.muon_iterations}"
                yield f"{given} is for Transformers: an LSTM is trained by AdamW, leave it out"
            if self.training.compile:
                yield "training.compile=true is for Transformers: set it to false for an LSTM"
        first = single_corpora(self.data)[0]
        if isinstance(first, PileConfig) and first.tagged:
            reason = "validation and test data come from the first corpus, and have no tags"
            yield f"data.tagged=true is for the second corpus of a mixture and later ones: {reason}"
        for split in SPLITS:
            key = f"{split}_pairs"
            is_held_out = isinstance(self.data, UnsplitConfig) and self.data.differs_from_default(key)
            if is_held_out and has_explicit_split(first, split):
                given = f"data.{key}={getattr(self.data, key)}"
                yield f"{given} is for a corpus without {split} data: leave it out"
        if self.training.init_from and self.tokenizer.reuse:
            yield "training.init_from=… takes the tokenizer of that model: leave tokenizer.reuse out"
        if isinstance(self.model, TransformerConfig) and self.model.positions == "learned":
            longest = self.data.max_length + 1  # with EOS
            if (positions := self.model.max_positions) < longest:
                yield f"model.max_positions={positions}: data.max_length={self.data.max_length} needs {longest} or more"
        yield from self.decoding.refuse("the test set is scored on one best translation of plain text", *ONE_BEST)


def why_not_packed(model: ModelConfig, shard: bool) -> str | None:
    """Return why a model cannot be trained on packed batches; None if it can.

    Args:
        model: The config of the model.
        shard: ``training.shard``.
    """
    if not isinstance(model, TransformerConfig):
        return "is for Transformers"
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name not in PACKED_OPTIONS and value not in PACKED_VALUES.get(name, ()):
            return f"does not work with model.{name}={value}"
    return "does not shard, but training.shard=true" if shard else None
