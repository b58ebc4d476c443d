"""What Ctrl-C and SIGTERM do while a command starts: they end it at once, because there is nothing to save yet.

An exception that a signal handler raises while libraries are imported can get lost in their code, or break them.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM)


def end_at_once() -> None:
    """Lets SIGINT and SIGTERM end the process at once, with exit status 128 + N. An ignored SIGINT stays ignored: the
    shell has started the command in the background."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Does the same inside a ``with`` statement, and restores the handlers that were there before."""
    before = {number: signal.getsignal(number) for number in ENDING}
    end_at_once()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n" if number == signal.SIGINT else b"terminated\n")
    os._exit(128 + number)
