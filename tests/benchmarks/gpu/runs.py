"""Whole runs of train.py, and translations of translate.py."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from unittest.mock import patch

import torch
from safetensors.torch import load_file

from mt.config import DecodingConfig, TrainConfig
from mt.core.device import choose_device
from mt.core.errors import Interrupted
from mt.storage.run_folder import METRICS_LOG, WEIGHTS, read_results
from mt.training.command import train
from mt.training.provenance import recorded_batching
from mt.training.updater import UpdateBatches, Updater
from mt.translation.translator import Translator
from tests.benchmarks import task
from tests.benchmarks.gpu.figures import peak_memory, tell
from tests.benchmarks.gpu.scale import Setup
from tests.benchmarks.preparation import corpus_words

RUN = "base_run"
WARM_UP_SHARE = 1 / 3
"""The share of a run's updates before the timed ones."""


@contextmanager
def observed_updates(stop_at: int | None = None) -> Iterator[list[tuple[float, int]]]:
    """Context manager: record the start, by ``time.perf_counter``, and the target tokens of each update.

    Args:
        stop_at: The number of the update during which this process gets SIGTERM; None: it gets none.
    """
    starts: list[tuple[float, int]] = []
    real_update = Updater.train_step

    def update(self: Updater, ready: UpdateBatches) -> tuple[torch.Tensor, float]:
        starts.append((time.perf_counter(), ready.target_tokens))
        if len(starts) == stop_at:
            os.kill(os.getpid(), signal.SIGTERM)
        return real_update(self, ready)

    with patch.object(Updater, "train_step", update):
        yield starts


def tokens_per_second(starts: list[tuple[float, int]]) -> float | None:
    """Return the target tokens a second from start to start of updates, so that waits for batches count; None for a run
    that is too short."""
    timed = starts[int(len(starts) * WARM_UP_SHARE) :]
    if len(timed) < 2:
        return None
    return sum(tokens for _, tokens in timed[:-1]) / (timed[-1][0] - timed[0][0])


def metrics(config: TrainConfig, split: str) -> list[dict]:
    lines = [json.loads(line) for line in (config.folder / METRICS_LOG).read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["split"] == split]


def measure_run(setup: Setup) -> None:
    """Tell the figures of a run of the base model as users start it, with augmentation."""
    updates = setup.scale.run_updates
    words = [f"training.max_updates={updates}", f"training.validate_every={updates}", "training.schedule.warmup=5"]
    words.append(f"training.log_every={updates // 4}")
    config = setup.config(RUN, "transformer_base", *words, augments=True)
    started = time.perf_counter()
    with observed_updates() as starts:
        train(config)
    lines = metrics(config, "train")
    tell(
        target_tokens_per_second=tokens_per_second(starts),
        batching=recorded_batching(config.folder),
        logged_target_tokens_per_second=median(line["target_tokens_per_second"] for line in lines[1:]),
        padding_share=lines[-1]["padding_share"],
        loss=lines[-1]["loss"],
        seconds_before_first_update=starts[0][0] - started,
        first_update_seconds=starts[1][0] - starts[0][0],
        seconds_after_last_update=time.perf_counter() - starts[-1][0],
        **peak_memory(choose_device(config.training.device)),
    )


def measure_decoding(setup: Setup) -> None:
    """Tell the speed of translations with the base model of ``measure_run``."""
    lines = task.read_lines(setup.folder / "test.xx")
    for beam_size in task.BEAM_SIZES:
        decoding = DecodingConfig(beam_size=beam_size, max_length_ratio=1.2, batch_tokens=32_768)
        translator = Translator.load(setup.folder / "runs" / RUN, decoding, setup.scale.device, "auto")
        translator.translate(lines[:50])
        started = time.perf_counter()
        translator.translate(lines)
        seconds = time.perf_counter() - started
        memory = peak_memory(translator.device)
        tell(beam_size=beam_size, sentences_per_second=len(lines) / seconds, **memory)


def measure_multi30k(setup: Setup) -> None:
    """Tell the time and the scores of ``experiment=multi30k_gpu``, also if the run is interrupted."""
    toy = ["tokenizer.vocabulary_size=300", "training.max_updates=6", "training.validate_every=3"]
    toy += ["training.schedule.warmup=2", "training.batch_tokens=256", "training.log_every=2"]
    files = corpus_words(setup.data, train="train", valid="val", test="test_2016_flickr")
    words = [*files, *(toy if setup.scale.is_toy else [])]
    config = setup.compose("transformer_small", "experiment=multi30k_gpu", *words)
    started = time.perf_counter()
    with observed_updates() as starts:
        try:
            train(config)
        except Interrupted:
            tell(interrupted_after_updates=len(starts))
        else:
            tell(run_seconds=time.perf_counter() - started, test_bleu=read_results(config.folder)["bleu"])
    validations = [line for line in metrics(config, "valid") if line.get("bleu") is not None]
    best = max(validations, key=lambda line: line["bleu"], default={})
    if len(starts) > 1:
        tell(
            target_tokens_per_second=tokens_per_second(starts),
            seconds_before_first_update=starts[0][0] - started,
            first_update_seconds=starts[1][0] - starts[0][0],
        )
    tell(
        best_validation_bleu=best.get("bleu"),
        best_update=best.get("step"),
    )


def compare_resumed_runs(setup: Setup) -> None:
    """Tell whether a run that SIGTERM stops and that is resumed has the weights of one that is not stopped."""
    updates = setup.scale.resume_updates
    words = [f"training.max_updates={updates}", f"training.validate_every={updates}", "training.schedule.warmup=2"]
    words.append("decoding.beam_size=1")
    for precision, batching in ((setup.scale.half_precision, "padded"), ("auto", "packed")):
        own = [f"training.precision={precision}", f"training.batching={batching}"]
        whole, stopped = (
            setup.config(f"{name}_{batching}", "transformer_small", *words, *own) for name in ("whole", "stopped")
        )
        with observed_updates() as starts:
            train(whole)
        speed = tokens_per_second(starts)
        before = signal.getsignal(signal.SIGTERM)
        with observed_updates(stop_at=updates // 2) as starts:
            try:
                train(stopped)
            except Interrupted:
                signal.signal(signal.SIGTERM, before)  # training keeps its handler, because a process ends here
        is_stopped = len(starts) == updates // 2
        train(stopped)
        equal, difference = weights_differ(whole.folder, stopped.folder)
        bad_updates, loss = (metrics(stopped, "train")[-1][name] for name in ("bad_updates", "loss"))
        tell(
            precision=precision,
            batching=batching,
            target_tokens_per_second=speed,
            stopped=is_stopped,
            same_bytes=equal,
            relative_difference=difference,
            bad_updates=bad_updates,
            loss=loss,
        )


def weights_differ(first: Path, second: Path) -> tuple[bool, float]:
    """Return whether the final weights of two runs are the same bytes, and the norm of their difference as a share."""
    paths = [run / WEIGHTS for run in (first, second)]
    tensors = [torch.cat([tensor.flatten().float() for tensor in load_file(path).values()]) for path in paths]
    share = ((tensors[0] - tensors[1]).norm() / tensors[0].norm()).item()
    return paths[0].read_bytes() == paths[1].read_bytes(), share
