"""Distinguishes linear from quadratic time without a clock, by counting bytecode operations."""

import sys
from collections.abc import Callable
from types import FrameType


def growth(run: Callable[[int], object], size: int) -> float:
    """Return the ratio of the bytecode operations of ``run(2 * size)`` to those of ``run(size)``: at most 2 if the time
    is linear. C functions are not counted."""
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
