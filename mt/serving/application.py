"""The server as an ASGI application."""

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
from mt.serving.requests import Clients, Endpoint, as_json


def application(served: ServedModels, config: ServingConfig) -> Starlette:
    """Return the application. When it ends, all models answer their waiting requests first."""
    libre, apy, page = LibreTranslate(served, config), Apertium(served, config), Page(served, config)
    clients = Clients(config.requests_per_minute)
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
        routes.append(Route(path, Endpoint(handler, clients, config.seconds).respond, methods=[method]))

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        yield
        for model in served.models:
            await asyncio.to_thread(model.batcher.close)

    async def refuse(request: Request, error: Exception) -> Response:
        """Answer with an error as the API of the route writes it."""
        assert isinstance(error, HTTPException)
        api = apertium if f"{request.method} {request.url.path}" in apertium_handlers else libretranslate
        return as_json(api.as_error(error.status_code, error.detail), error.status_code, error.headers)

    # As LibreTranslate does, so that pages from elsewhere and extensions of browsers can use the server.
    anywhere = Middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type"],
        max_age=86_400,
    )
    return Starlette(routes=routes, middleware=[anywhere], exception_handlers={HTTPException: refuse}, lifespan=running)
