"""Builds the ASGI application of the server: its routes and its error responses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mt.config import ServingConfig
from mt.serving.libretranslate import LibreTranslate
from mt.serving.middleware import ClientMiddleware
from mt.serving.models import ServedModels
from mt.serving.page import Page, file_routes
from mt.serving.requests import MAX_BODY_BYTES, Endpoint, Handler, RateLimiter, json_response


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
