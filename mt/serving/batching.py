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
from collections.abc import Callable, Sequence
from concurrent.futures import InvalidStateError
from functools import partial
from threading import Condition, Thread
from time import monotonic
from typing import Any, Protocol

from mt.serving.queues import MAX_SHORT_CHARACTERS, Item, Queue, Request, Source

logger = logging.getLogger(__name__)

MAX_WAITING_TOKENS = 200_000
"""No items are cut while so many tokens wait, because they take memory."""
LONG_SHARE = 0.1
"""The share of its time that a lane spends on the search for a long request while short requests keep coming."""

Sources = list[list[int]]


class Overloaded(Exception):
    """The queue holds the maximum number of requests."""


class TooManyTokens(Exception):
    """A request has more than the maximum number of tokens."""


class Work(Protocol):
    """Answers items, in three steps that different threads may take."""

    def cut(self, kind: str, item: Any) -> tuple[Any, Sources]:
        """Return the cut item, which ``finish`` takes, and its sources."""

    def search(self, sources: Sources, before_step: Callable[[], None]) -> list[Any]:
        """Return the result of each source. ``before_step`` may be called often, and may do work."""

    def finish(self, kind: str, cut: Any, results: list[Any]) -> Any:
        """Return the answer to a cut item, given the results of its sources."""


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
        max_tokens: int,
        lanes: int,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            work: Answers items.
            capacity: Maximum number of waiting requests.
            max_tokens: Maximum number of tokens in a request.
            lanes: The number of threads.
            prepare: Called once in each thread, first of all.
        """
        self._work = work
        self._capacity = capacity
        self._max_tokens = max_tokens
        self._short, self._long = Queue(), Queue()
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
        """Return the answer to each item, in order. Cancelling the caller drops all work that has not begun.

        Args:
            kind: The kind of answer, for ``Work``.
            items: The items.
            sizes: The characters of each.

        Raises:
            Overloaded: The queue is full.
            TooManyTokens: The request is too long.
            Exception: An item by itself raised it.
        """
        if not items:
            return []
        queue = self._short if sum(sizes) <= MAX_SHORT_CHARACTERS else self._long
        request = Request(queue, kind, items, sizes)
        with self._changed:
            if self._closing or self.waiting >= self._capacity:
                raise Overloaded
            queue.requests.append(request)
            self._changed.notify()
        try:
            return await asyncio.wrap_future(request.future)
        finally:
            request.future.cancel()  # has no effect unless the client has left
            with self._changed:
                queue.remove(request)

    @property
    def waiting(self) -> int:
        """The number of requests with items or sources that no lane has taken."""
        return len(self._short.requests) + len(self._long.requests)

    def close(self) -> None:
        """Answer all waiting requests, refuse later ones, and end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for lane in self._lanes:
            lane.join()

    def _run(self, prepare: Callable[[], None]) -> None:
        """Do the work of one lane."""
        prepare()
        queues = [self._short, self._long]
        while task := self._next_task(queues):
            task()
            queues.reverse()

    def _next_task(self, queues: Sequence[Queue]) -> Callable[[], None] | None:
        """Wait until there is something to do, and return it, from the first queue that has any; None at the end."""
        with self._changed:
            while not (task := next(filter(None, map(self._task, queues)), None)):
                if self._closing and not self.waiting:
                    break
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return task

    def _task(self, queue: Queue) -> Callable[[], None] | None:
        """Return something to do for the requests of a queue; None if there is nothing.

        Items come first, because they tell whether a request is too long. But only one lane at a time cuts items: more
        would wait for the interpreter's lock. A lane alone cuts and searches in turn.
        """
        may_cut = not queue.cutting and queue.tokens < MAX_WAITING_TOKENS
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

    def _cut_all(self, queue: Queue, items: list[Item]) -> None:
        for item in items:
            if not item.request.is_over:
                self._cut(item)
        with self._changed:
            queue.cutting = False
            self._changed.notify_all()

    def _cut(self, item: Item) -> None:
        """Cut an item into sources, and queue them. Answer it, if it has none."""
        request = item.request
        try:
            item.content, sources = self._work.cut(request.kind, item.content)
        except Exception as error:
            self._fail(request, error)
            return
        item.results, item.unsearched = [None] * len(sources), len(sources)
        with self._changed:
            request.queue.put_sources(item, sources)
        if request.tokens > self._max_tokens:
            self._fail(request, TooManyTokens(f"request exceeds token limit ({self._max_tokens})"))
        elif not sources:
            self._finish(item)

    def _search(self, batch: list[Source], before_step: Callable[[], None]) -> None:
        """Search a batch of sources. If that fails, search each by itself, so that only the culprit's request fails."""
        try:
            results = self._work.search([source.tokens for source in batch], before_step)
        except Exception as error:
            if len(batch) == 1:
                self._fail(batch[0].item.request, error)
                return
            for source in batch:
                if not source.item.request.is_over:
                    self._search([source], before_step)
            return
        for (item, number, _), result in zip(batch, results, strict=True):
            with self._changed:
                item.results[number] = result
                item.unsearched -= 1
                is_complete = item.unsearched == 0
            if is_complete and not item.request.is_over:
                self._finish(item)

    def _finish(self, item: Item) -> None:
        """Answer an item whose sources all have results."""
        request = item.request
        try:
            request.answers[item.number] = self._work.finish(request.kind, item.content, item.results)
        except Exception as error:
            self._fail(request, error)
            return
        with self._changed:
            request.unanswered -= 1
            is_answered = request.unanswered == 0
        if is_answered:
            with contextlib.suppress(InvalidStateError):  # its client has left
                request.future.set_result(request.answers)

    def _fail(self, request: Request, error: Exception) -> None:
        if not isinstance(error, TooManyTokens):
            logger.exception("an item of kind %s could not be answered", request.kind)
        with contextlib.suppress(InvalidStateError):  # another item has failed, or its client has left
            request.future.set_exception(error)
        with self._changed:
            request.queue.remove(request)
