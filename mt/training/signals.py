"""SIGINT and SIGTERM as a request to stop at the next safe point."""

import signal
from types import FrameType

from mt.core.errors import Interrupted


class StopRequest:
    """Records the first signal in ``signal_number`` while it is entered; later ones do nothing."""

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> "StopRequest":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._remember)
        return self

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number is None:
            self.signal_number = number

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is not None and issubclass(kind, Interrupted):
            return  # the process is ending already, so that further signals stay without effect
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if kind is None and self.signal_number is not None:
            # It came too late to be fulfilled here, so the handler from before gets it.
            signal.raise_signal(self.signal_number)
