"""Prepares a process, runs a command in it and ends it: signal handlers, standard streams, the environment of OpenMP,
messages on stderr, exit status.

While a command starts, Ctrl-C, SIGTERM and SIGHUP end it at once, because there is nothing to save yet. An exception
that a signal handler raises while libraries are imported can get lost in their code, or break them.
"""

import atexit
import contextlib
import errno
import gc
import logging
import multiprocessing
import os
import pkgutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from mt.core.errors import (
    InputError,
    Interrupted,
    RunError,
    VisibleFormatter,
    WorkerDiedError,
    brief,
    causes,
    is_exhaustion,
    shorten_words,
)
from mt.core.installation import optional_packages

logger = logging.getLogger(__name__)

ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
"""Signals that end a command → the message. SIGHUP arrives when the terminal is closed."""
WAIT_SETTINGS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Environment variables that set how OpenMP threads wait."""
SPIN_COUNT = 5_000
"""Iterations for which a thread of libgomp (GNU OpenMP) waits actively before it sleeps. libgomp's default is 300,000.

A few thousand are enough to bridge the gaps within a training step. Many more make a busy computer slow: a thread that
spins occupies the core that the thread it waits for needs. docs/lab-notebook.md has the measurements.
"""
CANNOT_BE_WRITTEN = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EFBIG,
    errno.EIO,
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.ENOTDIR,
    errno.EISDIR,
}
FIRST_ERROR_SECONDS = 60.0
"""Seconds that any worker but the first waits before it logs an error. If the first worker had the same error, torchrun
ends the others within this time, and only the first logs the error."""
CLEANUP_SECONDS = 1.0
"""Seconds after the first signal in which others have no effect, so that files are closed and put in order."""
CLOSED_PIPE_STATUS = 141
"""Exit status if the reader of standard output has closed the pipe (128 + SIGPIPE)."""


def handle_ending(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Set the handler of the signals of ENDING. Return the previous handlers of those that were set.

    An ignored signal stays ignored: a shell ignores SIGINT for commands in the background, and nohup ignores SIGHUP.
    """
    return {number: signal.signal(number, handler) for number in ENDING if signal.getsignal(number) != signal.SIG_IGN}


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
    before = handle_ending(end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def load_function(path: str) -> Callable[..., Any]:
    """Import and return a function.

    While its module is imported, SIGINT, SIGTERM and SIGHUP end the process at once.

    Args:
        path: "module:function".

    Raises:
        InputError: A package is not installed.
    """
    gc.disable()
    try:
        with ending_at_once(), optional_packages():
            function: Callable[..., Any] = pkgutil.resolve_name(path)
    finally:
        gc.freeze()  # modules are not garbage: searching them for it takes a tenth of a second each time
        gc.enable()
        atexit.register(gc.unfreeze)  # nanobind reports what is left at the end
    return function


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


def end_with(work: Callable[[], None]) -> NoReturn:
    """Call ``work``, then end the process with its exit status.

    Raises:
        SystemExit: With status 0 (done), 2 (the input or config is wrong), 1 (the work could not go on) or 141 (the
            reader of standard output is gone). After signal N, the process has ended with status 128 + N.
    """
    _log_to_stderr()
    handle_ending(_interrupt)
    status = exit_status(work)
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)  # the exit status is settled
    if status > 128 and status != CLOSED_PIPE_STATUS:
        # A signal may have left threads behind. If one is inside of a library in C++ while the interpreter ends, the
        # process is aborted.
        with contextlib.suppress(OSError, ValueError, AttributeError):  # it is gone, closed, or None
            sys.stdout.flush()
        os._exit(status)
    sys.exit(status)


