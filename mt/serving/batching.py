"""Shares one model among many requests, so that no request waits long for another.

Each CPU core has a thread that answers requests in batches. The thread divides the texts of the requests into sources
(sentences, or parts of long sentences), searches for the translations of a batch of sources, and joins these to texts.

Short requests that wait at the same time become one batch. While a thread searches for long requests, it checks for
short requests before each decoding step and answers them at once. Long requests share the time: a batch takes one
source from each in turn. If both short and long requests are waiting, a thread alternates between them.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from threading import Condition, Thread
from time import monotonic
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

logger = logging.getLogger(__name__)

MAX_SHORT_CHARACTERS = 1000
"""Maximum length of a short request; longer ones are long requests."""
MAX_SEGMENTED_CHARACTERS = 4096
"""A thread takes items to divide into sources until they have this many characters."""
MIN_BATCH_TOKENS, MAX_BATCH_TOKENS = 100, 800
"""A batch takes sources until it has MAX_BATCH_TOKENS. Larger batches are hardly faster, and later requests would wait
longer for them. Idle threads share the waiting sources, in batches of at least MIN_BATCH_TOKENS."""

MAX_WAITING_TOKENS = 200_000
"""While this many tokens wait in a queue, no more texts are divided into sources, to save memory."""
LONG_SHARE = 0.1
"""The share of its time that a thread spends on a search for long requests while short requests keep arriving."""

Sources = list[list[int]]
"""The token ids of each source."""


@dataclass(eq=False)
class Request:
    """A request of a client, such as for the translation of some lines. It has one or more items, such as lines.

    ``Batcher.answer`` creates it.
    """

    work: "Work"
    """Performs the steps of an answer."""
    queue: "Queue"
    """The queue of its items and sources."""
    answers: list[Any]
    """The answer to each item. None until it is known."""
    future: Future[list[Any]] = field(default_factory=Future)
    """Receives the answers to all items, or the error of one. It is done if the request needs no further work: it is
    answered, has failed, or its client has disconnected."""
    tokens: int = 0
    """The number of tokens in the items that have been divided into sources."""


@dataclass(eq=False)
class RequestItem:
    """An item of a request: a line to translate, or a line and a translation whose attention is computed."""

    request: Request
    number: int
    """Its index in the request, from 0."""
    content: Any
    """The item that the client sent, and later the first result of ``Work.segment`` for it."""
    size: int
    """Its length in characters."""
    results: list[Any] = field(default_factory=list)
    """The search result of each source. None until it is known."""


class Source(NamedTuple):
    """A source of an item: a sentence, or a part of a long one."""

    item: RequestItem
    number: int
    """Its index among the item's sources, from 0."""
    tokens: list[int]
    """Its token ids."""

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.tokens)


Waiting = TypeVar("Waiting", RequestItem, Source)


class RoundRobin(Generic[Waiting]):
    """The waiting items or sources of several requests. They are taken from each request in turn."""

    def __init__(self) -> None:
        self.by_request: dict[Request, deque[Waiting]] = {}
        """The waiting items of each request, the next request first."""
        self.size = 0
        """The total size of all waiting items."""

    def put(self, request: Request, waiting: Sequence[Waiting]) -> None:
        """Add items of a request after its other items."""
        if waiting:
            self.by_request.setdefault(request, deque()).extend(waiting)
            self.size += sum(item.size for item in waiting)

    def take(self, max_size: int) -> list[Waiting]:
        """Remove and return the next items, until their sizes add up to at least ``max_size``."""
        batch: list[Waiting] = []
        size = 0
        while size < max_size and self.by_request:
            request = next(iter(self.by_request))
            waiting = self.by_request.pop(request)
            batch.append(waiting.popleft())
            size += batch[-1].size
            if waiting:
                self.by_request[request] = waiting  # behind all others
        self.size -= size
        return batch

    def remove(self, request: Request) -> None:
        """Remove all items of a request."""
        self.size -= sum(item.size for item in self.by_request.pop(request, ()))


class Queue:
    """The waiting items and sources of a Batcher. It has a queue for short and one for long requests.

    A queue is only used while the Batcher's lock is held.
    """

    def __init__(self) -> None:
        self.items = RoundRobin[RequestItem]()
        """The items that have not been divided into sources."""
        self.sources = RoundRobin[Source]()
        """The sources that have not been searched."""
        self.is_segmenting = False
        """Whether a thread is dividing items of this queue."""
        self.last_was_segmenting = False
        """Whether the last task from this queue was to divide items."""

    @property
    def requests(self) -> set[Request]:
        """The requests with waiting items or sources."""
        return {*self.items.by_request, *self.sources.by_request}

    def remove(self, request: Request) -> None:
        """Remove all items and sources of a request that is done."""
        self.items.remove(request)
        self.sources.remove(request)


