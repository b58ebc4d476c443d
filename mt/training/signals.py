"""SIGINT, SIGTERM and SIGHUP (Ctrl-C, ``kill``, a closed terminal), turned into a request to stop at the next safe
point."""

import signal
import threading
from types import FrameType

from mt.core.errors import Interrupted
from mt.core.process_start import ENDING


class StopRequest:
    """Context manager that catches the signals of ENDING that are not ignored. A worker's trainer holds one.

    ``signal_number`` is the number of the first signal, None before. Later signals do nothing. The old handlers return
    on exit, except after Interrupted, because then the process ends. Only the main thread of a process can catch
    signals; in others, nothing is caught.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._remember)
        return self

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number is None:
            self.signal_number = number

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is not None and issubclass(kind, Interrupted):
            return  # the process is ending, so further signals must have no effect
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if kind is None and self.signal_number is not None:
            # The signal came too late for the trainer to act on it, so the old handler gets it.
            signal.raise_signal(self.signal_number)
