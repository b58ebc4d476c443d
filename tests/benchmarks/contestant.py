"""One contestant, one measurement, one JSON line on stdout.

    python -m tests.benchmarks.contestant FOLDER machine            fp32|bf16     1
    python -m tests.benchmarks.contestant FOLDER train_ours         fp32|bf16     WORKERS
    python -m tests.benchmarks.contestant FOLDER decode_marian      BEAM_SIZE     1
    python -m tests.benchmarks.contestant FOLDER decode_ctranslate2 COMPUTE_TYPE  1

The folder is the runner's: batches.safetensors, test.source and test.target, and the trained run.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from mt.config import ModelConfig
from mt.distributed.launch import local_workers
from mt.distributed.workers import RankInfo, Workers, worker_group
from tests.benchmarks import machine, task

WARM_UP = 3
"""Training steps before the timed ones."""

SPEED = "target_tokens_per_second"
SENTENCES = "sentences_per_second"

Step = Callable[[Tensor, Tensor], None]
Translate = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Contestant:
    name: str
    setting: str
    """The precision of training, the beam size of decoding, or CTranslate2's compute type."""
    workers: int = 1

    def __str__(self) -> str:
        workers = f" {self.workers} workers" if self.workers > 1 else ""
        return f"{self.name} {self.setting}{workers}"

    def run(self, folder: Path, environment: Mapping[str, str] = os.environ) -> dict[str, float]:
        """Return what a process of its own measures."""
        words = [str(folder), self.name, self.setting, str(self.workers)]
        printed = subprocess.check_output(
            [sys.executable, "-m", "tests.benchmarks.contestant", *words],
            env={**environment, "OMP_NUM_THREADS": str(task.THREADS)},
            cwd=task.PROJECT,
        )
        return json.loads(printed.splitlines()[-1])


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
        SPEED: target_tokens / seconds,
        "gflops": task.flops(model, task.VOCABULARY, source_tokens, target_tokens) / seconds / 1e9,
        "step_mib": memory("VmHWM") - before,
    }


def time_decoding(translate: Translate, lines: list[str], output: Path) -> dict[str, float]:
    translate(lines[: len(lines) // 20])
    start = time.perf_counter()
    hypotheses = translate(lines)
    seconds = time.perf_counter() - start
    output.write_text("".join(f"{hypothesis}\n" for hypothesis in hypotheses), encoding="utf-8", newline="\n")
    return {SENTENCES: len(lines) / seconds}


def training_step(name: str, precision: str, workers: Workers) -> Step:
    match name:
        case "train_ours" | "train_rnn_ours":
            from tests.benchmarks import ours

            model = ours.transformer() if name == "train_ours" else ours.rnn()
            return ours.training_step(model, precision, workers)
        case "train_plain" | "train_rnn_plain":
            from tests.benchmarks import plain

            return plain.training_step(
                plain.PlainTransformer() if name == "train_plain" else plain.PlainRNN(), precision
            )
    from tests.benchmarks import marian

    return marian.training_step(marian.new_marian(), precision)


def train(name: str, folder: Path, precision: str, info: RankInfo | None) -> dict[str, float]:
    """Time one process with all threads, or one of several with one thread each."""
    torch.manual_seed(1)
    batches = task.load_batches(folder / "batches.safetensors")
    model = task.RNN if name.startswith("train_rnn") else task.TRANSFORMER
    if info is None:
        return time_training(training_step(name, precision, Workers(torch.device("cpu"))), batches, model)
    torch.set_num_threads(1)
    with worker_group(torch.device("cpu"), info) as workers:
        return time_training(training_step(name, precision, workers), batches, model)


def measure(folder: Path, name: str, setting: str, workers: int) -> dict[str, float]:
    if name == "machine":
        return {"gflops": machine.matmul_gflops(setting), "copy_gigabytes": machine.copy_gigabytes()}
    if name.startswith("train"):
        if workers == 1:
            return train(name, folder, setting, None)
        with local_workers(workers, partial(train, name, folder, setting)) as info:
            return train(name, folder, setting, info)
    lines, references = (task.read_lines(folder / f"test.{side}") for side in ("source", "target"))
    if name == "decode_ctranslate2":
        from tests.benchmarks import ctranslate2_engine

        return ctranslate2_engine.compare(folder / "run", lines, references, setting)
    if name == "decode_ours":
        from tests.benchmarks.ours import load_translator
    else:
        from tests.benchmarks.marian import load_translator
    return time_decoding(load_translator(folder / "run", int(setting)), lines, folder / f"{name}.{setting}")


if __name__ == "__main__":
    torch.set_num_threads(task.THREADS)
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))))
