"""Shares a model among requests, so that none waits long for another.

Each core has a thread, called a lane. It answers requests in batches: it cuts their texts into sources (sentences, or
parts of long ones), has the model search their translations, and puts these together.

Short requests that wait together become one batch. A lane that searches for long requests looks for short ones before
each step of the search, and answers them at once. Long requests share their time: a batch takes one source of each in
turn. Where both kinds wait, a lane takes them in turn.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from threading import Condition, Thread
from time import monotonic
from typing import Any, Protocol

logger = logging.getLogger(__name__)

MAX_SHORT = 1000
"""The most characters of a short request."""
MAX_CUT_CHARACTERS = 4096
"""A lane that cuts items begins no other one once it has cut this many characters."""
MAX_WAITING_PIECES = 200_000
"""No items are cut while so many pieces wait, because they take memory."""
MIN_BATCH_PIECES, MAX_BATCH_PIECES = 100, 800
"""A batch takes no further sources once it has this many pieces. Larger batches are hardly faster, and requests that
come later wait for them longer. Idle lanes share what waits in batches of at least the smaller number."""
LONG_SHARE = 0.1
"""The share of its time that a lane spends on the search for a long request while short requests keep coming."""

Sources = list[list[int]]


class Overloaded(Exception):
    """The queue holds as many requests as it may."""


class TooManyTokens(Exception):
    """A request has more tokens than it may have."""


class Work(Protocol):
    """Answers items, in three steps that different threads may take."""

    def cut(self, kind: str, item: Any) -> tuple[Any, Sources]:
        """Return what ``finish`` needs of an item, and its sources. ``kind`` says what is asked for."""

    def search(self, sources: Sources, before_step: Callable[[], None]) -> list[Any]:
        """Return what is found for each source of a batch. ``before_step`` may be called often, and may do work."""

    def finish(self, kind: str, cut: Any, found: list[Any]) -> Any:
        """Return the answer to an item, given what was found for its sources."""


@dataclass(eq=False)
class _Item:
    """An item of a request that has been cut."""

    request: "_Request"
    number: int
    cut: Any
    found: list[Any]
    """What was found for each source; None until then."""
    left: int
    """The number of sources for which nothing has been found."""


@dataclass(frozen=True)
class _Source:
    """A source of an item, with its number there."""

    item: _Item
    number: int
    pieces: list[int]


@dataclass(eq=False)
class _Request:
    """Items that were asked for together."""

    kind: str
    items: Sequence[Any]
    sizes: Sequence[int]
    future: asyncio.Future[list[Any]]
    answers: list[Any]
    left: int
    """The number of items without an answer."""
    next_item: int = 0
    """The number of the next item to be cut."""
    waiting: deque[_Source] = field(default_factory=deque)
    """The sources that no batch has taken."""
    pieces: int = 0
    """The pieces of all its sources so far."""
    failure: Exception | None = None
    is_over: bool = False
    """Whether it needs no further work: it is answered, has failed, or nobody waits for it."""

    @property
    def is_cut(self) -> bool:
        return self.next_item == len(self.items)


class _Queue:
    """The requests of one size, short or long ones, with items to cut or sources to search. The first is next."""

    def __init__(self) -> None:
        self.requests: deque[_Request] = deque()
        self.pieces = 0
        """The pieces of all waiting sources."""
        self.cutting = False
        """Whether a lane cuts items."""
        self.last_was_cut = False
        """Whether the last task was to cut items."""

    def take_items(self) -> list[tuple[_Request, int]]:
        """Take items to cut, one of each request in turn."""
        items: list[tuple[_Request, int]] = []
        size = 0
        while size < MAX_CUT_CHARACTERS and (request := next((r for r in self.requests if not r.is_cut), None)):
            items.append((request, request.next_item))
            size += request.sizes[request.next_item]
            request.next_item += 1
            self.settle(request)
        return items

    def take_sources(self, lanes: int) -> list[_Source]:
        """Take a batch of sources, one of each request in turn: the share of one of so many lanes."""
        most = min(MAX_BATCH_PIECES, max(MIN_BATCH_PIECES, ceil(self.pieces / lanes)))
        batch: list[_Source] = []
        pieces = 0
        while pieces < most and (request := next((r for r in self.requests if r.waiting), None)):
            batch.append(request.waiting.popleft())
            pieces += len(batch[-1].pieces)
            self.settle(request)
        self.pieces -= pieces
        return batch

    def settle(self, request: _Request) -> None:
        """Put a request behind the others, or take it out if there is nothing left to take of it."""
        if request in self.requests:
            self.requests.remove(request)
        if not request.is_over and (request.waiting or not request.is_cut):
            self.requests.append(request)


class Batcher:
    """Answers the requests to one model, in threads of its own.

    Example::

        batcher = Batcher(work, capacity=100, max_pieces=50_000, lanes=2)
        await batcher.answers("text", ["I am here.", "You are there."], sizes=[10, 14])
    """

    def __init__(
        self,
        work: Work,
        capacity: int,
        max_pieces: int,
        lanes: int,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            work: Answers items.
            capacity: The most requests that may wait.
            max_pieces: The most pieces of a request.
            lanes: The number of threads.
            prepare: Called once in each thread, first of all.
        """
        self._work = work
        self._capacity = capacity
        self._max_pieces = max_pieces
        self._short, self._long = _Queue(), _Queue()
        self._changed = Condition()
        self._idle = 0
        """The number of lanes that wait for something to do."""
        self._closing = False
        self._lanes = [
            Thread(target=self._run, args=(prepare,), name=f"translating {number}", daemon=True)
            for number in range(lanes)
        ]
        for lane in self._lanes:
            lane.start()

    async def answers(self, kind: str, items: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """Return the answer to each item, in order. If the caller is cancelled, what has not begun is dropped.

        Args:
            kind: What is asked for.
            items: The items.
            sizes: The characters of each.

        Raises:
            Overloaded: The queue is full.
            TooManyTokens: The request is too long.
            Exception: An item by itself raised it.
        """
        if not items:
            return []
        future = asyncio.get_running_loop().create_future()
        request = _Request(kind, items, sizes, future, [None] * len(items), len(items))
        with self._changed:
            if self._closing or self.waiting >= self._capacity:
                raise Overloaded
            self._queue_of(request).requests.append(request)
            self._changed.notify()
        try:
            return await future
        finally:
            self._end(request)

    @property
    def waiting(self) -> int:
        """The number of requests with items or sources that no lane has taken."""
        return len(self._short.requests) + len(self._long.requests)

    def close(self) -> None:
        """Answer what is waiting and end the threads. What comes later is refused."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for lane in self._lanes:
            lane.join()

    def _queue_of(self, request: _Request) -> _Queue:
        return self._short if sum(request.sizes) <= MAX_SHORT else self._long

    def _end(self, request: _Request) -> None:
        """Take a request out of its queue, whether it is answered or not."""
        with self._changed:
            request.is_over = True
            queue = self._queue_of(request)
            queue.pieces -= sum(len(source.pieces) for source in request.waiting)
            request.waiting.clear()
            queue.settle(request)

    def _run(self, prepare: Callable[[], None]) -> None:
        """Do the work of one lane."""
        prepare()
        queues = [self._short, self._long]
        while task := self._next_task(queues):
            task()
            queues.reverse()

    def _next_task(self, queues: Sequence[_Queue]) -> Callable[[], None] | None:
        """Wait until there is something to do, and return it, from the first queue that has any; None at the end."""
        with self._changed:
            while True:
                for queue in queues:
                    if task := self._task(queue):
                        return task
                if self._closing and not self.waiting:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1

    def _task(self, queue: _Queue) -> Callable[[], None] | None:
        """Return something to do for the requests of a queue; None if there is nothing.

        Items come first, because they tell whether a request is too long. But only one lane at a time cuts items: more
        would wait for the interpreter's lock. A lane alone cuts and searches in turn.
        """
        may_cut = not queue.cutting and queue.pieces < MAX_WAITING_PIECES
        sources_first = queue.last_was_cut and len(self._lanes) == 1
        for cuts in (False, True) if sources_first else (True, False):
            if cuts and may_cut and (items := queue.take_items()):
                queue.cutting = queue.last_was_cut = True
                return partial(self._cut_all, queue, items)
            if not cuts and (sources := queue.take_sources(1 + self._idle)):
                queue.last_was_cut = False
                before_step = self._between_steps() if queue is self._long else lambda: None
                return partial(self._search, sources, before_step)
        return None

    def _between_steps(self) -> Callable[[], None]:
        """Return a function that answers short requests between two steps of a search for long ones."""
        not_before = 0.0

        def answer_short() -> None:
            nonlocal not_before
            # Read without the lock, because this is called before every step.
            if not self._short.requests or (began := monotonic()) < not_before:
                return
            for _ in range(2):  # to cut items, and to search for them
                with self._changed:
                    task = self._task(self._short)
                if task:
                    task()
            now = monotonic()
            not_before = now + (now - began) * LONG_SHARE / (1 - LONG_SHARE)

        return answer_short

    def _cut_all(self, queue: _Queue, items: list[tuple[_Request, int]]) -> None:
        for request, number in items:
            if not request.is_over:
                self._cut(queue, request, number)
        with self._changed:
            queue.cutting = False
            self._changed.notify_all()

    def _cut(self, queue: _Queue, request: _Request, number: int) -> None:
        """Cut an item into sources, and queue them. Answer it, if it has none."""
        try:
            cut, sources = self._work.cut(request.kind, request.items[number])
        except Exception as error:
            self._fail(request, error)
            return
        item = _Item(request, number, cut, [None] * len(sources), len(sources))
        with self._changed:
            request.pieces += sum(map(len, sources))
            if not request.is_over:
                request.waiting.extend(_Source(item, place, pieces) for place, pieces in enumerate(sources))
                queue.pieces += sum(map(len, sources))
                if request not in queue.requests:
                    queue.settle(request)
        if request.pieces > self._max_pieces:
            self._fail(request, TooManyTokens(f"request exceeds token limit ({self._max_pieces})"))
        elif not sources:
            self._finish(item)

    def _search(self, batch: list[_Source], before_step: Callable[[], None]) -> None:
        """Search a batch of sources. If that fails, search each by itself, so that only the culprit's request fails."""
        try:
            found = self._work.search([source.pieces for source in batch], before_step)
        except Exception as error:
            if len(batch) > 1:
                for source in batch:
                    if not source.item.request.is_over:
                        self._search([source], before_step)
            else:
                self._fail(batch[0].item.request, error)
            return
        for source, hypotheses in zip(batch, found, strict=True):
            item = source.item
            with self._changed:
                item.found[source.number] = hypotheses
                item.left -= 1
                is_complete = item.left == 0
            if is_complete and not item.request.is_over:
                self._finish(item)

    def _finish(self, item: _Item) -> None:
        """Answer an item for whose sources everything has been found."""
        request = item.request
        try:
            request.answers[item.number] = self._work.finish(request.kind, item.cut, item.found)
        except Exception as error:
            self._fail(request, error)
            return
        with self._changed:
            request.left -= 1
            is_answered = request.left == 0
        if is_answered:
            _deliver(request)

    def _fail(self, request: _Request, error: Exception) -> None:
        if not isinstance(error, TooManyTokens):
            logger.exception("an item of kind %s could not be answered", request.kind)
        request.failure = error
        self._end(request)
        _deliver(request)


def _deliver(request: _Request) -> None:
    """Hand over the answers, or the failure, unless nobody waits for them any more."""

    def deliver() -> None:
        if request.future.done():
            return
        if request.failure:
            request.future.set_exception(request.failure)
        else:
            request.future.set_result(request.answers)

    with contextlib.suppress(RuntimeError):  # the loop has ended, and with it all that waited
        request.future.get_loop().call_soon_threadsafe(deliver)
