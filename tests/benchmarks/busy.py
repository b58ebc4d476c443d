"""Time training steps and decoding on an idle and on a busy CPU, for several settings of OpenMP's waiting.

    python -m tests.benchmarks.busy [work=train] [run=FOLDER] [spins=1000,3000] [repetitions=5] [output=busy.json]

work: train (one process, two threads), train_workers (two processes, one thread each), train_rnn, or decode and
decode_ctranslate2, which translate with the model of ``run`` (such as runs/demo).
spins: further values of GOMP_SPINCOUNT to measure beside libgomp's default and the project's own.

Settings and loads alternate within a repetition. The loads are two busy loops and three processes that multiply
matrices in one thread each. Nothing else may run meanwhile.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import torch

from mt.core.device import multiplies_bf16
from mt.core.process_start import SPIN_COUNT, WAIT_SETTINGS
from mt.text.subwords.tokenizer import EOS, SPECIAL_TOKENS
from tests import options
from tests.benchmarks import task
from tests.benchmarks.contestant import SENTENCES, SPEED, Contestant

STEPS = 9
"""Training batches of one measurement, the contestants' warm-up included."""
TOKENS_PER_SENTENCE = 12
MULTIPLICATION = "import torch; torch.set_num_threads(1); a = torch.randn(512, 512)\nwhile True: a @ a"
LOADS = {"idle": (), "2 loops": ("while True: pass",) * 2, "3 numeric": (MULTIPLICATION,) * 3}
MIN_IDLE_SHARE = 0.97
"""Of the speed with libgomp's default, both on an idle machine."""
MIN_SHARE = {"2 loops": 0.33, "3 numeric": 0.25}
"""Of the idle speed with libgomp's default."""
DEFAULT, PROJECT_SETTING = "default", f"spin {SPIN_COUNT}"


class Options(options.Options):
    work: str = "train"
    run: Path = Path("runs/demo")
    spins: str = ""
    repetitions: int = 5
    output: Path = Path("busy.json")


def contestant(work: str) -> tuple[Contestant, str]:
    """Return what does the work, and the figure to read."""
    precision = "bf16" if multiplies_bf16(torch.device("cpu")) else "fp32"
    return {
        "train": (Contestant("train_ours", precision), SPEED),
        "train_workers": (Contestant("train_ours", precision, workers=2), SPEED),
        "train_rnn": (Contestant("train_rnn_ours", precision), SPEED),
        "decode": (Contestant("decode_ours", "5"), SENTENCES),
        "decode_ctranslate2": (Contestant("decode_ctranslate2", "float32"), "ours_5"),
    }[work]


def write_inputs(folder: Path, run: Path) -> None:
    """Write random training batches, and the test set and model of a run if there is one."""
    torch.manual_seed(1)
    sentences = task.BATCH_TOKENS // TOKENS_PER_SENTENCE
    ids = torch.randint(len(SPECIAL_TOKENS), task.VOCABULARY, (STEPS, 2, sentences, TOKENS_PER_SENTENCE + 1))
    ids[..., -1] = EOS
    task.save_batches(
        [(source[:, 1:].clone(), target.clone()) for source, target in ids], folder / "batches.safetensors"
    )
    (folder / "run").symlink_to(run.resolve())
    for side in ("source", "target"):
        scored = run / "scored" / f"test.{'reference' if side == 'target' else side}"
        if scored.exists():
            lines = task.read_lines(scored)[:200]
            (folder / f"test.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@contextmanager
def load(programs: tuple[str, ...]) -> Iterator[None]:
    """Run Python programs beside the contents of this context."""
    processes = [subprocess.Popen([sys.executable, "-c", program]) for program in programs]
    try:
        if processes:
            time.sleep(4)  # until they have imported torch
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def environment(setting: str) -> dict[str, str]:
    """Return the environment variables of a process with a setting of OpenMP's waiting."""
    variables = {name: value for name, value in os.environ.items() if name not in WAIT_SETTINGS}
    return variables if setting == DEFAULT else variables | {"GOMP_SPINCOUNT": setting.split()[1]}


def main() -> None:
    options = Options.parse(__doc__)
    worker, figure = contestant(options.work)
    settings = [DEFAULT, PROJECT_SETTING, *(f"spin {count}" for count in options.spins.split(",") if count)]
    speeds: dict[tuple[str, str], list[float]] = {(setting, name): [] for setting in settings for name in LOADS}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_inputs(folder, task.PROJECT / options.run)
        for repetition in range(options.repetitions):
            for name, programs in LOADS.items():
                for setting in settings:
                    with load(programs):
                        speeds[setting, name].append(worker.run(folder, environment(setting))[figure])
            to_go = (time.monotonic() - started) * (options.repetitions / (repetition + 1) - 1)
            print(
                f"repetition {repetition + 1} of {options.repetitions}, {to_go / 60:.0f} minutes to go", file=sys.stderr
            )
    report(options, settings, speeds)
    options.output.write_text(json.dumps({f"{s}, {n}": values for (s, n), values in speeds.items()}, indent=2) + "\n")


def report(options: Options, settings: list[str], speeds: dict[tuple[str, str], list[float]]) -> None:
    """Print each speed as a share of the idle speed with libgomp's default, and whether the aims are reached."""
    idle = median(speeds[DEFAULT, "idle"])
    print(f"{options.work}: {idle:,.1f} a second, idle, with libgomp's default; shares of it, median (min–max):")
    print(f"{'':14}" + "".join(f"{name:>22}" for name in LOADS))
    for setting in settings:
        cells = ([value / idle for value in speeds[setting, name]] for name in LOADS)
        print(f"{setting:14}" + "".join(f"{median(c):10.2f} ({min(c):.2f}–{max(c):.2f})" for c in cells))
    pairs = zip(speeds[PROJECT_SETTING, "idle"], speeds[DEFAULT, "idle"], strict=True)
    reached = {"idle": (median(ours / default for ours, default in pairs), MIN_IDLE_SHARE)}
    reached |= {name: (median(speeds[PROJECT_SETTING, name]) / idle, least) for name, least in MIN_SHARE.items()}
    for name, (value, least) in reached.items():
        print(f"{name}: {value:.2f} (at least {least}: {'reached' if value >= least else 'MISSED'})")


if __name__ == "__main__":
    main()
