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
from mt.serving import apertium, libretranslate
from mt.serving.apertium import Apertium, is_apertium
from mt.serving.libretranslate import LibreTranslate
from mt.serving.middleware import ClientMiddleware
from mt.serving.models import ServedModels
from mt.serving.page import Page, file_routes
from mt.serving.requests import MAX_BODY_BYTES, Endpoint, Handler, RateLimiter, Values, json_response


def application(served: ServedModels, config: ServingConfig) -> Starlette:
    """Return an ASGI application with the routes of LibreTranslate, Apertium and the page.

    When it shuts down, all waiting requests are answered first.
    """
    libre, apy, page = LibreTranslate(served, config), Apertium(served, config), Page(served, config)
    limiter = RateLimiter(config.texts_per_minute)

    async def translate(values: Values) -> object:
        return await (apy if "langpair" in values else libre).translate(values)

    counted: dict[str, dict[str, Handler]] = {
        "/translate": {"GET": apy.translate, "POST": translate},
        "/identifyLang": dict.fromkeys(("GET", "POST"), apy.identify),
        "/detect": {"POST": libre.detect},
        "/page/translate": {"POST": page.translate},
        "/page/attention": {"POST": page.attention},
    }
    uncounted: dict[str, dict[str, Handler]] = {
        "/list": dict.fromkeys(("GET", "POST"), apy.modes),
        "/listPairs": dict.fromkeys(("GET", "POST"), apy.modes),
        "/languages": {"GET": libre.languages},
        "/health": {"GET": libre.health},
        "/frontend/settings": {"GET": libre.settings},
        "/spec": {"GET": libre.spec},
        "/suggest": {"POST": libre.suggest},
        "/translate_file": {"POST": libre.translate_file},
        "/page/models": {"GET": page.models},
    }
    routes = file_routes()
    for path, handlers in (counted | uncounted).items():
        max_bytes = 0 if path == "/translate_file" else MAX_BODY_BYTES
        endpoint = Endpoint(handlers, limiter if path in counted else None, config.seconds, max_bytes)
        routes.append(Route(path, endpoint.respond, methods=[*handlers, "OPTIONS"]))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        for model in served.models:
            await asyncio.to_thread(model.batcher.close)

    async def refuse(request: Request, error: Exception) -> Response:
        """Return the response to an HTTPException, in the error format of the API that the route belongs to."""
        assert isinstance(error, HTTPException)
        values, status = getattr(request.state, "values", {}), error.status_code
        if is_apertium(request.method, request.url.path, values):
            return apertium.response(values, apertium.as_error(status, error.detail), status, error.headers)
        return json_response(libretranslate.as_error(error.detail), status, error.headers)

    return Starlette(
        routes=routes,
        middleware=[Middleware(ClientMiddleware)],
        exception_handlers={HTTPException: refuse},
        lifespan=lifespan,
    )
