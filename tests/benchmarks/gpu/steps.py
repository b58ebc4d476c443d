"""Updates of a model, one after another with batches that are ready: ours, and loops of other implementations."""

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from itertools import islice
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from mt.config import TrainConfig, TrainingConfig
from mt.config.resolved import Resolved
from mt.core.device import (
    autocast,
    choose_device,
    choose_precision,
    keep_freed_memory,
    precision_name,
    tf32_in_recurrent_layers,
)
from mt.data.batching.batch import Batch, collate
from mt.data.batching.batches import BatchSettings, TrainingBatches
from mt.distributed.workers import Workers
from mt.models.layers import Dropout
from mt.models.seq2seq import Seq2Seq
from mt.training.objective import Objective
from mt.training.packed_step import PackedStep
from mt.training.preparation import prepare, read_corpus
from mt.training.run_state import run_state
from mt.training.trainer import Trainer
from mt.training.updater import UpdateBatches, Updater, prefetch_updates
from tests import packed_attention  # noqa: F401
from tests.benchmarks import machine, task
from tests.benchmarks.gpu.figures import peak_memory, tell, wait_for
from tests.benchmarks.gpu.scale import TOKENIZER, Setup, write_corpus
from tests.launches import Launches

WARM_UP = 10
"""Updates before the timed ones."""
PROFILED_UPDATES = 3


