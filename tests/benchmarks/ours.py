"""Our training step, with the parts that ``mt.training.trainer`` puts together, and our translator."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from mt.config import DecodingConfig, OptimizerConfig, ScheduleConfig, TrainingConfig
from mt.core.device import keep_freed_memory, limit_kernel_caches
from mt.data.batching.batch import Batch
from mt.distributed.workers import Workers
from mt.models.rnn import RNNAttention
from mt.models.seq2seq import Seq2Seq
from mt.models.transformer import Transformer
from mt.tokenizer.tokenizer import PAD
from mt.training.objective import Objective, data_parallel
from mt.training.optimizer import Optimizer
from mt.training.thread_parallel import ThreadParallel, part_count
from mt.translation.translator import Translator
from tests.benchmarks import task


def transformer() -> Seq2Seq:
    return Transformer(task.TRANSFORMER, task.VOCABULARY, task.VOCABULARY, joint_vocabulary=True)


def rnn() -> Seq2Seq:
    return RNNAttention(task.RNN, task.VOCABULARY, task.VOCABULARY, joint_vocabulary=True)


def training_step(model: Seq2Seq, precision: str, workers: Workers) -> Callable[[Tensor, Tensor], None]:
    """Return a training step on source (B, S) and target (B, T+1) ids, of which each worker takes its share."""
    keep_freed_memory()
    limit_kernel_caches()
    objective = Objective(model, TrainingConfig(label_smoothing=task.LABEL_SMOOTHING)).train()
    number_format = torch.bfloat16 if precision == "bf16" else torch.float32
    replica = data_parallel(objective, workers, number_format)
    parts = part_count(objective, workers, number_format)
    thread_parallel = ThreadParallel(objective, parts) if parts > 1 else None
    optimizer = Optimizer(model, OptimizerConfig(kind="adamw"), ScheduleConfig(), max_updates=1000, workers=workers)
    own = slice(workers.rank, None, workers.size)

    def step(source: Tensor, target: Tensor) -> None:
        batch = Batch.from_tensors(torch.arange(len(source))[own], source[own], target[own])
        scale = workers.size / int((target[:, 1:] != PAD).sum())
        optimizer.set_learning_rate(1)
        optimizer.zero_grad()
        if thread_parallel:
            thread_parallel.add_gradients(batch, scale)
        else:
            with task.autocast(precision, source.device):
                loss = replica(batch) * scale
            loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), task.CLIP_NORM)
        optimizer.step(norm.isfinite())

    return step


def load_translator(run: Path, beam_size: int) -> Callable[[list[str]], list[str]]:
    limit_kernel_caches()
    return Translator.load(run, DecodingConfig(beam_size=beam_size), device="cpu").translate
