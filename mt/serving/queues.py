"""Requests that wait for a model, and the order of their work."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

MAX_SHORT_CHARACTERS = 1000
"""Maximum length of a short request."""
MAX_CUT_CHARACTERS = 4096
"""A lane begins to cut no other item once it has cut this many characters."""
MIN_BATCH_TOKENS, MAX_BATCH_TOKENS = 100, 800
"""A batch takes no further sources once it has this many tokens. Larger batches are hardly faster, and later requests
wait for them longer. Idle lanes share the waiting sources in batches of at least the smaller number."""


@dataclass(eq=False)
class Request:
    """Items that a client asked for together."""

    kind: str
    items: Sequence[Any]
    sizes: Sequence[int]
    """The characters of each item."""
    future: asyncio.Future[list[Any]]
    answers: list[Any]
    unanswered: int
    """The number of items without an answer."""
    next_item: int = 0
    """The number of the next item to cut."""
    waiting: deque["Source"] = field(default_factory=deque)
    """The sources that no batch has taken."""
    tokens: int = 0
    """The tokens of all its sources so far."""
    failure: Exception | None = None
    is_over: bool = False
    """Whether it needs no further work: it is answered, has failed, or its client has left."""

    @property
    def is_cut(self) -> bool:
        return self.next_item == len(self.items)

    def deliver(self) -> None:
        """Hand over the answers, or the failure, unless the client has left."""

        def set_future() -> None:
            if self.future.done():
                return
            if self.failure:
                self.future.set_exception(self.failure)
            else:
                self.future.set_result(self.answers)

        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it all clients
            self.future.get_loop().call_soon_threadsafe(set_future)


@dataclass(eq=False)
class Item:
    """An item of a request after it was cut."""

    request: Request
    number: int
    cut: Any
    results: list[Any]
    """The result of each source; None before its search."""
    unsearched: int
    """The number of sources without a result."""


@dataclass(frozen=True)
class Source:
    """A source of an item, with its number there."""

    item: Item
    number: int
    tokens: list[int]


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

    def take_items(self) -> list[tuple[Request, int]]:
        """Take items to cut, one of each request in turn."""
        items: list[tuple[Request, int]] = []
        size = 0
        while size < MAX_CUT_CHARACTERS and (request := next((r for r in self.requests if not r.is_cut), None)):
            items.append((request, request.next_item))
            size += request.sizes[request.next_item]
            request.next_item += 1
            self.requeue(request)
        return items

    def take_sources(self, lanes: int) -> list[Source]:
        """Take a batch of sources, one of each request in turn: the share of one of ``lanes`` lanes."""
        max_tokens = min(MAX_BATCH_TOKENS, max(MIN_BATCH_TOKENS, ceil(self.tokens / lanes)))
        batch: list[Source] = []
        tokens = 0
        while tokens < max_tokens and (request := next((r for r in self.requests if r.waiting), None)):
            batch.append(request.waiting.popleft())
            tokens += len(batch[-1].tokens)
            self.requeue(request)
        self.tokens -= tokens
        return batch

    def put_sources(self, item: Item, sources: Sequence[list[int]]) -> None:
        """Add the sources of an item."""
        request, tokens = item.request, sum(map(len, sources))
        request.tokens += tokens
        if not request.is_over:
            request.waiting.extend(Source(item, number, source) for number, source in enumerate(sources))
            self.tokens += tokens
            if request not in self.requests:
                self.requeue(request)

    def remove(self, request: Request) -> None:
        """Take out a request that is over."""
        request.is_over = True
        self.tokens -= sum(len(source.tokens) for source in request.waiting)
        request.waiting.clear()
        self.requeue(request)

    def requeue(self, request: Request) -> None:
        """Put a request behind the others, or take it out if there is nothing left to take of it."""
        if request in self.requests:
            self.requests.remove(request)
        if not request.is_over and (request.waiting or not request.is_cut):
            self.requests.append(request)
