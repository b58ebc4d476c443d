"""Call a function on many items in several processes.

``multiprocessing`` and ``concurrent.futures`` are of no use here: a spawned process imports the program's main file
again, which starts a script without a main guard a second time, and forking is unsafe in a process that has threads.
Here each process is a new Python interpreter. It ends with this process, even a killed one, because its standard input
is closed then.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import islice
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from mt.core.errors import RunError

MAX_PROCESSES = 4
"""The most processes. The limit is low because each takes some hundred MB of memory."""
FIRST_ITEMS = 20
"""The number of items that this process works on before it starts others, which takes a second or two."""

WorkItem = TypeVar("WorkItem")
WorkResult = TypeVar("WorkResult")


def in_order(work: Callable[[WorkItem], WorkResult], items: Iterable[WorkItem]) -> Iterator[WorkResult]:
    """Yield ``work(item)`` for each item, in the order of the items, computed in up to MAX_PROCESSES processes.

    Args:
        work: A function whose result depends on the item alone. The function, the items and the results must be
            picklable.
        items: The items. They are read in this process, only a few of them ahead of the results.

    Raises:
        RunError: One of the processes has ended early.
    """
    items = iter(items)
    yield from map(work, islice(items, FIRST_ITEMS))
    count = min(MAX_PROCESSES, available_cores())
    if count == 1:
        yield from map(work, items)
        return
    with closing(ProcessPool(work, count)) as pool:
        pending: deque[Future[WorkResult]] = deque()
        for item in items:
            if len(pending) == count:
                yield pending.popleft().result()
            pending.append(pool.submit(item))
        for future in pending:
            yield future.result()


class ProcessPool(Generic[WorkItem, WorkResult]):
    """Calls a function on items in several processes, which start when they are needed.

    A thread for each process waits for its results.
    """

    def __init__(self, work: Callable[[WorkItem], WorkResult], count: int) -> None:
        """
        Args:
            work: A function whose result depends on the item alone. The function, the items and the results must be
                picklable.
            count: The number of processes; 0 to call the function in this process.
        """
        self._work = work
        self._count = count
        self._threads: ThreadPoolExecutor | None = None
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        self._processes: list[_Process] = []

    def submit(self, item: WorkItem) -> "Future[WorkResult]":
        """Return the future result of the function for an item.

        Its ``result`` raises RunError if the process has ended early.
        """
        if not self._count:
            future = Future[WorkResult]()
            future.set_result(self._work(item))
            return future
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="processes")
        if len(self._processes) < self._count:
            self._processes.append(_Process(self._work))
            self._idle.put(self._processes[-1])
        return self._threads.submit(self._call, item)

    def close(self) -> None:
        """End the processes, whatever they are doing. The next ``submit`` starts others."""
        for process in self._processes:
            process.kill()
        if self._threads:
            self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            process.close()
        self._threads, self._processes, self._idle = None, [], SimpleQueue()

    def _call(self, item: WorkItem) -> WorkResult:
        process = self._idle.get()
        try:
            return process.call(item)
        finally:
            self._idle.put(process)


class _Process:
    """A process that receives a function and then works on one item at a time. A ``ProcessPool`` holds a few."""

    def __init__(self, work: Callable) -> None:
        self._work: Callable | None = work  # until the process has received it
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import _serve; _serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # so that Ctrl-C reaches only this process, which then ends the new one
        )

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Close the pipes of a process that was killed."""
        self._process.communicate()

    def call(self, item: Any) -> Any:
        """Return the result for an item."""
        if self._work:
            self._send(self._work)
            self._work = None
        self._send(item)
        return self._receive()

    def _send(self, content: object) -> None:
        assert self._process.stdin
        try:
            pickle.dump(content, self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._death() from None

    def _receive(self) -> Any:
        assert self._process.stdout
        try:
            return pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            raise self._death() from None

    def _death(self) -> RunError:
        code = self._process.wait()
        killed = code == -signal.SIGKILL
        advice = "the machine has probably run out of memory: free some" if killed else "its error is shown above"
        return RunError(f"a process that prepared the data has ended (exit code {code}); {advice}, and start again")


def _serve() -> None:
    """Run the main loop of a process: read a function and then items from the standard input, and write the result for
    each item to the standard output."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # if the parent process has been killed, this one ends, too
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that nothing which a library prints is taken for a result
    received = _received()
    work: Any = next(received, None)
    for item in received:
        pickle.dump(work(item), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _received() -> Iterator[Any]:
    """Yield the objects from the parent process, until it closes the pipe or is killed."""
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            yield pickle.load(sys.stdin.buffer)


def available_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
