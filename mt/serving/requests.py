"""Reads HTTP requests, calls their handlers and writes the responses. Limits the rate, time and size of requests."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mt.config import ServingConfig
from mt.core.errors import InputError
from mt.serving.batching import OverloadedError, TooManyTokensError
from mt.serving.models import ServedModel
from mt.text.glossary import term_finder, validate_pairs
from mt.text.terms import TermFinder

Answer = TypeVar("Answer")
Fields = dict[str, Any]
"""The fields of a request: those of its JSON object or form, and those of its query string. ``q`` is a list if the
request has it several times."""
Handler = Callable[[Fields], Awaitable[object]]
"""Takes the fields of a request and returns the JSON value of the response. It may raise HTTPException, or InputError
for status 400."""

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 2**20
MAX_DISCARDED_BYTES = 2**26
"""A body above this size is refused before its end. A smaller body that is too large is read to its end and discarded,
because most clients read the response only after they have sent everything."""
MAX_FORM_FIELDS = 1000


class RateLimiter:
    """Limits the number of texts that each client sends per minute. Clients are identified by their addresses.

    All endpoints of a server share an instance.
    """

    def __init__(self, max_per_minute: int) -> None:
        """
        Args:
            max_per_minute: The maximum number of texts per client and minute. 0: no limit.
        """
        self._max_per_minute = max_per_minute
        self._minute = 0
        self._counts: Counter[str] = Counter()

    def count(self, address: str, texts: int) -> None:
        """Add the number of texts in a request to the count of a client. All counts restart each minute.

        Raises:
            HTTPException: 429: The count of the client in this minute exceeds the limit.
        """
        minute, second = divmod(int(time.monotonic()), 60)
        if minute != self._minute:
            self._minute, self._counts = minute, Counter()
        self._counts[address] += texts
        if 0 < self._max_per_minute < self._counts[address]:
            message = f"Slowdown: {self._max_per_minute} per 1 minute: try again in {60 - second} s"
            raise HTTPException(429, message, headers={"Retry-After": str(60 - second)})


@dataclass(frozen=True)
class Endpoint:
    """The request handler of a path, with its limits."""

    method: str
    handler: Handler
    limiter: RateLimiter | None
    """The rate limiter. None: requests are not counted."""
    seconds: float
    """The maximum time from the header of a request to its response."""
    max_bytes: int
    """The maximum size of a body. 0: bodies of at most MAX_DISCARDED_BYTES are accepted and discarded."""

    async def respond(self, request: Request) -> Response:
        """Read a request, count its texts for the rate limit, and return the response.

        If the client disconnects, the work is canceled.

        Raises:
            HTTPException: The status and message of a response that is an error.
        """
        if request.method == "OPTIONS":
            return Response(headers={"Allow": f"{self.method}, OPTIONS"})
        values = None
        try:
            async with asyncio.timeout(self.seconds):
                values = await _read_fields(request, self.max_bytes)
                if self.limiter:
                    texts = values.get("q")
                    address = request.client.host if request.client else ""
                    self.limiter.count(address, len(texts) if isinstance(texts, list) and texts else 1)
                return json_response(await _cancel_on_disconnect(request, self.handler(values)))
        except HTTPException:
            raise
        except ClientDisconnect:
            return Response()  # the client is no longer there to receive it
        except TimeoutError:
            if values is None:
                raise HTTPException(
                    408, f"The request did not arrive within {self.seconds:g} seconds: send it again, or send less text"
                ) from None
            raise HTTPException(
                503, f"Not answered within {self.seconds:g} seconds: try again later, or send less text"
            ) from None
        except OverloadedError:
            raise HTTPException(503, "The server is overloaded: try again later", {"Retry-After": "5"}) from None
        except (InputError, TooManyTokensError) as error:
            raise HTTPException(400, f"Invalid request: {error}") from None
        except Exception:  # the Batcher of a model also logs its errors
            logger.exception("%s %s failed, and its client gets status 500", request.method, request.url.path)
            raise HTTPException(500, "Cannot translate text: the log of the server has the reason") from None


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an HTTP response with a value as JSON. Lone surrogates become question marks."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(text, status, headers, media_type="application/json")


async def _read_fields(request: Request, max_bytes: int) -> Fields:
    """Read the fields of a request from its JSON object or form, and from its query string.

    If a field is in both, JSON has precedence over the query string, and the query string over a form. Files in a
    form are ignored.

    Raises:
        HTTPException: 400: The body is not valid for its content type, or not a JSON object. 413: It is too large.
    """
    body = await _read_body(request, max_bytes)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        query = _parse_form(request.scope["query_string"])
        if content_type == "application/json" or content_type.endswith("+json"):
            # Mastodon declares JSON for requests without a body. JSON other than an object raises TypeError.
            return _merge_fields(query) | json.loads(body or b"{}")
        if content_type == "multipart/form-data":

            async def chunks() -> AsyncGenerator[bytes, None]:
                yield body

            # By default, the parser decodes bytes that are invalid in the charset as Latin-1. Decoding all of them as
            # Latin-1 is reversible.
            form = await MultiPartParser(
                Headers({"content-type": f"{request.headers['content-type']}; charset=latin-1"}),
                chunks(),
                max_files=MAX_FORM_FIELDS,
                max_fields=MAX_FORM_FIELDS,
                max_part_size=MAX_BODY_BYTES,
            ).parse()
            fields = [
                (name, value.encode("latin-1").decode()) for name, value in form.multi_items() if isinstance(value, str)
            ]
            return _merge_fields(query + fields)
        return _merge_fields(query + _parse_form(body))
    except (ValueError, TypeError, RecursionError, MultiPartException):
        kind = "JSON" if "json" in content_type else "form"
        raise HTTPException(
            400, f"Invalid {kind} format: send the fields as {kind} in UTF-8, with the matching Content-Type"
        ) from None


def _parse_form(form: bytes) -> list[tuple[str, str]]:
    """Return the fields of a form or query string. Raise ValueError if they are not in UTF-8 or too many."""
    return parse_qsl(form.decode(), True, errors="strict", max_num_fields=MAX_FORM_FIELDS)


def _merge_fields(fields: Sequence[tuple[str, str]]) -> Fields:
    """Return the first value of each field, and for ``q`` a list of all values if it is repeated."""
    values: Fields = dict(reversed(fields))
    texts = [value for name, value in fields if name == "q"]
    return values | {"q": texts} if len(texts) > 1 else values


async def _read_body(request: Request, max_bytes: int) -> bytes:
    """Read the body of a request. Raise HTTPException 413 if it exceeds ``max_bytes`` (see ``Endpoint``)."""
    limit = max_bytes or MAX_DISCARDED_BYTES
    declared = int(request.headers.get("content-length", 0))
    parts, size = [], 0
    # A client that sends "Expect: 100-continue" is refused before it sends the body.
    if declared <= (limit if "expect" in request.headers else MAX_DISCARDED_BYTES):
        async for part in request.stream():
            size += len(part)
            if size <= max_bytes:
                parts.append(part)
            elif size > MAX_DISCARDED_BYTES:
                break
    if max(size, declared) > limit:
        raise HTTPException(413, f"Invalid request: request exceeds size limit ({limit} bytes): send less text")
    return b"".join(parts)


async def _cancel_on_disconnect(request: Request, answer: Awaitable[Answer]) -> Answer:
    """Await and return an answer. Cancel it if the client disconnects before.

    Raises:
        ClientDisconnect: The client has disconnected.
    """

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(disconnected())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise ClientDisconnect
        return answering.result()
    finally:
        answering.cancel()
        leaving.cancel()


def requested_terms(values: Fields, model: ServedModel, config: ServingConfig) -> TermFinder | None:
    """Return a finder for the terms in the field ``glossary``; None without terms.

    The field is a list of pairs of a term and its translation. In a form, the list is written as JSON.

    Raises:
        InputError: The field is not such a list or exceeds the limits ``texts`` and ``characters``, a pair cannot be
            used, or the model has no placeholders.
    """
    pairs = values.get("glossary")
    try:
        pairs = json.loads(pairs) if isinstance(pairs, str) and pairs else pairs
    except (ValueError, RecursionError):
        raise InputError("glossary parameter is not valid JSON") from None
    if not pairs:
        return None
    pairs = validate_pairs(pairs)
    characters = sum(map(len, chain.from_iterable(pairs)))
    for size, limit, unit in ((len(pairs), config.texts, "pairs"), (characters, config.characters, "characters")):
        if size > limit:
            raise InputError(f"glossary has {size} {unit}, more than {limit}: send fewer")
    return term_finder(pairs, model.translator.layer)
