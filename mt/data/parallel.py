"""Call a function on many items in several processes."""

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from types import ModuleType
from typing import Any, TypeVar

from mt.core.errors import RunError
from mt.core.process import blocking_ctrl_c, end_with_parent

MAX_PROCESSES = 4
"""The maximum number of processes. It is low because each process takes a few hundred MB of memory."""
FIRST_ITEMS = 20
"""The number of items that this process handles before it starts others, which takes a second or two."""

WorkItem = TypeVar("WorkItem")
WorkResult = TypeVar("WorkResult")


def parallel_map(work: Callable[[WorkItem], WorkResult], items: Iterable[WorkItem]) -> Iterator[WorkResult]:
    """Yield ``work(item)`` for each item, in order, computed in up to MAX_PROCESSES processes.

    Args:
        work: A function whose result depends on the item alone. The function, the items and the results must be
            picklable.
        items: The items. This process reads them, a few items ahead of the results.

    Raises:
        RunError: A process has ended early.
    """
    items = iter(items)
    yield from map(work, islice(items, FIRST_ITEMS))
    count = min(MAX_PROCESSES, available_cores())
    with closing(ProcessPool(work, 0 if count == 1 else count)) as pool:
        pending: deque[Callable[[], Any]] = deque()
        for item in items:
            if len(pending) == count:
                yield pending.popleft()()
            pending.append(pool.submit(item))
        for result in pending:
            yield result()


class ProcessPool:
    """Calls a function on items in several processes. They start with the first item."""

    def __init__(self, work: Callable[[Any], Any], count: int) -> None:
        """
        Args:
            work: A function whose result depends on the item alone. The function, the items and the results must be
                picklable.
            count: The number of processes; 0 to call the function in this process.
        """
        self._work = work
        self._count = count
        self._executor: ProcessPoolExecutor | None = None

    def submit(self, item: object) -> Callable[[], Any]:
        """Start the work on an item. Return a function that waits for the result.

        Both functions raise RunError if a process has ended early.
        """
        if not self._count:
            result = self._work(item)
            return lambda: result
        if self._executor is None:
            spawn = multiprocessing.get_context("spawn")  # forking is unsafe in a process that has threads
            self._executor = ProcessPoolExecutor(self._count, spawn, _prepare_process, (self._work,))
        # A new process would import the main file of the program. A script without a main guard would run again.
        main = sys.modules["__main__"]
        try:
            sys.modules["__main__"] = ModuleType("__main__")
            with blocking_ctrl_c():
                return partial(_wait_for_result, self._executor.submit(_run_work, item))
        except BrokenExecutor:
            raise _dead_process_error() from None
        finally:
            sys.modules["__main__"] = main

    def close(self) -> None:
        """End the processes after their current items. The next ``submit`` starts new ones."""
        if self._executor:
            self._executor.shutdown(cancel_futures=True)
        self._executor = None


_work: Callable[[Any], Any]
"""The function of this process, if it belongs to a pool."""


def _prepare_process(work: Callable[[Any], Any]) -> None:
    """Store the function, ignore SIGINT, and make this process end with its parent."""
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # libraries may print to standard output, which is for the results of the program
    end_with_parent()


def _run_work(item: Any) -> Any:
    return _work(item)


def _wait_for_result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except BrokenExecutor:
        raise _dead_process_error() from None


def _dead_process_error() -> RunError:
    return RunError(
        "a process that prepared the data has ended; if no error is shown above, the machine has probably run out of "
        "memory: free some, and start again"
    )


def available_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
