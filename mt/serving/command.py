"""``python -m mt serve``: serves models over HTTP to other programs and to a web page."""

import asyncio
import contextlib
import logging
import re
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from mt.config import ServingConfig
from mt.core.device import choose_device, limit_kernel_caches, warn_of_slow_precision
from mt.core.errors import InputError
from mt.core.process import ENDING
from mt.serving.handlers import LibreTranslate, Page
from mt.serving.models import ServedModels, open_served_models
from mt.serving.requests import MAX_BODY_BYTES, Endpoint, Handler, RateLimiter, json_response

logger = logging.getLogger(__name__)

RESPONSE_SECONDS = 10.0
"""The time in seconds that a client has to read a response."""
SWITCH_SECONDS = 0.0005
"""The time in seconds after which a Python thread releases the interpreter's lock. A search acquires the lock after
each operation. With Python's default of 5 ms, it would be many times slower while another thread divides texts."""
BACKLOG = 2048
"""The maximum number of connections that the operating system queues before the server accepts them."""
PAGE_FOLDER = Path(__file__).with_name("page")
PAGE_FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
"""Maps the path of a route to a file in PAGE_FOLDER and its media type."""
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""The response headers of the page. They forbid inline scripts and content from other servers."""


def serve(config: ServingConfig) -> None:
    """Load the models and serve them until a signal of ENDING, then answer the waiting requests and return.

    A second Ctrl-C ends the server at once.

    Raises:
        InputError: A model cannot be used, or the server cannot listen at ``host`` and ``port``.
    """
    limit_kernel_caches()
    sys.setswitchinterval(SWITCH_SECONDS)
    if config.threads:
        torch.set_num_threads(config.threads)
    with listening_socket(config) as listening:
        served = open_served_models(config)
        for model in served.models:
            logger.info("%s: %s to %s", model.name, model.source, model.target)
        warn_of_slow_precision(config.precision, choose_device(config.device))
        _, max_files = resource.getrlimit(resource.RLIMIT_NOFILE)  # each connection is an open file
        with contextlib.suppress(ValueError, OSError):  # macOS reports no limit, but has one
            resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))
        host, port = listening.getsockname()[:2]
        logger.info("listening at http://%s:%d", f"[{host}]" if ":" in host else host, port)
        # uvicorn handles SIGINT and SIGTERM alone, and these even if they are ignored.
        uvicorn.server.HANDLED_SIGNALS = tuple(n for n in ENDING if signal.getsignal(n) is not signal.SIG_IGN)  # type: ignore[assignment]
        server(config, served).run(sockets=[listening])


def server(config: ServingConfig, served: ServedModels) -> uvicorn.Server:
    """Return a uvicorn server of the application. Its method ``run`` serves until a signal arrives."""
    return uvicorn.Server(
        uvicorn.Config(
            application(served, config),
            http=_http_protocol(config.seconds + RESPONSE_SECONDS),
            ws="none",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=int(config.seconds + RESPONSE_SECONDS),
        )
    )


def listening_socket(config: ServingConfig) -> socket.socket:
    """Return a socket that listens at the config's host and port.

    It is opened before the models, because these take long to load.

    Raises:
        InputError: There is no such host, or the port is in use or not permitted.
    """
    try:
        family, *_, address = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
        opened = socket.create_server(address[:2], family=family, backlog=BACKLOG)
        # asyncio only disables Nagle's algorithm, which delays each response by 40 ms, for a socket that declares the
        # protocol TCP. create_server cannot declare it, so the socket is made again from its file descriptor.
        return socket.socket(opened.family, opened.type, socket.IPPROTO_TCP, fileno=opened.detach())
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such host"
        raise InputError(f"host={config.host} port={config.port}: {reason}; set another host or port") from error


def _http_protocol(idle_seconds: float) -> type[asyncio.Protocol]:
    """Return a subclass of uvicorn's HTTP protocol that closes a connection if no request begins in ``idle_seconds``.

    The client of such a connection is idle, sends a header very slowly, or reads a response very slowly.
    """

    class IdleTimeoutProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._schedule_check()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._check.cancel()

        def _schedule_check(self) -> None:
            self._check = self.loop.call_later(idle_seconds, self._close_if_idle, self.cycle)

        def _close_if_idle(self, last: object) -> None:
            """Close the connection if no request has begun since ``last``, the newest request at the last check."""
            if self.cycle is last:
                self.transport.abort()
            else:
                self._schedule_check()

    return IdleTimeoutProtocol


_SCHEME_AND_HOST = re.compile(r"\A\w+://[^/]*")
_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Accept, Authorization, Cache-Control, Content-Type, Origin, X-File-Name, "
    "X-Requested-With",
    "Access-Control-Max-Age": "86400",
    "X-Content-Type-Options": "nosniff",
}
"""The headers of all responses. Like LibreTranslate, the server sends those of CORS even without an origin."""


def client_middleware(app: ASGIApp) -> ASGIApp:
    """Return an ASGI application that normalizes the path of each request and adds _HEADERS to each response.

    The scheme, the host, repeated slashes and a slash at the end are removed from the path: clients append
    ``/translate`` to an address that ends in a slash, and some proxies send the whole URL.
    """

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        path = re.sub("/+", "/", _SCHEME_AND_HOST.sub("", scope["path"])).strip("/")
        await app({**scope, "path": f"/{path}"}, receive, send_with_headers)

    return call


def application(served: ServedModels, config: ServingConfig) -> Starlette:
    """Return an ASGI application with the routes of LibreTranslate and the page.

    Before it shuts down, all waiting requests are answered.
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
    routes = [
        Route(path, Response((PAGE_FOLDER / name).read_bytes(), 200, PAGE_HEADERS, media_type), methods=["GET"])
        for path, (name, media_type) in PAGE_FILES.items()
    ]
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
        middleware=[Middleware(client_middleware)],
        exception_handlers={HTTPException: refuse},
        lifespan=lifespan,
    )
