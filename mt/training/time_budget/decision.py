"""A decision that ``training.minutes`` makes about one or more settings."""

from dataclasses import dataclass

SIZE_KEYS = tuple(f"model.{name}" for name in ("width", "feed_forward", "heads", "encoder_layers", "decoder_layers"))
"""The settings that a preset decides."""
CHOSEN_KEYS = (
    *SIZE_KEYS, "tokenizer.vocabulary_size", "training.batch_tokens", "training.objective", "training.max_updates",
    "model.dropout", "training.optimizer.learning_rate", "training.schedule.warmup", "training.validate_every",
    "training.patience", "training.initial_embeddings",
)  # fmt: skip
"""Every setting that training.minutes may choose."""
SettingValue = str | int | float


@dataclass(frozen=True)
class Decision:
    """One row of the table that ``--explain`` prints. choice.json records all of them."""

    name: str
    """The key of the setting, or ``model`` for a preset, which decides several settings."""
    value: SettingValue
    """The value of the setting, or the name of the preset."""
    settings: dict[str, SettingValue]
    """The chosen values by key, without settings that the user gave."""
    reason: str
