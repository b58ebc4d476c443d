"""From a request to its values and from an answer to a response, within the limits that keep clients from disturbing
each other."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mt.serving.batching import Overloaded, TooManyTokens

Found = TypeVar("Found")
Values = dict[str, Any]
"""What a client sent: the members of a JSON object, or the fields of a form and of the query."""

logger = logging.getLogger(__name__)

MOST_BYTES = 2**20
"""The largest body that is read."""
MOST_BYTES_PASSED_OVER = 2**26
"""A larger body is refused without waiting for its end. Most clients read no answer before they have sent everything,
so the rest of a body that is too large is read and forgotten, up to this size."""
MOST_FIELDS = 1000
"""The most fields of a form."""


class Clients:
    """Counts what each client asks for in a minute."""

    def __init__(self, per_minute: int) -> None:
        """``per_minute`` is the most that a client, known by its address, may ask for. 0: as much as it likes."""
        self._per_minute = per_minute
        self._minute = 0
        self._taken: Counter[str] = Counter()

    def take(self, address: str, count: int) -> None:
        """Raise HTTPException if it is too much for this minute."""
        minute, second = divmod(int(time.monotonic()), 60)
        if minute != self._minute:
            self._minute, self._taken = minute, Counter()
        self._taken[address] += count
        if 0 < self._per_minute < self._taken[address]:
            raise HTTPException(
                429, f"Slowdown: {self._per_minute} per 1 minute", headers={"Retry-After": str(60 - second)}
            )


class Endpoint:
    """What answers the requests for one route."""

    def __init__(
        self,
        answer: Callable[[Values], Awaitable[object]],
        as_error: Callable[[int, str], object],
        clients: Clients,
        seconds: float,
    ) -> None:
        """
        Args:
            answer: Returns the answer to a request's values, which becomes JSON, or raises HTTPException.
            as_error: Returns the answer that tells a status code and a message.
            clients: How much each has asked for.
            seconds: The longest that a request may take.
        """
        self._answer = answer
        self._as_error = as_error
        self._clients = clients
        self._seconds = seconds

    async def respond(self, request: Request) -> Response:
        """Return the response to a request. If the client leaves, what it asked for is dropped."""
        try:
            return as_json(await self._answered(request))
        except ClientDisconnect:
            return Response()  # nobody gets it
        except Overloaded:
            error = HTTPException(503, "The server is overloaded: try again later", headers={"Retry-After": "5"})
        except TooManyTokens as refusal:
            error = HTTPException(400, f"Invalid request: {refusal}")
        except HTTPException as refusal:
            error = refusal
        except Exception:  # the queue has logged it, if it came from a model
            logger.exception("%s", request.url.path)
            error = HTTPException(500, "Cannot translate text")
        return as_json(self._as_error(error.status_code, error.detail), error.status_code, error.headers)

    async def _answered(self, request: Request) -> object:
        values = None
        try:
            async with asyncio.timeout(self._seconds):
                values = await _values(request)
                asked = values.get("q")
                address = request.client.host if request.client else ""
                self._clients.take(address, len(asked) if isinstance(asked, list) and asked else 1)
                return await _unless_gone(request, self._answer(values))
        except TimeoutError:
            if values is None:
                raise HTTPException(408, f"The request did not arrive within {self._seconds:g} seconds") from None
            raise HTTPException(503, f"Not answered within {self._seconds:g} seconds: try again later") from None


def as_json(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a value as JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(text, status, headers, media_type="application/json")


async def _values(request: Request) -> Values:
    """Raise HTTPException if the body is too large, or not what it is said to be."""
    body = await _body(request)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    values: object
    try:
        if content_type == "application/json" or content_type.endswith("+json"):
            values = json.loads(body or b"{}")  # Mastodon says of requests without a body, too, that it is JSON
        elif content_type == "multipart/form-data":

            async def chunks() -> AsyncGenerator[bytes, None]:
                yield body

            form = await MultiPartParser(
                request.headers, chunks(), max_files=0, max_fields=MOST_FIELDS, max_part_size=MOST_BYTES
            ).parse()
            values = dict(form)
        else:
            values = dict(parse_qsl(body.decode("utf-8", "replace"), True, max_num_fields=MOST_FIELDS))
    except (ValueError, RecursionError, MultiPartException):
        values = None
    if not isinstance(values, dict):
        raise HTTPException(400, f"Invalid {'JSON' if 'json' in content_type else 'form'} format")
    return dict(request.query_params) | values


async def _body(request: Request) -> bytes:
    declared = int(request.headers.get("content-length", 0))
    parts, size = [], 0
    # A client that expects a go-ahead is told before it sends anything.
    if declared <= (MOST_BYTES if "expect" in request.headers else MOST_BYTES_PASSED_OVER):
        async for part in request.stream():
            size += len(part)
            if size <= MOST_BYTES:
                parts.append(part)
            elif size > MOST_BYTES_PASSED_OVER:
                break
    if max(size, declared) > MOST_BYTES:
        raise HTTPException(413, f"Invalid request: request exceeds size limit ({MOST_BYTES} bytes)")
    return b"".join(parts)


async def _unless_gone(request: Request, answer: Awaitable[Found]) -> Found:
    """Return what is awaited. Raises ClientDisconnect, and cancels it, if the client leaves in the meantime."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(gone())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise ClientDisconnect
        return answering.result()
    finally:
        answering.cancel()
        leaving.cancel()
