"""Hugging Face's ``MarianMTModel`` with the loss of their ``Trainer``."""

from collections.abc import Callable

from torch import Tensor
from transformers.trainer_pt_utils import LabelSmoother

from mt.text.tokenizer import PAD
from tests.benchmarks import task
from tests.benchmarks.marian import new_marian


def make_step(precision: str) -> Callable[[Tensor, Tensor], None]:
    """A training step on source (B, S) and target (B, T+1) ids."""
    model = new_marian().train()
    optimizer = task.adamw(model)
    smoother = LabelSmoother(epsilon=task.LABEL_SMOOTHING)

    def step(source: Tensor, target: Tensor) -> None:
        labels = target[:, 1:].masked_fill(target[:, 1:] == PAD, smoother.ignore_index)  # (B, T)
        with task.autocast(precision):
            output = model(source, source != PAD, target[:, :-1], use_cache=False)
            loss = smoother(output, labels)
        task.update(model, optimizer, loss)

    return step
