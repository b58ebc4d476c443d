"""Calls a function on many items in several processes.

These are started with an interpreter of their own rather than by ``multiprocessing``, which would import the program's
main file again in each of them, or fork a process that has threads. They end with this process, however it ends,
because their input does.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from mt.core.errors import RunError

MOST_PROCESSES = 4
"""The most processes, because each takes some hundred MB of memory."""
FIRST_ITEMS = 20
"""How many items are worked on in this process before others are started, which takes a second or two."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yields ``work(item)`` for each item, in their order. Only a few items are held at a time.

    Args:
        work: A function whose result depends on the item alone. It, the items and the results must be picklable.
        items: Is read in this process, a few items ahead.

    Raises:
        RunError: One of the processes has ended early.
    """
    items = iter(items)
    yield from map(work, islice(items, FIRST_ITEMS))
    count = min(MOST_PROCESSES, _cores())
    following = next(items, None) if count > 1 else None
    if following is None:
        yield from map(work, items)
        return
    with ExitStack() as stack:
        idle: SimpleQueue[_Process[Item, Result]] = SimpleQueue()
        processes = [stack.enter_context(_Process(work)) for _ in range(count)]
        threads = stack.enter_context(ThreadPoolExecutor(count))
        for process in processes:
            idle.put(process)
            # Before the threads are waited for, which wait for it.
            stack.callback(process.kill)

        def result_of(item: Item) -> Result:
            process = idle.get()
            try:
                return process.result_of(item)
            finally:
                idle.put(process)

        results: deque[Future[Result]] = deque([threads.submit(result_of, following)])
        for item in items:
            results.append(threads.submit(result_of, item))
            if len(results) > 2 * count:
                yield results.popleft().result()
        while results:
            yield results.popleft().result()


class _Process(Generic[Item, Result]):
    """A process that works on one item at a time. Use as a context manager."""

    def __init__(self, work: Callable[[Item], Result]) -> None:
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import _serve; _serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # so that Ctrl-C reaches this process alone, which then ends that one
        )
        self._work = work
        self._knows_its_work = False

    def __enter__(self) -> "_Process[Item, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self._process.communicate()

    def kill(self) -> None:
        self._process.kill()

    def result_of(self, item: Item) -> Result:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests and answers
        try:
            if not self._knows_its_work:
                pickle.dump(self._work, requests, pickle.HIGHEST_PROTOCOL)
                self._knows_its_work = True
            pickle.dump(item, requests, pickle.HIGHEST_PROTOCOL)
            requests.flush()
            return pickle.load(answers)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = self._process.wait()
            advice = "; has the machine run out of memory?" if code == -signal.SIGKILL else ""
            raise RunError(f"a process that prepared the data has ended (exit code {code}){advice}") from None


def _serve() -> None:
    """Is what such a process does: reads a function and then items from its input, and writes the results."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # if the other process has been killed, this one ends, too
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no result
    received = _received()
    work: Any = next(received, None)
    for item in received:
        pickle.dump(work(item), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _received() -> Iterator[Any]:
    """Yields what the other process sends, until it closes the pipe or is killed."""
    while True:
        try:
            yield pickle.load(sys.stdin.buffer)
        except (EOFError, pickle.UnpicklingError):
            return


def _cores() -> int:
    """Returns how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
