"""Translates together what waits together.

Each model has one queue and one thread. The thread takes as much as fits into a batch from what is waiting, translates
it, and comes back. So a request that finds the thread idle is translated at once, and requests that arrive in the
meantime become one batch.

A batch takes one item of each waiting request in turn. So a request with one sentence gets into the next batch even if
another one with a thousand sentences was there first.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)

BATCH_SIZE = 4096
"""A batch takes no further items once it has this size, in characters. Larger batches are hardly faster, and who comes
later waits for them longer."""


class Overloaded(Exception):
    """As many requests are waiting as the queue may hold."""


@dataclass(eq=False)
class _Request(Generic[Item, Answer]):
    """Items that were asked for together. They may be answered in several batches."""

    kind: str
    items: Sequence[Item]
    sizes: Sequence[int]
    answers: list[Answer | None]
    future: asyncio.Future[list[Answer]]
    begun: int = 0
    """How many items have been taken into batches. They are taken in order."""
    answered: int = 0
    failure: Exception | None = None


class Batcher(Generic[Item, Answer]):
    """Answers items in batches, in a thread of its own.

    Example::

        batcher = Batcher(lambda kind, items: [item.upper() for item in items], capacity=100)
        await batcher.answers("text", ["a", "b"], sizes=[1, 1])  # ["A", "B"]
    """

    def __init__(
        self,
        work: Callable[[str, list[Item]], list[Answer]],
        capacity: int,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            work: Returns the answer to each item of a batch, in order. All items of a batch are of one kind, which is
                the first argument.
            capacity: The most requests that may wait. What a request waits for is one item of each of the others, so
                their sizes do not count.
            prepare: Called once, first of all, in the thread that does the work.
        """
        self._work = work
        self._capacity = capacity
        self._waiting: deque[_Request[Item, Answer]] = deque()
        """The requests with items that no batch has taken yet."""
        self._changed = Condition()
        self._closing = False
        self._thread = Thread(target=self._run, args=(prepare,), name="translating", daemon=True)
        self._thread.start()

    async def answers(self, kind: str, items: Sequence[Item], sizes: Sequence[int]) -> list[Answer]:
        """Returns the answer to each item, in order. If the caller is cancelled, what has not begun is dropped.

        Raises:
            Overloaded: The queue is full.
            Exception: What ``work`` raised for an item, by itself.
        """
        if not items:
            return []
        request: _Request[Item, Answer] = _Request(
            kind, items, sizes, [None] * len(items), asyncio.get_running_loop().create_future()
        )
        with self._changed:
            if self._closing or len(self._waiting) >= self._capacity:
                raise Overloaded
            self._waiting.append(request)
            self._changed.notify()
        try:
            return await request.future
        finally:
            if request.answered < len(items):
                self._drop(request)

    def close(self) -> None:
        """Answers what is waiting and ends the thread. What comes later is refused."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _drop(self, request: _Request[Item, Answer]) -> None:
        """Takes a request out of the queue."""
        with self._changed:
            if request in self._waiting:
                self._waiting.remove(request)

    def _run(self, prepare: Callable[[], None]) -> None:
        prepare()
        while batch := self._next_batch():
            self._answer(batch)

    def _next_batch(self) -> list[tuple[_Request[Item, Answer], int]]:
        """Waits until there is something to do, and returns items of one kind: their requests, and their numbers there.
        Returns an empty list at the end."""
        batch: list[tuple[_Request[Item, Answer], int]] = []
        size = passed_over = 0
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            while passed_over < len(self._waiting) and size < BATCH_SIZE:
                request = self._waiting.popleft()
                if batch and request.kind != batch[0][0].kind:
                    self._waiting.append(request)
                    passed_over += 1
                    continue
                batch.append((request, request.begun))
                size += request.sizes[request.begun]
                request.begun += 1
                if request.begun < len(request.items):
                    self._waiting.append(request)
                passed_over = 0
        return batch

    def _answer(self, batch: list[tuple[_Request[Item, Answer], int]]) -> None:
        """Answers a batch. If that fails, answers each of its items by itself, so that only the culprit fails."""
        kind = batch[0][0].kind
        try:
            answers = self._work(kind, [request.items[number] for request, number in batch])
            for (request, number), answer in zip(batch, answers, strict=True):
                request.answers[number] = answer
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    self._answer([one])
                return
            logger.exception("an item of kind %s could not be answered", kind)
            batch[0][0].failure = error
        for request, _ in batch:
            request.answered += 1
        done = [one for one in dict.fromkeys(one for one, _ in batch) if one.failure or one.answered == len(one.items)]
        if done:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it all that waited
                done[0].future.get_loop().call_soon_threadsafe(_deliver, done)


def _deliver(requests: Sequence[_Request]) -> None:
    """Hands over what was asked for, unless nobody waits for it any more."""
    for request in requests:
        if request.future.done():
            continue
        if request.failure:
            request.future.set_exception(request.failure)
        else:
            request.future.set_result(request.answers)