class OverloadedError(Exception):
    """Raised for a request that is refused because too many requests are waiting or the server is shutting down."""


class TooManyTokensError(Exception):
    """Raised for a request with more than the maximum number of tokens."""


class Work(Protocol):
    """The interface of the three steps in which a Batcher answers an item of a request, such as a line to translate.

    Different threads may perform the steps at the same time. ``ServedModel`` implements them, with an instance for each
    direction of a model. A search can have sources of several instances.
    """

    def segment(self, item: Any) -> tuple[Any, Sources]:
        """Divide an item into sources.

        Returns:
            The prepared item for ``finish``, and the token ids of its sources. An item without sources is not searched.
        """

    def search(self, sources: Sources, works: Sequence[Any], before_step: Callable[[], None]) -> list[Any]:
        """Return the result of each source, in order.

        Args:
            sources: The token ids of each source.
            works: The instance to which each source belongs.
            before_step: Called before each decoding step.
        """

    def finish(self, prepared: Any, results: list[Any]) -> Any:
        """Return the answer to an item.

        Args:
            prepared: The first result of ``segment``.
            results: The result of each source of the item, in order.
        """


class Batcher:
    """Answers the requests to one model in separate threads. All directions of the model share a Batcher.

    Example::

        batcher = Batcher(capacity=100, max_tokens=50_000, threads=2)
        await batcher.answer(work, ["I am here.", "You are there."], sizes=[10, 14])
    """

    def __init__(
        self, capacity: int, max_tokens: int, threads: int, prepare: Callable[[], None] = lambda: None
    ) -> None:
        """
        Args:
            capacity: Maximum number of waiting requests.
            max_tokens: Maximum number of tokens in the sources of a request.
            threads: The number of threads, which are started here.
            prepare: Called once at the start of each thread.
        """
        self._capacity = capacity
        self._max_tokens = max_tokens
        self._short, self._long = Queue(), Queue()
        self._changed = Condition()
        self._idle = 0
        """The number of threads that wait for a task."""
        self._closing = False
        self._threads = [
            Thread(target=self._run, args=(prepare,), name=f"translating {number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def answer(self, work: Work, items: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """Answer a request: queue it, wait, and return the answer to each of its items, in order.

        If the caller is canceled, the rest of the work on the request is dropped.

        Args:
            work: Performs the three steps of an answer.
            items: The items, such as lines to translate.
            sizes: The number of characters of each item.

        Raises:
            OverloadedError: The maximum number of requests is waiting.
            TooManyTokensError: The request has too many tokens.
            Exception: ``Work`` raised it for one of the items.
        """
        if not items:
            return []
        queue = self._short if sum(sizes) <= MAX_SHORT_CHARACTERS else self._long
        request = Request(work, queue, [None] * len(items))
        contents = enumerate(zip(items, sizes, strict=True))
        with self._changed:
            if self._closing or self.waiting >= self._capacity:
                raise OverloadedError
            queue.items.put(request, [RequestItem(request, number, *content) for number, content in contents])
            self._changed.notify()
        try:
            return await asyncio.wrap_future(request.future)
        finally:
            request.future.cancel()  # has an effect only if the caller was canceled
            with self._changed:
                queue.remove(request)

    @property
    def waiting(self) -> int:
        """The number of requests with waiting items or sources.

        The work on other requests may not be finished yet.
        """
        with self._changed:
            return len(self._short.requests) + len(self._long.requests)

    def close(self) -> None:
        """Refuse new requests, answer the waiting ones, and wait for the threads to end."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self, prepare: Callable[[], None]) -> None:
        """Run one thread: perform the tasks of the short and the long queue in turn, until ``close``."""
        prepare()
        queues = [self._short, self._long]
        while True:
            with self._changed:
                while not (task := next(filter(None, map(self._take_task, queues)), None)):
                    if self._closing and not self.waiting:
                        return
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
            task()
            queues.reverse()

    def _take_task(self, queue: Queue) -> Callable[[], None] | None:
        """Take the next task from a queue: to divide items into sources, or to search a batch of sources.

        The caller holds the lock. Items are divided first, because this shows whether a request is too long. Only one
        thread at a time divides items of a queue, because several would wait for the interpreter's lock. If there is a
        single thread, it alternates between both kinds of task.

        Returns:
            A function that performs the task; None if there is none.
        """
        may_segment = not queue.is_segmenting and queue.sources.size < MAX_WAITING_TOKENS
        sources_first = queue.last_was_segmenting and len(self._threads) == 1
        share = ceil(queue.sources.size / (1 + self._idle))  # idle threads take the others
        batch_tokens = min(MAX_BATCH_TOKENS, max(MIN_BATCH_TOKENS, share))
        for segments in (False, True) if sources_first else (True, False):
            if segments and may_segment and (items := queue.items.take(MAX_SEGMENTED_CHARACTERS)):
                queue.is_segmenting = queue.last_was_segmenting = True
                return partial(self._segment, queue, items)
            if not segments and (sources := queue.sources.take(batch_tokens)):
                queue.last_was_segmenting = False
                before_step = self._short_request_hook() if queue is self._long else lambda: None
                return partial(self._search, sources, before_step)
        return None

    def _short_request_hook(self) -> Callable[[], None]:
        """Return the ``before_step`` of a search for long requests. It answers waiting short requests.

        After that, calls have no effect for a while, so that the search for long requests gets LONG_SHARE of the time.
        """
        not_before = 0.0

        def answer_short() -> None:
            nonlocal not_before
            # Read without the lock, because this is called before every decoding step.
            is_waiting = self._short.items.by_request or self._short.sources.by_request
            if not is_waiting or (began := monotonic()) < not_before:
                return
            for _ in range(2):  # divide items into sources, then search these
                with self._changed:
                    task = self._take_task(self._short)
                if task:
                    task()
            now = monotonic()
            not_before = now + (now - began) * LONG_SHARE / (1 - LONG_SHARE)

        return answer_short

    def _segment(self, queue: Queue, items: list[RequestItem]) -> None:
        """Divide items into sources and queue these. Then permit other threads to divide items of this queue.

        An item without sources is answered at once. If an item fails or its request has too many tokens, the whole
        request fails.
        """
        for item in items:
            request = item.request
            if request.future.done():
                continue
            try:
                item.content, sources = request.work.segment(item.content)
            except Exception as error:
                self._fail(request, error)
                continue
            item.results = [None] * len(sources)
            with self._changed:
                request.tokens += sum(map(len, sources))
                if not request.future.done():
                    request.queue.sources.put(request, [Source(item, *source) for source in enumerate(sources)])
            if request.tokens > self._max_tokens:
                self._fail(
                    request, TooManyTokensError(f"request exceeds token limit ({self._max_tokens}): divide the text")
                )
            elif not sources:
                self._finish(item)
        with self._changed:
            queue.is_segmenting = False
            self._changed.notify_all()

    def _search(self, batch: list[Source], before_step: Callable[[], None]) -> None:
        """Search a batch of sources, and answer the items whose results are then complete.

        If the search fails, each source is searched separately, so that only the request with the faulty source fails.
        """
        try:
            works = [source.item.request.work for source in batch]
            results = works[0].search([source.tokens for source in batch], works, before_step)
        except Exception as error:
            if len(batch) == 1:
                self._fail(batch[0].item.request, error)
                return
            for source in batch:
                if not source.item.request.future.done():
                    self._search([source], before_step)
            return
        for (item, number, _), result in zip(batch, results, strict=True):
            with self._changed:
                item.results[number] = result
                is_complete = None not in item.results
            if is_complete and not item.request.future.done():
                self._finish(item)

    def _finish(self, item: RequestItem) -> None:
        """Compute the answer to an item from its results. If it is the last item, answer the request."""
        request = item.request
        try:
            answer = request.work.finish(item.content, item.results)
        except Exception as error:
            self._fail(request, error)
            return
        with self._changed:
            request.answers[item.number] = answer
            is_answered = None not in request.answers
        if is_answered:
            with contextlib.suppress(InvalidStateError):  # the client has disconnected
                request.future.set_result(request.answers)

    def _fail(self, request: Request, error: Exception) -> None:
        """Answer a request with an error, and drop the rest of its work. Log errors other than TooManyTokensError."""
        if not isinstance(error, TooManyTokensError):
            logger.exception("a request failed")
        with contextlib.suppress(InvalidStateError):  # another item has failed, or the client has disconnected
            request.future.set_exception(error)
        with self._changed:
            request.queue.remove(request)
