"""``python -m mt serve``: answers other programs and a page in the browser until it is told to end."""

import asyncio
import contextlib
import logging
import resource
import socket
import sys

import torch
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from mt.config import ServingConfig
from mt.core.device import choose_device, limit_kernel_caches, slow_precision_warning
from mt.core.errors import InputError
from mt.serving.application import application
from mt.serving.models import ServedModels, open_models

logger = logging.getLogger(__name__)

GRACE_SECONDS = 10.0
"""Seconds for a client to read an answer."""
SWITCH_SECONDS = 0.0005
"""Seconds for which one thread of Python code keeps others waiting. A search takes the interpreter's lock again after
each operation, so with the default of 5 ms it would take many times as long while another thread cuts texts."""
BACKLOG = 2048
"""Maximum number of connections that wait to be accepted."""


def serve(config: ServingConfig) -> None:
    """Serve until SIGTERM or Ctrl-C, and then answer all waiting requests. A second signal ends the server at once.

    Raises:
        InputError: A model cannot be used, or there can be no server at this address.
    """
    limit_kernel_caches()
    sys.setswitchinterval(SWITCH_SECONDS)
    if config.threads:
        torch.set_num_threads(config.threads)
    with listening_socket(config) as listening:
        served = open_models(config)
        for model in served.models:
            logger.info("%s: %s to %s", model.name, model.source, model.target)
        if doubt := slow_precision_warning(config.precision, choose_device(config.device)):
            logger.warning("%s", doubt)
        _allow_many_connections()
        host, port = listening.getsockname()[:2]
        logger.info("listening at http://%s:%d", f"[{host}]" if ":" in host else host, port)
        server(config, served).run(sockets=[listening])


def server(config: ServingConfig, served: ServedModels) -> uvicorn.Server:
    """Return a server of models, which ``run`` starts on a socket."""
    return uvicorn.Server(
        uvicorn.Config(
            application(served, config),
            http=_protocol(patience=config.seconds + GRACE_SECONDS),
            ws="none",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=int(config.seconds + GRACE_SECONDS),
        )
    )


def listening_socket(config: ServingConfig) -> socket.socket:
    """Return a socket at the host and port. Open it before the models, whose loading takes long."""
    try:
        family, *_, address = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
        made = socket.create_server(address[:2], family=family, backlog=BACKLOG)
        # Made again from its number, the socket says that it is TCP. Only then does asyncio switch off Nagle's
        # algorithm, with which the body of each answer waits 40 ms for the client to acknowledge the header.
        return socket.socket(made.family, made.type, socket.IPPROTO_TCP, fileno=made.detach())
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such host"
        raise InputError(f"host={config.host} port={config.port}: {reason}") from error


def _allow_many_connections() -> None:
    """Raise the limit of open files to its maximum, because each connection is one."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS tells no limit, but has one
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


def _protocol(patience: float) -> type[asyncio.Protocol]:
    """Return a protocol that closes a connection on which no new request has begun for ``patience`` seconds: the
    client is idle, or sends a header or reads an answer very slowly."""

    class Patient(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._look_again_later()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._looking.cancel()

        def _look_again_later(self) -> None:
            self._looking = self.loop.call_later(patience, self._look, self.cycle)

        def _look(self, last: object) -> None:
            """Close the connection if its last request is still the same as before."""
            if self.cycle is last:
                self.transport.abort()
            else:
                self._look_again_later()

    return Patient
