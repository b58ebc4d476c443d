"""train.py and translate.py as processes of their own, alone or under torchrun."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

PROJECT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
"""One thread a process: what they compute is then the same however busy the machine is."""


_started: list[subprocess.Popen[bytes]] = []


def start(
    script: str, words: Sequence[str], workers: int = 1, torchrun: Sequence[str] = (), **options: object
) -> subprocess.Popen[bytes]:
    """``end_all`` ends what is left of it."""
    launcher = [sys.executable]
    if workers > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}", *torchrun]
    process = subprocess.Popen(
        [*launcher, str(PROJECT / script), *words],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )  # type: ignore[call-overload]
    _started.append(process)
    return process


def end_all() -> None:
    """Kills what ``start`` began and nobody waited for, with all its workers."""
    while _started:
        process = _started.pop()
        if process.poll() is None:
            with suppress(psutil.Error):
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
            process.kill()
            process.communicate()


def finish(process: subprocess.Popen[bytes], seconds: float = 300) -> tuple[int, str]:
    """How it ended and what it said."""
    _, said = process.communicate(timeout=seconds)
    return process.returncode, said.decode()


def workers_of(torchrun: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """In the order of their ranks."""
    found = []
    for child in psutil.Process(torchrun.pid).children():
        with suppress(psutil.Error):  # it may just be dying
            if "train.py" in " ".join(child.cmdline()):
                found.append(child)
    return found


def lead_one(work: str) -> subprocess.Popen[bytes]:
    """A leader that waits, deaf to everything, for a worker that does ``work`` of this file."""
    script = (
        "import time; from mt.training import local_workers as here; from tests import processes; here.GRACE = 0.5\n"
        f"with here.local_workers(2, processes.{work}) as seat: time.sleep(120)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=PROJECT, env=ENVIRONMENT, stderr=subprocess.PIPE)
    _started.append(process)
    return process


def die(seat: object) -> None:
    os._exit(7)


def sleep(seat: object) -> None:
    time.sleep(120)


def local_workers_of(leader: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Those that ``training.workers`` has started."""
    children = psutil.Process(leader.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
