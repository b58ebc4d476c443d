"""Refuses models that cannot be trained in the memory of this machine at all."""

from mt.config import TrainConfig
from mt.core.device import memory_bytes
from mt.core.errors import InputError
from mt.distributed.workers import Workers
from mt.models.build import build_shapes
from mt.text.tokenizer import TokenizerPair

KEPT_WHOLE = 4
"""Bytes per parameter for the weight, in fp32. Every worker must be able to hold all weights, even with
training.shard."""
SPREAD = 8
"""Bytes per parameter that training.shard spreads over the workers: the gradient and one moving average of the
optimizer (AdamW has two)."""


def refuse_what_cannot_fit(config: TrainConfig, tokenizers: TokenizerPair, workers: Workers) -> None:
    """Raises InputError if the weights, their gradients and the optimizer's state alone need more memory than the
    device has. Otherwise the system would kill the process while it fills that memory, without a message."""
    parameters = build_shapes(config.model, tokenizers).parameter_count
    needed = parameters * (KEPT_WHOLE + SPREAD / (workers.size if config.training.shard else 1))
    if workers.device.type == "cpu":
        needed *= workers.local_size  # they share its memory
    there = memory_bytes(workers.device)
    if needed > there:
        raise InputError(
            f"the model has {parameters:,} parameters, which need at least {needed / 1e9:,.1f} GB to be trained, but "
            f"{workers.device} has {there / 1e9:,.1f} GB of memory: take a smaller model"
        )
