"""train.py and translate.py as processes of their own, alone or under torchrun."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

PROJECT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
"""One thread a process: what they compute is then the same however busy the machine is."""


def start(
    script: str, words: Sequence[str], workers: int = 1, torchrun: Sequence[str] = (), **options: object
) -> subprocess.Popen[bytes]:
    launcher = [sys.executable]
    if workers > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}", *torchrun]
    return subprocess.Popen(
        [*launcher, str(PROJECT / script), *words],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )  # type: ignore[call-overload]


def finish(process: subprocess.Popen[bytes], seconds: float = 300) -> tuple[int, str]:
    """How it ended and what it said."""
    _, said = process.communicate(timeout=seconds)
    return process.returncode, said.decode()


def workers_of(torchrun: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """In the order of their ranks."""
    children = psutil.Process(torchrun.pid).children()
    return [child for child in children if "train.py" in " ".join(child.cmdline())]


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
