"""The sizes of models and vocabularies that ``training.minutes`` chooses from."""

from dataclasses import dataclass
from typing import assert_never

from mt.config import ModelConfig, RNNAttentionConfig, TransformerConfig


@dataclass(frozen=True)
class Size:
    """A preset in conf/model, with its corpus size and its usual settings."""

    preset: str
    fewest_pairs: int
    fewest_tokens: float
    """Target tokens that there must be time for."""
    vocabulary: int
    rate: float
    """The learning rate of a short run."""


SIZES = (
    Size("transformer_tiny", 0, 0, 8_000, 4e-3),
    Size("transformer_small", 20_000, 0, 8_000, 4e-3),  # "Multi30k": 29,000 pairs, better than published tiny models
    Size("transformer_base", 300_000, 100e6, 32_000, 2e-3),
    Size("transformer_big", 5_000_000, 1e9, 32_000, 1e-3),
)
SIZE_KEYS = tuple(f"model.{name}" for name in ("width", "feed_forward", "heads", "encoder_layers", "decoder_layers"))
TIMES_AS_SLOW = 8
"""How many times as slow each size from transformer_small on is than the one before, per token."""
SMALL_VOCABULARIES = ((5_000, 2_000), (20_000, 4_000))
"""Vocabularies of corpora with fewer pairs. 8,000 tokens suit 29,000 pairs ("What helps on little data": 4,000 cost 0.6
BLEU on validation, 16,000 gained 0.3 and are slower)."""


def is_transformer(model: ModelConfig) -> bool:
    """Return whether the rules for Transformers apply, and not those for LSTMs. A new model needs a branch."""
    match model:
        case TransformerConfig():
            return True
        case RNNAttentionConfig():
            return False
        case _:
            assert_never(model)
