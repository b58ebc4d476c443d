"""train.py, translate.py and the other commands as processes of their own, alone or together."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, CompletedProcess, Popen

import psutil

from tests.preloaded import PROJECT, Command

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
"""One thread a process: what they compute is then the same however busy the machine is."""
Process = Popen[bytes] | Command

# A shell ignores Ctrl-C in what it runs in the background, nohup a closed terminal, and the commands that tests start
# would ignore them, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

_started: list[Process] = []


def start(*words: str, cwd: Path = PROJECT, env: dict[str, str] | None = None, **streams: object) -> Process:
    """Start a script of this project, or ``-m`` and a module. ``streams`` are those of ``subprocess.Popen``.

    ``end_all`` ends what is left of it.
    """
    env = ENVIRONMENT if env is None else env
    words = tuple(str(PROJECT / word) if word in ("train.py", "translate.py") else str(word) for word in words)
    process = Command(words, cwd, env, **streams)  # type: ignore[arg-type]
    _started.append(process)
    return process


def run(*words: str, input: bytes = b"", seconds: float = 300, **options: object) -> CompletedProcess[bytes]:
    """Run such a command to its end."""
    process = start(*words, stdin=PIPE, stdout=PIPE, stderr=PIPE, **options)  # type: ignore[arg-type]
    output, errors = process.communicate(input, timeout=seconds)
    assert process.returncode is not None
    return CompletedProcess(words, process.returncode, output, errors)


def torchrun(words: Sequence[str], workers: int, *options: str, cwd: Path = PROJECT) -> Popen[bytes]:
    """Start training under torchrun."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}", *options]
    process = Popen([*launcher, str(PROJECT / "train.py"), *words], cwd=cwd, env=ENVIRONMENT, stdout=PIPE, stderr=PIPE)
    _started.append(process)
    return process


class Together:
    """Workers that find each other as under torchrun, without the time that it takes.

    Args:
        words: What each is given behind ``train.py``.
        workers: How many they are.
    """

    def __init__(self, words: Sequence[str], workers: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "together"}
        sizes = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(workers))
        ranks = [dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank)) for rank in range(workers)]
        self.workers = [
            start("train.py", *words, env=ENVIRONMENT | meeting | sizes | rank, stdout=PIPE, stderr=PIPE)
            for rank in ranks
        ]

    @property
    def returncode(self) -> int | None:
        """The first status other than 0, once all have ended."""
        ended = [worker.poll() for worker in self.workers]
        return None if None in ended else next((status for status in ended if status), 0)

    def communicate(self, timeout: float) -> tuple[bytes, bytes]:
        """Return what all of them wrote. Like torchrun, end the others when one has failed."""
        end = time.monotonic() + timeout
        while self.returncode is None:
            assert time.monotonic() < end, "waited in vain"
            if any(worker.poll() for worker in self.workers):
                for worker in self.workers:
                    worker.terminate()
            time.sleep(0.02)
        outputs, errors = zip(*(worker.communicate() for worker in self.workers), strict=True)
        return b"".join(outputs), b"".join(errors)


def end_all() -> None:
    """Kill what ``start`` began and nobody waited for, with all its workers."""
    while _started:
        process = _started.pop()
        if process.poll() is None:
            with suppress(psutil.Error):
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
            process.kill()
            process.communicate()


def finish(process: Process | Together, seconds: float = 300) -> tuple[int, str]:
    """Return the exit status and standard error."""
    _, errors = process.communicate(timeout=seconds)
    assert process.returncode is not None
    return process.returncode, errors.decode()


def workers_of(torchrun: Popen[bytes]) -> list[psutil.Process]:
    """Return them in the order of their ranks."""
    workers = []
    for child in psutil.Process(torchrun.pid).children():
        with suppress(psutil.Error):  # it may just be dying
            if "train.py" in " ".join(child.cmdline()):
                workers.append(child)
    return workers


def start_waiting_main_process(work: str) -> Process:
    """Start a main process that waits for a worker, which does ``work`` of ``tests/main_process.py``."""
    return start("-m", "tests.main_process", work, stdout=PIPE, stderr=PIPE)


def local_workers_of(main: Process | psutil.Process) -> list[psutil.Process]:
    """Return the workers that ``training.workers`` has started, or the processes of a ``ProcessPool``."""
    children = psutil.Process(main.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def pool_processes() -> set[psutil.Process]:
    """Return the processes that a ``ProcessPool`` of this process has started."""
    return set(local_workers_of(psutil.Process()))


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def wait_until_ended(pid: int, seconds: float = 60) -> None:
    """Wait for a process that is not a child of this one. A killed process needs a moment to end, and may remain a
    zombie."""

    def has_ended() -> bool:
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    wait_for(has_ended, seconds)
