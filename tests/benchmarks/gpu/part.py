"""One part of the benchmark: ``python -m tests.benchmarks.gpu.part NAME FOLDER DATA [toy]`` prints its figures."""

import logging
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import torch

from tests.benchmarks.gpu import runs, steps
from tests.benchmarks.gpu.figures import WarningFigures
from tests.benchmarks.gpu.scale import GPU, SMALL_BATCH_TOKENS, TOY, Setup

BASE = "transformer_base"
PACKED, PADDED = "training.batching=packed", "training.batching=padded"


def parts(setup: Setup) -> dict[str, Callable[[], None]]:
    """Return the function of each part by its name."""
    small, big = min(SMALL_BATCH_TOKENS, setup.scale.batch_tokens), 2 * setup.scale.batch_tokens

    def ours(name: str, model: str, *words: str, batch_tokens: int | None = None, **options: bool) -> None:
        steps.measure_ours(setup, setup.config(name, model, *words, batch_tokens=batch_tokens), **options)

    return {
        "preparation": lambda: steps.prepare_benchmark(setup),
        "base_run": lambda: runs.measure_run(setup),
        "base_packed": lambda: ours("base_packed", BASE, PACKED, compares_with_cpu=True),
        "base_without_graphs": lambda: ours("base_without_graphs", BASE, PACKED, captures=False),
        "base_padded": lambda: ours("base_padded", BASE, PADDED),
        "marian": lambda: steps.measure_marian(setup),
        "plain": lambda: steps.measure_plain(setup),
        "small": lambda: ours("small", "transformer_small", PACKED, batch_tokens=small),
        "decoding": lambda: runs.measure_decoding(setup),
        "multi30k": lambda: runs.measure_multi30k(setup),
        "lstm": lambda: ours("lstm", "rnn_attention_base", compares_with_cpu=True),
        "resume": lambda: runs.compare_resumed_runs(setup),
        "big": lambda: ours("big", "transformer_big", PACKED, batch_tokens=big),
        "base_compiled": lambda: ours("base_compiled", BASE, PACKED, "training.compile=true"),
    }


def main() -> None:
    name, folder, data, *toy = sys.argv[1:]
    if not toy and not torch.cuda.is_available():
        sys.exit("this machine has no CUDA GPU; toy=true runs all parts at toy size on the CPU")
    setup = Setup(Path(folder), Path(data), TOY if toy else GPU)
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("mt").setLevel(logging.INFO)
    logging.getLogger("mt.training.updater").addHandler(WarningFigures())
    with ExitStack() as stack:
        if toy:  # the packed step itself runs on a CPU, too
            stack.enter_context(patch("mt.training.updater.has_packed_kernels", lambda device, precision: True))
        parts(setup)[name]()


if __name__ == "__main__":
    main()
