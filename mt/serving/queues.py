"""The queues of requests that wait for a model, and the order of the work on them."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple, TypeVar

MAX_SHORT_CHARACTERS = 1000
"""Maximum length of a short request; longer ones are long requests."""
MAX_SEGMENTED_CHARACTERS = 4096
"""A thread takes no further item to cut once the items it has taken have this many characters."""
MIN_BATCH_TOKENS, MAX_BATCH_TOKENS = 100, 800
"""A batch takes no further sources once it has MAX_BATCH_TOKENS: larger batches are hardly faster, and later requests
wait longer for them. If several threads are idle, they share the waiting sources, in batches of at least
MIN_BATCH_TOKENS."""


class Request:
    """One request of a client, such as for the translation of some lines. It has one or several items, such as lines.

    ``Batcher.answers`` makes it. Its Queue holds it while it has items to cut or sources to search.
    """

    def __init__(self, queue: "Queue", kind: str, items: Sequence[Any], sizes: Sequence[int]) -> None:
        self.queue = queue
        self.kind = kind
        self.future: Future[list[Any]] = Future()
        """Gets the answers of all items, or the error of one."""
        self.answers: list[Any] = [None] * len(items)
        """The answer to each item; None until it is known."""
        self.unanswered = len(items)
        """The number of items without an answer."""
        self.unsegmented = deque(
            RequestItem(self, number, *content_and_size)
            for number, content_and_size in enumerate(zip(items, sizes, strict=True))
        )
        """The items that no thread has taken to cut."""
        self.unsearched: deque[Source] = deque()
        """The sources that no batch has taken."""
        self.tokens = 0
        """The number of tokens in all items that are cut."""

    @property
    def is_over(self) -> bool:
        """Whether the request needs no further work: it is answered or has failed, or its client has left."""
        return self.future.done()


@dataclass(eq=False)
class RequestItem:
    """One item of a request: a line to translate, or a line with a translation to compute the attention of."""

    request: Request
    number: int
    """Its index in the request, from 0."""
    content: Any
    """The item as the client sent it; once it is cut, what ``Work.segment`` returned for it."""
    size: int
    """Its length in characters."""
    results: list[Any] = field(default_factory=list)
    """The result of each source; None until it is searched."""
    unsearched: int = 0
    """The number of sources without a result."""


class Source(NamedTuple):
    """One source of an item: a sentence, or a part of a long one.

    ``number`` is its index among the item's sources, from 0. ``tokens`` are its token ids.
    """

    item: RequestItem
    number: int
    tokens: list[int]

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.tokens)


Waiting = TypeVar("Waiting", RequestItem, Source)


class Queue:
    """The requests of a Batcher with items to cut or sources to search, the next one first.

    A Batcher has two queues, for short and for long requests, and calls their methods under its lock.
    """

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.tokens = 0
        """The number of tokens in all sources that no batch has taken."""
        self.is_segmenting = False
        """Whether a thread is cutting items of this queue."""
        self.last_was_segmenting = False
        """Whether the last task from this queue was to cut items."""

    def take_items(self) -> list[RequestItem]:
        """Remove and return items to cut, up to about MAX_SEGMENTED_CHARACTERS, one from each request in turn."""
        return self._take(lambda request: request.unsegmented, MAX_SEGMENTED_CHARACTERS)

    def take_sources(self, threads: int) -> list[Source]:
        """Remove and return a batch of sources, one from each request in turn.

        Args:
            threads: The number of threads that share the waiting sources; the batch is the share of one.
        """
        share = min(MAX_BATCH_TOKENS, max(MIN_BATCH_TOKENS, ceil(self.tokens / threads)))
        batch = self._take(lambda request: request.unsearched, share)
        self.tokens -= sum(source.size for source in batch)
        return batch

    def _take(self, waiting: Callable[[Request], deque[Waiting]], max_size: int) -> list[Waiting]:
        """Remove and return items or sources, one from each request in turn.

        Args:
            waiting: Returns the waiting items, or the waiting sources, of a request.
            max_size: No more are taken once their sizes add up to this.
        """
        batch: list[Waiting] = []
        size = 0
        while size < max_size and (request := next(filter(waiting, self.requests), None)):
            batch.append(waiting(request).popleft())
            size += batch[-1].size
            self.requeue(request)
        return batch

    def put_sources(self, item: RequestItem, sources: Sequence[list[int]]) -> None:
        """Add the sources (token ids) of an item. Its request joins the queue again if it has left it."""
        request, tokens = item.request, sum(map(len, sources))
        request.tokens += tokens
        if not request.is_over:
            request.unsearched += (Source(item, number, source) for number, source in enumerate(sources))
            self.tokens += tokens
            if request not in self.requests:
                self.requeue(request)

    def remove(self, request: Request) -> None:
        """Remove a request that is over, and its waiting sources."""
        self.tokens -= sum(source.size for source in request.unsearched)
        request.unsearched.clear()
        self.requeue(request)

    def requeue(self, request: Request) -> None:
        """Move a request behind all others, or remove it if it is over or has nothing left to cut or to search."""
        if request in self.requests:
            self.requests.remove(request)
        if not request.is_over and (request.unsearched or request.unsegmented):
            self.requests.append(request)
