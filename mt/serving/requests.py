"""Converts requests to values and answers to responses, within the limits of each client."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mt.serving.batching import Overloaded, TooManyTokens

Answer = TypeVar("Answer")
Values = dict[str, Any]
"""The members of a JSON object, or the fields of a form and of the query."""

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 2**20
MAX_DISCARDED_BYTES = 2**26
"""A body above this size is refused without waiting for its end. Most clients read no answer before they have sent
everything, so the rest of a smaller one is read and discarded."""
MAX_FORM_FIELDS = 1000


class Clients:
    """Counts the texts of each client in a minute."""

    def __init__(self, per_minute: int) -> None:
        """``per_minute`` is the maximum for a client, known by its address. 0: no limit."""
        self._per_minute = per_minute
        self._minute = 0
        self._counts: Counter[str] = Counter()

    def count(self, address: str, count: int) -> None:
        """Add texts to the total of a client in this minute. Raise HTTPException 429 beyond the limit."""
        minute, second = divmod(int(time.monotonic()), 60)
        if minute != self._minute:
            self._minute, self._counts = minute, Counter()
        self._counts[address] += count
        if 0 < self._per_minute < self._counts[address]:
            raise HTTPException(
                429, f"Slowdown: {self._per_minute} per 1 minute", headers={"Retry-After": str(60 - second)}
            )


@dataclass(frozen=True)
class Endpoint:
    """Answers the requests for one route."""

    answer: Callable[[Values], Awaitable[object]]
    """Returns the answer to a request's values, a JSON value, or raises HTTPException."""
    clients: Clients
    seconds: float
    """Maximum time for a request."""

    async def respond(self, request: Request) -> Response:
        """Return the response to a request. If the client leaves, its request is dropped.

        Raises:
            HTTPException: The request cannot be answered.
        """
        values = None
        try:
            async with asyncio.timeout(self.seconds):
                values = await _values(request)
                asked = values.get("q")
                address = request.client.host if request.client else ""
                self.clients.count(address, len(asked) if isinstance(asked, list) and asked else 1)
                return as_json(await _unless_gone(request, self.answer(values)))
        except HTTPException:
            raise
        except ClientDisconnect:
            return Response()  # nobody gets it
        except TimeoutError:
            if values is None:
                raise HTTPException(408, f"The request did not arrive within {self.seconds:g} seconds") from None
            raise HTTPException(503, f"Not answered within {self.seconds:g} seconds: try again later") from None
        except Overloaded:
            raise HTTPException(503, "The server is overloaded: try again later", {"Retry-After": "5"}) from None
        except TooManyTokens as error:
            raise HTTPException(400, f"Invalid request: {error}") from None
        except Exception:  # the queue has logged it, if it came from a model
            logger.exception("%s", request.url.path)
            raise HTTPException(500, "Cannot translate text") from None


def as_json(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a value as JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(text, status, headers, media_type="application/json")


async def _values(request: Request) -> Values:
    """Return the values of a request. Raise HTTPException if the body is too large or not of its content type."""
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
                request.headers, chunks(), max_files=0, max_fields=MAX_FORM_FIELDS, max_part_size=MAX_BODY_BYTES
            ).parse()
            values = dict(form)
        else:
            values = dict(parse_qsl(body.decode("utf-8", "replace"), True, max_num_fields=MAX_FORM_FIELDS))
    except (ValueError, RecursionError, MultiPartException):
        values = None
    if not isinstance(values, dict):
        raise HTTPException(400, f"Invalid {'JSON' if 'json' in content_type else 'form'} format")
    return dict(request.query_params) | values


async def _body(request: Request) -> bytes:
    declared = int(request.headers.get("content-length", 0))
    parts, size = [], 0
    # A client that expects a go-ahead is told before it sends anything.
    if declared <= (MAX_BODY_BYTES if "expect" in request.headers else MAX_DISCARDED_BYTES):
        async for part in request.stream():
            size += len(part)
            if size <= MAX_BODY_BYTES:
                parts.append(part)
            elif size > MAX_DISCARDED_BYTES:
                break
    if max(size, declared) > MAX_BODY_BYTES:
        raise HTTPException(413, f"Invalid request: request exceeds size limit ({MAX_BODY_BYTES} bytes)")
    return b"".join(parts)


async def _unless_gone(request: Request, answer: Awaitable[Answer]) -> Answer:
    """Return an answer. If the client leaves in the meantime, cancel it and raise ClientDisconnect."""

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
