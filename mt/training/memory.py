"""The least memory that training needs."""

from mt.config import TrainConfig
from mt.core.device import memory_bytes
from mt.core.errors import InputError
from mt.distributed.workers import Workers
from mt.models.build import build_shapes
from mt.text.subwords.tokenizer import TokenizerPair

REPLICATED_BYTES = 4
"""Bytes per parameter for its fp32 value. Every worker must be able to hold all weights, even with training.shard."""
SHARDED_BYTES = 8
"""Bytes per parameter for the gradient and one moving average of the optimizer (AdamW has two). training.shard divides
them among the workers."""


def refuse_what_cannot_fit(config: TrainConfig, tokenizers: TokenizerPair, workers: Workers) -> None:
    """Raise InputError if weights, gradients and optimizer state alone need more memory than the device has.

    Without this check the operating system would kill the process without a message.
    """
    parameters = build_shapes(config.model, tokenizers).parameter_count
    needed = parameters * (REPLICATED_BYTES + SHARDED_BYTES / (workers.size if config.training.shard else 1))
    if workers.device.type == "cpu":
        needed *= workers.local_size  # they share its memory
    available = memory_bytes(workers.device)
    if needed > available:
        raise InputError(
            f"the model has {parameters:,} parameters, which need at least {needed / 1e9:,.1f} GB for training, but "
            f"{workers.device} has {available / 1e9:,.1f} GB of memory: take a smaller model (model=…)"
        )
