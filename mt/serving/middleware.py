"""Accepts paths as clients send them, and allows web pages of any origin to use the server."""

import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
