"""Prepares a process before it imports the large libraries: signals, standard streams, the environment of OpenMP.

While a command starts, Ctrl-C, SIGTERM and SIGHUP end it at once, because there is nothing to save yet. An exception
that a signal handler raises while libraries are imported can get lost in their code, or break them.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
"""Signals that end a command → the message. SIGHUP arrives when the terminal is closed."""
WAIT_SETTINGS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Environment variables that set how OpenMP threads wait."""
SPIN_COUNT = 5_000
"""Iterations for which a thread of libgomp (GNU OpenMP) waits actively before it sleeps. libgomp's default is 300,000.

A few thousand are enough to bridge the gaps within a training step. Many more make a busy computer slow: a thread that
spins occupies the core that the thread it waits for needs. docs/lab-notebook.md has the measurements.
"""


def handle_ending(handler: Callable[[int, FrameType | None], None]) -> None:
    """Set the handler of the signals of ENDING.

    An ignored signal stays ignored: a shell ignores SIGINT for commands in the background, and nohup ignores SIGHUP.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def open_standard_streams() -> None:
    """Replace standard streams that are closed by /dev/null. Call this before any file is opened.

    Otherwise the next file gets the descriptor of the stream, and error messages of libraries are written into it.
    Of Python's own streams, only ``sys.stderr`` is replaced: commands refuse to read or write streams that are None.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # this is the lowest free descriptor
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def limit_spinning() -> None:
    """Limit the active waiting of OpenMP threads, unless the environment has one of WAIT_SETTINGS already.

    Call this before torch or CTranslate2 is imported, because libgomp reads the environment when it is loaded. Child
    processes inherit the limit.
    """
    if not any(name in os.environ for name in WAIT_SETTINGS):
        os.environ["GOMP_SPINCOUNT"] = str(SPIN_COUNT)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Context manager: let the signals of ENDING end the process at once, and restore the previous handlers."""
    before = {number: signal.getsignal(number) for number in ENDING}
    handle_ending(end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def blocking_ctrl_c() -> Iterator[None]:
    """Context manager: start processes with SIGINT blocked. Ctrl-C reaches all processes, and a new one would print a
    traceback before it can end quietly, or ignore the signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def end_with_parent() -> None:
    """Let this process, one of ``multiprocessing``, end at once when its parent process has ended."""
    parent = multiprocessing.parent_process()
    assert parent

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def end(number: int, frame: FrameType | None) -> None:
    """Handle a signal of ENDING by ending the process at once."""
    with contextlib.suppress(OSError):  # the terminal is gone
        os.write(2, f"{ENDING[signal.Signals(number)]}\n".encode())
    os._exit(128 + number)
