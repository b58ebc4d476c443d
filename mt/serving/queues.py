"""Requests that wait for a model, and the order of their work."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple, TypeVar

MAX_SHORT_CHARACTERS = 1000
"""Maximum length of a short request."""
MAX_CUT_CHARACTERS = 4096
"""A lane begins to cut no other item once it has cut this many characters."""
MIN_BATCH_TOKENS, MAX_BATCH_TOKENS = 100, 800
"""A batch takes no further sources once it has this many tokens. Larger batches are hardly faster, and later requests
wait for them longer. Idle lanes share the waiting sources in batches of at least the smaller number."""


class Request:
    """Items that a client asked for together."""

    def __init__(self, queue: "Queue", kind: str, items: Sequence[Any], sizes: Sequence[int]) -> None:
        self.queue = queue
        self.kind = kind
        self.future: Future[list[Any]] = Future()
        self.answers: list[Any] = [None] * len(items)
        self.unanswered = len(items)
        """The number of items without an answer."""
        self.uncut = deque(Item(self, number, *each) for number, each in enumerate(zip(items, sizes, strict=True)))
        self.unsearched: deque[Source] = deque()
        """The sources that no batch has taken."""
        self.tokens = 0
        """The tokens of all its sources so far."""

    @property
    def is_over(self) -> bool:
        """Whether it needs no further work: it is answered, has failed, or its client has left."""
        return self.future.done()


@dataclass(eq=False)
class Item:
    """An item of a request."""

    request: Request
    number: int
    content: Any
    """The item as the client sent it, or as it was cut."""
    size: int
    """Its length in characters."""
    results: list[Any] = field(default_factory=list)
    """The result of each source; None before its search."""
    unsearched: int = 0
    """The number of sources without a result."""


class Source(NamedTuple):
    """A source of an item, with its number there."""

    item: Item
    number: int
    tokens: list[int]

    @property
    def size(self) -> int:
        return len(self.tokens)


Piece = TypeVar("Piece", Item, Source)


class Queue:
    """The short or the long requests that have items to cut or sources to search. The first one is next."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.tokens = 0
        """The tokens of all waiting sources."""
        self.cutting = False
        """Whether a lane cuts items."""
        self.last_was_cut = False
        """Whether the last task was to cut items."""

    def take_items(self) -> list[Item]:
        """Take items to cut."""
        return self._take(lambda request: request.uncut, MAX_CUT_CHARACTERS)

    def take_sources(self, lanes: int) -> list[Source]:
        """Take a batch of sources: the share of one of ``lanes`` lanes."""
        share = min(MAX_BATCH_TOKENS, max(MIN_BATCH_TOKENS, ceil(self.tokens / lanes)))
        batch = self._take(lambda request: request.unsearched, share)
        self.tokens -= sum(source.size for source in batch)
        return batch

    def _take(self, waiting: Callable[[Request], deque[Piece]], enough: int) -> list[Piece]:
        """Take one piece of each request in turn, until together they have the size that is enough."""
        pieces: list[Piece] = []
        size = 0
        while size < enough and (request := next(filter(waiting, self.requests), None)):
            pieces.append(waiting(request).popleft())
            size += pieces[-1].size
            self.requeue(request)
        return pieces

    def put_sources(self, item: Item, sources: Sequence[list[int]]) -> None:
        """Add the sources of an item."""
        request, tokens = item.request, sum(map(len, sources))
        request.tokens += tokens
        if not request.is_over:
            request.unsearched += (Source(item, number, source) for number, source in enumerate(sources))
            self.tokens += tokens
            if request not in self.requests:
                self.requeue(request)

    def remove(self, request: Request) -> None:
        """Take out a request that is over."""
        self.tokens -= sum(source.size for source in request.unsearched)
        request.unsearched.clear()
        self.requeue(request)

    def requeue(self, request: Request) -> None:
        """Put a request behind the others, or take it out if there is nothing left to take of it."""
        if request in self.requests:
            self.requests.remove(request)
        if not request.is_over and (request.unsearched or request.uncut):
            self.requests.append(request)
