"""The settings of ``train.py``."""

from collections.abc import Iterator
from pathlib import Path

from mt.config.data import SPLITS, DataConfig, MixtureConfig, PileConfig, UnsplitConfig, names_split
from mt.config.decoding import ONE_BEST, DecodingConfig
from mt.config.fields import PathText, RunName, Section, Seed
from mt.config.model import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.config.text import TextConfig
from mt.config.tokenizer import TokenizerConfig
from mt.config.training import TrainingConfig


class TrainConfig(Section):
    """``python train.py``"""

    name: RunName
    """The name of the run, and of its folder. Unless given, the experiment's name, or DATA-MODEL."""
    runs: PathText = "runs"
    """The folder that holds the run folders."""
    seed: Seed = 1
    """Decides everything random: first weights, order of the batches, dropout, subword sampling."""
    data: DataConfig
    text: TextConfig = TextConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    choice: PathText | None = None
    """A run whose choice by training.minutes this run takes instead of making its own, to be compared with it."""

    @property
    def folder(self) -> Path:
        return Path(self.runs) / self.name

    def contradictions(self) -> Iterator[str]:
        if self.training.objective == "r_drop" and not (
            self.model.dropout or (isinstance(self.model, TransformerConfig) and self.model.attention_dropout)
        ):
            yield "training.objective=r_drop compares predictions under two dropouts: it needs model.dropout > 0"
        optimizer = self.training.optimizer
        if isinstance(self.model, RNNAttentionConfig):
            if self.model.variational_dropout and not self.model.dropout:
                yield "model.variational_dropout=true is a way of dropping out: it needs model.dropout > 0"
            if optimizer.kind == "muon":
                yield "training.optimizer.kind=muon is for Transformers: an LSTM is moved by AdamW, take auto or adamw"
            elif optimizer.kind == "auto" and optimizer.differs_from_default("muon_iterations"):
                given = f"training.optimizer.muon_iterations={optimizer.muon_iterations}"
                yield f"{given} is for Transformers: an LSTM is moved by AdamW"
            if self.training.compile:
                yield "training.compile=true is for Transformers: an LSTM would be compiled anew for every length"
        first = self.data.corpora[0] if isinstance(self.data, MixtureConfig) else self.data
        if isinstance(first, PileConfig) and first.tagged:
            yield (
                "data.tagged=true is for the second corpus of a mixture and those behind it: validation and test data "
                "come from the first, and what is translated with the model has no tag"
            )
        for split in SPLITS:
            key = f"{split}_pairs"
            is_held_out = isinstance(self.data, UnsplitConfig) and self.data.differs_from_default(key)
            if is_held_out and names_split(first, split):
                pairs = getattr(self.data, key)
                yield f"data.{key}={pairs} is for a corpus without {split} data: here none are held out"
        if self.training.init_from and self.tokenizer.reuse:
            yield "training.init_from brings its own tokenizer: leave tokenizer.reuse out"
        if isinstance(self.model, TransformerConfig) and self.model.positions == "learned":
            longest = self.data.max_length + 1  # with EOS
            if self.model.max_positions < longest:
                yield (
                    f"model.max_positions={self.model.max_positions} is too small for "
                    f"data.max_length={self.data.max_length}: learned positions must reach {longest}"
                )
        yield from self.decoding.refuse("the test set is scored on one best translation", *ONE_BEST)
