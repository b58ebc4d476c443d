"""Tells linear time from quadratic time without a clock: by what Python executes."""

import sys
from collections.abc import Callable
from types import FrameType


def growth(run: Callable[[int], object], size: int) -> float:
    """Return how many times the bytecode operations of ``run(size)`` those of ``run(2 * size)`` are: at most 2 if the
    time is linear. C functions are not counted."""
    run(size)  # fills caches
    return _operations(lambda: run(2 * size)) / _operations(lambda: run(size))


def _operations(function: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