def exit_status(work: Callable[[], None]) -> int:
    """Call ``work`` and return the exit status.

    InputError, RunError, Interrupted and faults of the machine, such as a full disk, are logged as one message. Any
    other exception is a bug and is raised again.
    """
    try:
        work()
        if sys.stdout is not None:  # None if it was closed when the process started
            sys.stdout.flush()
        return 0
    except InputError as error:
        if exhausted := next(filter(is_exhaustion, causes(error)), None):
            return _log_error(machine_trouble(exhausted), 1)
        return _log_once(error, 2, others_wait=True)
    except RunError as error:
        return _log_once(error, 1, others_wait=not isinstance(error, WorkerDiedError))
    except Interrupted as error:
        return _log_once(error, 128 + error.signal_number)
    except KeyboardInterrupt:
        return _log_once("interrupted", 130)
    except BrokenPipeError:
        # The interpreter flushes standard output once more at exit, which would print another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE_STATUS
    except Exception as error:
        for cause in causes(error):
            if isinstance(cause, OSError) and cause.errno == errno.ENAMETOOLONG:
                return _log_error(f"{brief(str(cause.filename))}: name too long for this system; take a shorter one", 2)
            if reason := machine_trouble(cause):
                return _log_error(reason, 1)
        raise


def _is_main() -> bool:
    """Return whether this process is the first worker on this machine, or the only one."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _log_once(message: object, status: int, others_wait: bool = False) -> int:
    """Log an error that all workers on this machine may have, so that it appears once. Return ``status``.

    Args:
        message: The message.
        status: The exit status.
        others_wait: Whether workers other than the first log the message, too, if they are still alive after
            FIRST_ERROR_SECONDS seconds: then the first worker had no error, since torchrun would have ended them.
            Otherwise they are silent.
    """
    if not _is_main():
        if not others_wait:
            return status
        try:
            time.sleep(FIRST_ERROR_SECONDS)
        except (Interrupted, KeyboardInterrupt):
            return status
    return _log_error(message, status)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal by raising Interrupted. Training replaces this handler by one that saves its state first.

    More signals have no effect for CLEANUP_SECONDS, as Ctrl-C often arrives twice: from the terminal, and from the
    program that started this one. After that, a signal ends the process at once.
    """
    last = time.monotonic() + CLEANUP_SECONDS

    def end_later(number: int, frame: FrameType | None) -> None:
        if time.monotonic() > last:
            end(number, frame)

    for other in ENDING:
        if signal.getsignal(other) is _interrupt:
            signal.signal(other, end_later)
    raise Interrupted(number, ENDING[signal.Signals(number)])


def _log_error(message: object, status: int) -> int:
    logger.error("%s", shorten_words(str(message)))
    return status


def machine_trouble(error: BaseException) -> str | None:
    """Return the message for an error of the machine (disk, permissions, memory); None for any other error."""
    where = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(error):
        return f"disk is full{where}: make room and start the same command again"
    if number in (errno.EMFILE, errno.ENFILE):
        return f"{os.strerror(number)}{where}: allow more with ulimit -n 4096, and start the same command again"
    if number in CANNOT_BE_WRITTEN:
        return f"{os.strerror(number)}{where}: check the path, its permissions and the disk"
    if is_exhaustion(error):
        return "out of memory: reduce batch_tokens or use a smaller model"
    return None


def _log_to_stderr() -> None:
    """Log to standard error, since standard output is for results: all of this project, of libraries warnings only.
    Control characters are escaped."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(VisibleFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("mt").setLevel(logging.INFO if _is_main() else logging.ERROR)


class StopRequest:
    """Context manager that catches the signals of ENDING that are not ignored. A worker's trainer holds one.

    ``signal_number`` is the number of the first signal, None before. Later signals do nothing. The old handlers return
    on exit, except after Interrupted, because then the process ends. Only the main thread of a process can catch
    signals; in others, nothing is caught.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = handle_ending(self._remember)
        return self

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number is None:
            self.signal_number = number

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is not None and issubclass(kind, Interrupted):
            return  # the process is ending, so further signals must have no effect
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is None and self.signal_number is not None:
            # The signal came too late for the trainer to act on it, so the old handler gets it.
            signal.raise_signal(self.signal_number)
