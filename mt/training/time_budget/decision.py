"""A decision of ``training.minutes`` on settings."""

from dataclasses import dataclass

CHOSEN_KEYS = (
    "model.width", "model.feed_forward", "model.heads", "model.encoder_layers", "model.decoder_layers",
    "tokenizer.vocabulary_size", "training.batch_tokens", "training.objective", "training.max_updates",
    "model.dropout", "training.optimizer.learning_rate", "training.schedule.warmup", "training.validate_every",
    "training.patience", "training.initial_embeddings",
)  # fmt: skip
"""Every setting that training.minutes may choose."""
SettingValue = str | int | float


@dataclass(frozen=True)
class Decision:
    """One row of the choice."""

    name: str
    """The setting, or ``model`` for all sizes of a preset."""
    value: SettingValue
    settings: dict[str, SettingValue]
    """What is set by it. It leaves out what the user gave."""
    reason: str
