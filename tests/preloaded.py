"""Commands of this project as processes of their own, without the seconds that each takes to import its libraries.

multiprocessing's fork server imports everything once and forks itself for each command. A forked command has its own
arguments, streams, folder and environment, and gets signals; only its imports are done already. What happens while an
interpreter starts and ends, and variables that libraries read when they are imported, need ``subprocess``.
"""

import contextlib
import logging
import multiprocessing
import os
import runpy
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import DEVNULL, PIPE, TimeoutExpired
from typing import IO

PROJECT = Path(__file__).parents[1]
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.libraries"])


class Command:
    """A running command: what tests need of ``subprocess.Popen``.

    Args:
        words: The script or, behind ``-m``, the module, and its arguments.
        cwd: The command's working directory.
        env: All its environment variables.
        stdin, stdout, stderr: As for ``subprocess.Popen``: PIPE, DEVNULL, a file, its descriptor, or None for the
            stream of this process.
    """

    def __init__(
        self,
        words: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        stdin: int | IO[bytes] | None = None,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
    ) -> None:
        _start_server()
        self.args = words
        pairs = [_ends(number, given) for number, given in enumerate((stdin, stdout, stderr))]
        self.stdin, self.stdout, self.stderr = (own for own, _ in pairs)
        streams = [Connection(descriptor) for _, descriptor in pairs]  # what multiprocessing knows how to pass on
        self._process = _context.Process(target=_be, args=(list(words), str(cwd), dict(env), streams))
        self._process.start()
        self.pid = self._process.pid
        for stream in streams:
            stream.close()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def communicate(self, input: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Return what it has written to standard output and standard error when it has ended."""
        read: dict[str, bytes] = {}

        def drain(name: str) -> None:
            if stream := getattr(self, name):
                with stream:
                    read[name] = stream.read()

        drains = [threading.Thread(target=drain, args=[name], daemon=True) for name in ("stdout", "stderr")]
        for thread in drains:
            thread.start()
        if self.stdin and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.write(input)
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        self.wait(timeout)
        for thread in drains:
            thread.join()
        return read.get("stdout", b""), read.get("stderr", b"")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # the server knows of its end before this process does
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _ends(number: int, given: int | IO[bytes] | None) -> tuple[IO[bytes] | None, int]:
    """Return this process's end of a stream, if it has one, and a descriptor of the command's end."""
    if given == PIPE:
        reading, writing = os.pipe()
        if number == 0:
            return open(writing, "wb"), reading
        return open(reading, "rb"), writing
    if given == DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    if given is None:
        given = number
    return None, os.dup(given if isinstance(given, int) else given.fileno())


def _start_server() -> None:
    """With one thread: a process that has started others cannot be forked."""
    before = dict(os.environ)
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROJECT)}
    forkserver.ensure_running()
    os.environ.clear()
    os.environ |= before


def _be(words: list[str], folder: str, environment: Mapping[str, str], streams: Sequence[Connection]) -> None:
    """Do in this process what ``python WORDS…`` would do, for a test."""
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    logging.Handler.handleError = _refuse_misfits  # type: ignore[method-assign]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if words[0] == "-m":
        sys.argv, sys.path[0] = words[1:], folder
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = words, str(Path(words[0]).parent)
        runpy.run_path(words[0], run_name="__main__")


def _refuse_misfits(handler: logging.Handler, record: logging.LogRecord) -> None:
    """Raise what logging only prints: that the arguments of a message do not fit it."""
    if isinstance(sys.exception(), TypeError | ValueError):
        raise
