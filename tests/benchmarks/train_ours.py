"""Our training step, with the parts that ``mt.training.trainer`` puts together."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mt.config import OptimizerConfig, ScheduleConfig, TrainingConfig
from mt.core.device import keep_freed_memory, limit_kernel_caches
from mt.data.batching import Batch
from mt.distributed.workers import Workers
from mt.models.seq2seq import Seq2Seq
from mt.models.transformer import Transformer
from mt.text.tokenizer import PAD
from mt.training.objective import Objective, data_parallel
from mt.training.optimizer import Optimizer
from tests.benchmarks import task

ALONE = Workers(torch.device("cpu"))


def make_step(precision: str, workers: Workers = ALONE) -> Callable[[Tensor, Tensor], None]:
    """A training step of the Transformer on source (B, S) and target (B, T+1) ids, of which each worker takes a
    share."""
    model = Transformer(task.TRANSFORMER, task.VOCABULARY, task.VOCABULARY, joint_vocabulary=True)
    return step_of(model, precision, workers)


def step_of(model: Seq2Seq, precision: str, workers: Workers) -> Callable[[Tensor, Tensor], None]:
    """A training step of any model."""
    keep_freed_memory()
    limit_kernel_caches()
    objective = Objective(model, TrainingConfig(label_smoothing=task.LABEL_SMOOTHING)).train()
    replica = data_parallel(objective, workers, torch.bfloat16 if precision == "bf16" else torch.float32)
    optimizer = Optimizer(model, OptimizerConfig(kind="adamw"), ScheduleConfig(), max_updates=1000, workers=workers)
    own = slice(workers.rank, None, workers.size)

    def step(source: Tensor, target: Tensor) -> None:
        batch = Batch.of(torch.arange(len(source))[own], source[own], target[own])
        with task.autocast(precision):
            loss = replica(batch) * (workers.size / int((target[:, 1:] != PAD).sum()))
        optimizer.set_learning_rate(1)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), task.CLIP_NORM)
        optimizer.step(norm.isfinite())

    return step