def prepare_benchmark(setup: Setup) -> None:
    """Write the corpus, the tokenizer and the batches of the other implementations, and measure matrix products."""
    write_corpus(setup.folder, setup.scale)
    device = choose_device(setup.scale.device)
    precision = choose_precision("auto", device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    tell(device=name, torch=torch.__version__, precision=precision_name(precision))
    setup.write_product_gflops(machine.large_matmul_gflops(device, precision))
    tell(large_products_tflops=setup.product_gflops() / 1000)
    trainer = new_trainer(setup.config(TOKENIZER, "transformer_tiny"))
    trainer.run.mkdir(parents=True)
    trainer.begin()  # writes the tokenizer
    settings = BatchSettings(trainer.config.text.augmentation, 0.0, 1, setup.scale.batch_tokens)
    batches = TrainingBatches(trainer.data.train, [trainer.data.layer], settings, Workers(torch.device("cpu")))
    chosen = islice(batches.epoch(0), WARM_UP + setup.scale.timed_updates)
    task.save_batches([(batch.source, batch.target) for batch in chosen if isinstance(batch, Batch)], setup.batches)


def new_trainer(config: TrainConfig) -> Trainer:
    """Return the trainer of a new run, as train.py makes it."""
    workers = Workers(choose_device(config.training.device))
    state = run_state(Resolved.of(config))
    config = state.resolved.config
    corpus, dropped = read_corpus(config, state.tokenizer_from, workers)
    data = prepare(config, corpus, dropped, {}, state.tokenizer_from, workers)
    keep_freed_memory()
    return Trainer(state.resolved, data, workers, None)


def measure_ours(setup: Setup, config: TrainConfig, captures: bool = True, compares_with_cpu: bool = False) -> None:
    """Tell the figures of our updates.

    Args:
        setup: What the part is given.
        config: The config of the run whose updates are timed.
        captures: Whether packed updates may be CUDA graphs.
        compares_with_cpu: Whether to compare gradients with those of the CPU in fp32.
    """
    trainer = new_trainer(config)
    updater, device = trainer.updater, trainer.workers.device
    with closing(prefetch_updates(trainer.batches, 0, 0, config.training.accumulate, trainer.workers)) as updates:
        ready = list(islice(updates, WARM_UP + setup.scale.timed_updates))
    packed_step = updater.packed_step
    without_graphs = patch("mt.training.packed_step.capture_graph", lambda function, device: function)
    with nullcontext() if captures else without_graphs, tf32_in_recurrent_layers(trainer.precision):
        started = time.perf_counter()
        updater.train_step(ready[0])
        wait_for(device)
        first = time.perf_counter() - started
        if packed_step:
            loss, gradient = packed_step.deviations or (None, None)
            is_packed = updater.packed_step is not None
            tell(check="passed" if is_packed else "failed", loss_deviation=loss, gradient_deviation=gradient)
        seconds = seconds_of(updater.train_step, ready[1:], device)
        timed = ready[WARM_UP:]
        tokens = [sum(getattr(item, name) for item in timed) for name in ("source_tokens", "target_tokens")]
        padding = 1 - tokens[1] / sum(item.padded_tokens for item in timed)
        tell_speed(setup, config, trainer.model.output_weight.shape[0], tokens, len(timed) / seconds, device)
        tell(first_update_seconds=first, padding_share=padding)
        tell_launches(lambda: updater.train_step(timed[0]))
        if updater.packed_step and len(timed[0].batches) == 1:
            tell_dropout(updater, updater.packed_step, timed[0])
        for precision in dict.fromkeys((torch.float32, trainer.precision)) if compares_with_cpu else ():
            loss, gradient = deviations_from_cpu(trainer.model, device, precision)
            tell(compared_with_cpu=precision_name(precision), loss_deviation=loss, gradient_deviation=gradient)
        tell_kernels(lambda: updater.train_step(timed[0]), device)


def seconds_of(update: Callable, items: Sequence, device: torch.device) -> float:
    """Return the seconds of updates after the warm-up, whose first update is done already."""
    for item in items[: WARM_UP - 1]:
        update(item)
    wait_for(device)
    started = time.perf_counter()
    for item in items[WARM_UP - 1 :]:
        update(item)
    wait_for(device)
    return time.perf_counter() - started


def tell_speed(
    setup: Setup,
    config: TrainConfig,
    vocabulary: int,
    tokens: Sequence[int],
    updates_per_second: float,
    device: torch.device,
) -> None:
    """Tell the speed of updates.

    Args:
        setup: What the part is given.
        config: The config with the size of the model.
        vocabulary: The number of target tokens in the vocabulary.
        tokens: Source tokens and target tokens of all timed updates.
        updates_per_second: The rate of the timed updates.
        device: Their device.
    """
    seconds = setup.scale.timed_updates / updates_per_second
    gflops = task.flops(config.model, vocabulary, *tokens) / seconds / 1e9
    tell(
        target_tokens_per_second=tokens[1] / seconds,
        ms_per_update=1000 / updates_per_second,
        share_of_products=gflops / setup.product_gflops(),
        **peak_memory(device),
    )


def tell_launches(update: Callable[[], object]) -> None:
    """Tell how many operators Python launches in an update, without views and a graph counted as none."""
    with Launches() as launches:
        update()
    tell(launches=sum(launches.counts.values()))


def tell_kernels(update: Callable[[], object], device: torch.device) -> None:
    """Tell how many kernels a GPU computes in an update, and how long they take; nothing on a CPU.

    It comes last, because not every machine permits profiling.
    """
    if device.type != "cuda":
        return
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(PROFILED_UPDATES):
            update()
        wait_for(device)
    events = [event for event in profiler.events() if event.device_type == DeviceType.CUDA]
    kernels = [event for event in events if not getattr(event, "is_user_annotation", False)]  # those span kernels
    milliseconds = sum(event.time_range.elapsed_us() for event in kernels) / 1000
    tell(kernels=len(kernels) / PROFILED_UPDATES, gpu_ms_per_update=milliseconds / PROFILED_UPDATES)


def tell_dropout(updater: Updater, step: PackedStep, ready: UpdateBatches) -> None:
    """Tell whether dropout depends on the seed of an update alone, also in a graph."""
    step._enabled.fill_(False)
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        step.train_step(ready.batches, ready.target_tokens)  # type: ignore[arg-type]
        losses.append(step.loss.item())
    step._enabled.fill_(True)
    updater.optimizer.zero_grad()
    tell(same_seed_same_loss=losses[0] == losses[1], other_seed_other_loss=losses[0] != losses[2])


def deviations_from_cpu(model: Seq2Seq, device: torch.device, precision: torch.dtype) -> tuple[float, float]:
    """Return the deviations of loss and gradient of a padded batch on a device from those on the CPU in fp32, without
    dropout, as shares."""
    random = np.random.default_rng(2)
    vocabulary = min(1000, model.output_weight.shape[0])
    sentences = [random.integers(4, vocabulary, random.integers(5, 40)).tolist() for _ in range(64)]
    batch = collate(sentences[:32], sentences[32:])
    loss, gradient = _loss_and_gradient(copy.deepcopy(model).cpu(), batch, torch.float32)
    other_loss, other_gradient = _loss_and_gradient(copy.deepcopy(model), batch.to(device), precision)
    return abs(other_loss / loss - 1), ((gradient - other_gradient).norm() / gradient.norm()).item()


def _loss_and_gradient(model: Seq2Seq, batch: Batch, precision: torch.dtype) -> tuple[float, Tensor]:
    objective = Objective(model, TrainingConfig()).train()  # cuDNN has no gradients in evaluation mode
    for part in model.modules():
        if isinstance(part, Dropout):
            part.probability = 0.0
    model.zero_grad()
    with autocast(batch.source.device, precision):
        loss = objective(batch) / batch.target_tokens
    loss.backward()
    gradients = [p.grad.detach().cpu().flatten() for p in model.parameters() if p.grad is not None]
    return loss.item(), torch.cat(gradients)


def measure_marian(setup: Setup) -> None:
    """Tell the figures of a loop around Hugging Face's MarianMTModel."""
    from tests.benchmarks import marian

    _measure_peer(setup, marian.new_marian, marian.training_step)


def measure_plain(setup: Setup) -> None:
    """Tell the figures of a loop around torch.nn.Transformer."""
    from tests.benchmarks import plain

    _measure_peer(setup, plain.PlainTransformer, plain.training_step)


def _measure_peer(setup: Setup, model_class: Callable[..., nn.Module], training_step: Callable) -> None:
    """Tell the figures of another implementation.

    Args:
        setup: What the part is given.
        model_class: Makes a model of a size and a vocabulary size.
        training_step: Makes a training step of a model and the name of a precision.
    """
    config = setup.config("peer", "transformer_base")
    device = choose_device(config.training.device)
    keep_freed_memory()
    precision = precision_name(choose_precision("auto", device))
    batches = task.load_batches(setup.batches)
    vocabulary = setup.scale.vocabulary_size
    torch.manual_seed(1)
    step = training_step(model_class(config.model, vocabulary).to(device), precision)

    def update(batch: tuple[Tensor, Tensor]) -> None:
        step(*(side.to(device) for side in batch))

    started = time.perf_counter()
    update(batches[0])
    wait_for(device)
    first = time.perf_counter() - started
    seconds = seconds_of(update, batches[1:], device)
    timed = batches[WARM_UP:]
    tokens = task.real_tokens(timed)
    tell_speed(setup, config, vocabulary, tokens, len(timed) / seconds, device)
    padding = 1 - tokens[1] / sum(target[:, 1:].numel() for _, target in timed)
    tell(first_update_seconds=first, padding_share=padding)
    tell_launches(lambda: update(timed[0]))
    tell_kernels(lambda: update(timed[0]), device)
