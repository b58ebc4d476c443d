"""Checks and times training and decoding on one GPU, the way train.py and translate.py run them.

    python -m tests.benchmarks.gpu [seconds=350] [parts=base_packed,small,…] [data=.gpu/data]
                                   [output=gpu.jsonl] [toy=true]

Prints a JSON line for each figure as soon as it exists, and appends it to ``output``. Each part is a process of its
own. It may take the seconds of PARTS, and those that earlier parts left; then it is ended. A part that fails or is
ended costs its later figures alone, and the exit code is then 1. All parts together take at most ``seconds``.

parts: Only these parts, and those that they need.
data: A folder with train, val and test_2016_flickr, .en and .de, plain or .gz, for the part multi30k. Without the
folder, that part is skipped.
toy: All parts at toy size on the CPU, in two minutes on an idle machine, to test the benchmark itself. Packed updates
then run without graphs and Triton. The speeds mean nothing.

base_packed, base_without_graphs and base_padded are our updates of a base Transformer: one CUDA graph on packed rows,
the same kernels launched one by one, and padded batches. marian (Hugging Face) and plain (torch.nn.Transformer) are
loops on the same padded batches. Ours use Muon, the loops AdamW; cuDNN's attention is off for all of them.
``target_tokens_per_second`` counts real tokens. ``share_of_products`` compares the rate of the matrix products that
these tokens need with that of large ones.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests import options

PROJECT = Path(__file__).parents[3]
GRACE_SECONDS = 5
"""Between SIGTERM, at which a part tells what it has, and SIGKILL."""
ERROR_CHARACTERS = 1500
"""How much of the end of standard error is reported of a part that failed."""


@dataclass(frozen=True)
class Part:
    name: str
    seconds: int
    """The time that no earlier part may take from it. 0: it is skipped if fewer than MIN_SECONDS are left."""
    needs: tuple[str, ...] = ("preparation",)


MIN_SECONDS = 15
PARTS = (
    Part("preparation", 30, ()),
    Part("base_run", 50),
    Part("base_packed", 25),
    Part("base_without_graphs", 20),
    Part("base_padded", 20),
    Part("marian", 17),
    Part("plain", 17),
    Part("small", 22),
    Part("decoding", 20, ("preparation", "base_run")),
    Part("multi30k", 60, ()),
    Part("lstm", 22),
    Part("resume", 25),
    Part("big", 20),
    Part("base_compiled", 0),
)
Report = Callable[[dict], None]


class Options(options.Options):
    seconds: float = 350
    parts: str = ",".join(part.name for part in PARTS)
    data: Path = Path(".gpu/data")
    output: Path = Path("gpu.jsonl")
    toy: bool = False

    def selected(self) -> list[Part]:
        """Return the parts to run, in order, or exit with the wrong name."""
        names = set(self.parts.split(","))
        if unknown := names - {part.name for part in PARTS}:
            sys.exit(f"parts={','.join(sorted(unknown))}: unknown; there are {', '.join(part.name for part in PARTS)}")
        for part in reversed(PARTS):
            if part.name in names:
                names.update(part.needs)
        return [part for part in PARTS if part.name in names]


def run_process(command: Sequence[str], limit: float, log: Path, report: Report) -> str | None:
    """Run a command that prints JSON lines, and report each as it comes.

    At the limit, end the process and those that it started.

    Args:
        command: The program and its arguments.
        limit: The time in seconds.
        log: The file for standard error.
        report: Called with the content of each line.

    Returns:
        Why the command did not come to its end; None if it did.
    """
    is_over_time = threading.Event()
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, cwd=PROJECT, text=True, start_new_session=True
        )

        def end() -> None:
            is_over_time.set()
            _signal_group(process, signal.SIGTERM)
            killer.start()

        timer = threading.Timer(limit, end)
        killer = threading.Timer(GRACE_SECONDS, _signal_group, (process, signal.SIGKILL))
        timer.start()
        try:
            assert process.stdout
            for line in process.stdout:
                with suppress(ValueError):
                    if isinstance(values := json.loads(line), dict):
                        report(values)
            status = process.wait()
        finally:
            timer.cancel()
            killer.cancel()
            _signal_group(process, signal.SIGKILL)
    if is_over_time.is_set():
        return f"ended after {limit:.0f} s"
    if status:
        return f"exit code {status}: {log.read_text(errors='replace')[-ERROR_CHARACTERS:].strip()}"
    return None


def _signal_group(process: subprocess.Popen, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def run_parts(options: Options, folder: Path, started: float, report: Report) -> bool:
    """Run the parts. Return whether all of them came to their end.

    Args:
        options: The options.
        folder: An empty folder, for what the parts write.
        started: When the benchmark began, by ``time.monotonic``.
        report: Called with the content of each line of output.
    """
    parts = options.selected()
    failed: set[str] = set()
    for number, part in enumerate(parts):
        left = options.seconds - (time.monotonic() - started) - sum(later.seconds for later in parts[number + 1 :])
        if reason := _why_skipped(part, options, failed, left):
            report({"part": part.name, "skipped": reason})
            continue
        command = [sys.executable, "-m", "tests.benchmarks.gpu.part", part.name, str(folder), str(options.data)]
        part_started = time.monotonic()
        failure = run_process(
            [*command, *(["toy"] if options.toy else [])],
            max(left, 1),
            folder / f"{part.name}.log",
            lambda values, name=part.name: report({"part": name, **values}),  # type: ignore[misc]
        )
        if failure:
            failed.add(part.name)
        report(
            {"part": part.name, "seconds": round(time.monotonic() - part_started, 1)}
            | ({"failed": failure} if failure else {"done": True})
        )
    return not failed


def _why_skipped(part: Part, options: Options, failed: set[str], left: float) -> str | None:
    if missing := failed.intersection(part.needs):
        return f"{missing.pop()} failed"
    if part.name == "multi30k" and not options.data.is_dir():
        return f"there is no folder {options.data}; set data=…"
    if not part.seconds and left < MIN_SECONDS:
        return "no time left"
    return "torch.compile takes minutes on a CPU" if options.toy and part.name == "base_compiled" else None


def main() -> None:
    options = Options.parse(__doc__)
    options = options.model_copy(update={"data": options.data.resolve(), "output": options.output.resolve()})
    started = time.monotonic()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that the part is ended, too

    with options.output.open("a", encoding="utf-8") as output, tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HF_DATASETS_CACHE": f"{folder}/cache", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

        def report(values: dict) -> None:
            line = json.dumps({"at": round(time.monotonic() - started, 1)} | values)
            print(line, flush=True)
            output.write(f"{line}\n")
            output.flush()

        is_complete = run_parts(options, Path(folder), started, report)
        report({"parts": "done", "complete": is_complete})
    sys.exit(not is_complete)


if __name__ == "__main__":
    main()
