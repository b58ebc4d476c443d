"""The sizes of models and vocabularies that ``training.minutes`` chooses from."""

from dataclasses import dataclass
from typing import assert_never

from mt.config import ModelConfig, RNNAttentionConfig, TransformerConfig


@dataclass(frozen=True)
class ModelSize:
    """A Transformer preset of conf/model, the conditions for choosing it, and settings that suit it."""

    preset: str
    min_pairs: int
    """Fewest training pairs that this size is chosen for."""
    min_target_tokens: float
    """Fewest target tokens that there must be time to train on, repetitions included. 0: time does not matter."""
    vocabulary_size: int
    learning_rate: float
    """Peak learning rate of a short run."""


MODEL_SIZES = (
    ModelSize("transformer_tiny", 0, 0, 8_000, 4e-3),
    ModelSize("transformer_small", 20_000, 0, 8_000, 4e-3),  # "Multi30k": 29,000 pairs; beats published tiny models
    ModelSize("transformer_base", 300_000, 100e6, 32_000, 2e-3),
    ModelSize("transformer_big", 5_000_000, 1e9, 32_000, 1e-3),
)
"""From the smallest to the largest."""
SLOWDOWN_PER_SIZE = 8
"""Time per token of each size from transformer_small on, relative to the next smaller size."""
SMALL_VOCABULARIES = ((5_000, 2_000), (20_000, 4_000))
"""(pairs, vocabulary size): a corpus of fewer pairs than the first number gets a vocabulary of the second. 8,000 tokens
suit 29,000 pairs ("What helps on little data": 4,000 cost 0.6 BLEU on validation, 16,000 gained 0.3 and are slower)."""


def is_transformer(model: ModelConfig) -> bool:
    """Return whether the rules for Transformers apply, and not those for LSTMs. A new model needs a branch."""
    match model:
        case TransformerConfig():
            return True
        case RNNAttentionConfig():
            return False
        case _:
            assert_never(model)
