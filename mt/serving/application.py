"""Builds the ASGI application of the server: its routes, its error responses, and the paths and origins it accepts."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mt.config import ServingConfig
from mt.serving.libretranslate import LibreTranslate
from mt.serving.models import ServedModels
from mt.serving.page import Page, file_routes
from mt.serving.requests import MAX_BODY_BYTES, Endpoint, Handler, RateLimiter, json_response

_SCHEME_AND_HOST = re.compile(r"\A\w+://[^/]*")
_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Accept, Authorization, Cache-Control, Content-Type, Origin, X-File-Name, "
    "X-Requested-With",
    "Access-Control-Max-Age": "86400",
    "X-Content-Type-Options": "nosniff",
}
"""LibreTranslate sends those of CORS with every response, whether or not the request names an origin."""


class ClientMiddleware:
    """ASGI middleware that normalises the path of each request and adds _HEADERS to each response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app({**scope, "path": normalized_path(scope["path"])}, receive, send_with_headers)


def normalized_path(target: str) -> str:
    """Return the path of a request target without scheme, host, repeated slashes and a slash at its end.

    Clients append ``/translate`` to an address that ends in a slash, and some proxies send the whole URL.
    """
    return "/" + re.sub("/+", "/", _SCHEME_AND_HOST.sub("", target)).strip("/")


def application(served: ServedModels, config: ServingConfig) -> Starlette:
    """Return an ASGI application with the routes of LibreTranslate and the page.

    When it shuts down, all waiting requests are answered first.
    """
    libre, page = LibreTranslate(served, config), Page(served, config)
    limiter = RateLimiter(config.texts_per_minute)
    counted: dict[str, Handler] = {
        "/translate": libre.translate,
        "/detect": libre.detect,
        "/page/translate": page.translate,
        "/page/attention": page.attention,
    }
    posted = counted | {"/suggest": libre.suggest, "/translate_file": libre.translate_file}
    fetched: dict[str, Handler] = {
        "/languages": libre.languages,
        "/health": libre.health,
        "/frontend/settings": libre.settings,
        "/spec": libre.spec,
        "/page/models": page.models,
    }
    routes = file_routes()
    for path, handler in (posted | fetched).items():
        method = "POST" if path in posted else "GET"
        max_bytes = 0 if path == "/translate_file" else MAX_BODY_BYTES
        endpoint = Endpoint(method, handler, limiter if path in counted else None, config.seconds, max_bytes)
        routes.append(Route(path, endpoint.respond, methods=[method, "OPTIONS"]))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        for model in served.models:
            await asyncio.to_thread(model.batcher.close)

    async def refuse(request: Request, error: Exception) -> Response:
        """Return the response to an HTTPException, in LibreTranslate's format."""
        assert isinstance(error, HTTPException)
        return json_response({"error": error.detail}, error.status_code, error.headers)

    return Starlette(
        routes=routes,
        middleware=[Middleware(ClientMiddleware)],
        exception_handlers={HTTPException: refuse},
        lifespan=lifespan,
    )
