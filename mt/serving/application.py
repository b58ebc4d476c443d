"""Builds the ASGI application of the server: its routes, its error responses and its CORS headers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mt.config import ServingConfig
from mt.serving import apertium, libretranslate
from mt.serving.apertium import Apertium
from mt.serving.libretranslate import LibreTranslate
from mt.serving.models import ServedModels
from mt.serving.page import Page, file_routes
from mt.serving.requests import Endpoint, RateLimiter, json_response


def application(served: ServedModels, config: ServingConfig) -> Starlette:
    """Return an ASGI application with the routes of LibreTranslate, Apertium and the page.

    When it shuts down, all waiting requests are answered first.
    """
    libre, apy, page = LibreTranslate(served, config), Apertium(served, config), Page(served, config)
    limiter = RateLimiter(config.texts_per_minute)
    routes = file_routes()
    apertium_handlers = {"GET /translate": apy.translate, "GET /listPairs": apy.pairs}
    handlers = {
        "POST /translate": libre.translate,
        "POST /detect": libre.detect,
        "GET /languages": libre.languages,
        "GET /health": libre.health,
        "GET /frontend/settings": libre.settings,
        "GET /page/models": page.models,
        "POST /page/translate": page.translate,
        "POST /page/attention": page.attention,
    } | apertium_handlers
    for route, handler in handlers.items():
        method, path = route.split()
        routes.append(Route(path, Endpoint(handler, limiter, config.seconds).respond, methods=[method]))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        for model in served.models:
            await asyncio.to_thread(model.batcher.close)

    async def refuse(request: Request, error: Exception) -> Response:
        """Return the response to an HTTPException, in the error format of the API that the route belongs to."""
        assert isinstance(error, HTTPException)
        api = apertium if f"{request.method} {request.url.path}" in apertium_handlers else libretranslate
        return json_response(api.as_error(error.status_code, error.detail), error.status_code, error.headers)

    # As in LibreTranslate, web pages of any origin and browser extensions may use the server.
    cors = Middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type"],
        max_age=86_400,
    )
    return Starlette(routes=routes, middleware=[cors], exception_handlers={HTTPException: refuse}, lifespan=lifespan)
