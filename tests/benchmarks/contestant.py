"""One contestant, one measurement, one JSON line on stdout.

    python -m tests.benchmarks.contestant machine            FOLDER  fp32|bf16  1
    python -m tests.benchmarks.contestant train_ours         FOLDER  fp32|bf16  WORKERS
    python -m tests.benchmarks.contestant decode_marian      FOLDER  BEAM_SIZE  1
    python -m tests.benchmarks.contestant decode_ctranslate2 FOLDER  COMPUTE_TYPE  1

The folder is the runner's: batches.safetensors, test.source and test.target, and the trained run.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from mt.config import ModelConfig
from mt.distributed.local_workers import local_workers
from mt.distributed.process_group import RankInfo
from mt.distributed.workers import working_together
from tests.benchmarks import machine, task

WARM_UP = 3
"""Training steps before the timed ones."""

Step = Callable[[Tensor, Tensor], None]
Translate = Callable[[list[str]], list[str]]


def memory(kind: str) -> float:
    """MiB that this process holds (VmRSS), or held at most (VmHWM), as Linux counts them; elsewhere NaN.

    getrusage would do everywhere, but its maximum starts at what the parent process held.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) / 1024


def time_training(step: Step, batches: list[tuple[Tensor, Tensor]], model: ModelConfig) -> dict[str, float]:
    before = memory("VmRSS")
    for source, target in batches[:WARM_UP]:
        step(source, target)
    start = time.perf_counter()
    for source, target in batches[WARM_UP:]:
        step(source, target)
    seconds = time.perf_counter() - start
    source_tokens, target_tokens = task.real_tokens(batches[WARM_UP:])
    return {
        "target_tokens_per_second": target_tokens / seconds,
        "gflops": task.flops(model, task.VOCABULARY, source_tokens, target_tokens) / seconds / 1e9,
        "step_mib": memory("VmHWM") - before,
    }


def time_decoding(translate: Translate, lines: list[str], output: Path) -> dict[str, float]:
    translate(lines[: len(lines) // 20])
    start = time.perf_counter()
    hypotheses = translate(lines)
    seconds = time.perf_counter() - start
    output.write_text("".join(f"{hypothesis}\n" for hypothesis in hypotheses), encoding="utf-8", newline="\n")
    return {"sentences_per_second": len(lines) / seconds}


def train(name: str, folder: Path, precision: str, info: RankInfo | None) -> dict[str, float]:
    """By one process with all threads, or as one of several with one thread each."""
    torch.manual_seed(1)
    make_step = importlib.import_module(f"tests.benchmarks.{name}").make_step
    batches = task.load_batches(folder / "batches.safetensors")
    model = task.RNN if name.startswith("train_rnn") else task.TRANSFORMER
    if info is None:
        return time_training(make_step(precision), batches, model)
    torch.set_num_threads(1)
    with working_together(torch.device("cpu"), info) as workers:
        return time_training(make_step(precision, workers), batches, model)


def measure(name: str, folder: Path, setting: str, workers: int) -> dict[str, float]:
    if name == "machine":
        return {"gflops": machine.matmul_gflops(setting), "copy_gigabytes": machine.copy_gigabytes()}
    if name.startswith("train"):
        if workers == 1:
            return train(name, folder, setting, None)
        with local_workers(workers, partial(train, name, folder, setting)) as info:
            return train(name, folder, setting, info)
    lines, references = (task.read_lines(folder / f"test.{side}") for side in ("source", "target"))
    module = importlib.import_module(f"tests.benchmarks.{name}")
    if name == "decode_ctranslate2":
        return module.compare(folder / "run", lines, references, setting)
    return time_decoding(module.make_translate(folder / "run", int(setting)), lines, folder / f"{name}.{setting}")


if __name__ == "__main__":
    torch.set_num_threads(task.THREADS)
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
