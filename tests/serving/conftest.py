"""Two models of the toy language, served over HTTP by the real server in a thread."""

import asyncio
import json
import socket
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from mt.config import DecodingChoice, ServingConfig
from mt.training.command import train
from mt.translation.translator import Translator
from tests import toy

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("py3langid")


class Server:
    """A server under test."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, dict]:
        """Sends JSON, or whatever bytes are given, and returns the status and the JSON of the answer."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"Content-Type": "application/json"} | (headers or {})
        request = urllib.request.Request(self.url + path, body, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


@contextmanager
def serving(config: ServingConfig):
    """Serves as the command does, but for signals, which only a main thread gets."""
    from mt.serving.command import listening_socket, server
    from mt.serving.models import open_served_models

    threads = torch.get_num_threads()
    torch.set_num_threads(config.threads or 2)
    models = open_served_models(config)
    torch.set_num_threads(threads)
    running = server(config, models)
    listening = listening_socket(config.model_copy(update={"port": 0}))
    thread = threading.Thread(target=lambda: asyncio.run(running.serve([listening])))
    thread.start()
    try:
        yield Server(listening.getsockname()[1]), models
    finally:
        running.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A Transformer from English to French, in name, which reverses, and an LSTM back; not to be changed."""
    found = []
    for architecture, languages, updates in (("transformer", ("en", "fr"), 120), ("rnn", ("fr", "en"), 20)):
        folder = tmp_path_factory.mktemp(architecture)
        toy.write_corpus(folder, "reverse", train=600)
        settings = {"max_updates": updates, "validate_every": updates}
        config = toy.config(folder, architecture, architecture, training=settings, decoding={"beam_size": 3})
        data = config.data.model_copy(update=dict(zip(("source_language", "target_language"), languages, strict=True)))
        config = config.model_copy(update={"data": data})
        train(config)
        found.append(config.folder)
    return found


@pytest.fixture(scope="session")
def translator(runs: list[Path]) -> Translator:
    """What the served Transformer should answer."""
    return Translator.load(runs[0])


@pytest.fixture(scope="session")
def all_translations(runs: list[Path]) -> Translator:
    return Translator.load(runs[0], DecodingChoice(n_best=3))


@pytest.fixture(scope="session")
def server(runs: list[Path]):
    with serving(ServingConfig(run=tuple(map(str, runs)), characters=300, texts=200)) as (found, _):
        yield found
