"""Limits of the server: large, invalid, slow and frequent requests, and clients that disconnect."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.exceptions import HTTPException

from mt.config import ServingConfig
from mt.serving.requests import MAX_BODY_BYTES, RateLimiter
from tests import toy
from tests.clock import Clock
from tests.serving.conftest import serving

ASKED = {"source": "en", "target": "fr"}


def test_disconnected_and_refused_clients_do_not_affect_others(server, translator):
    lines = toy.sentences(40, seed=11)
    expected = translator.translate(lines)

    def client(number):
        chosen = slice(number, number + 4)
        if number % 3 == 0:
            body = json.dumps(ASKED | {"q": lines[chosen]}).encode()
            with server.connect() as connection:
                connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
                connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                time.sleep(number / 1000)
            return True
        target = "zz" if number % 3 == 1 else "fr"
        answer = server.ask("/translate", {"source": "en", "target": target, "q": lines[chosen]})
        return answer[0] == 400 if target == "zz" else answer == (200, {"translatedText": expected[chosen]})

    with ThreadPoolExecutor(36) as pool:
        assert all(pool.map(client, range(36)))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"q"', b"\xff\xfe\x00", b"[" * 200_000, b"1" * 5000, b'{"q": 1e999}'],
    ids=lambda body: body[:8].hex() or "empty",
)
def test_invalid_json_is_refused(server, body):
    status, answer = server.ask("/translate", body, {"Content-Type": "application/json"})
    assert status == 400 and set(answer) == {"error"}


@pytest.mark.parametrize("content_type", ["multipart/form-data", "multipart/form-data; boundary=B", "text/plain", ""])
def test_invalid_form_is_refused(server, content_type):
    status, answer = server.ask("/translate", b"\xff--B\r\n%%&q&&=", {"Content-Type": content_type})
    assert status == 400 and set(answer) == {"error"}


def test_large_body_is_refused(server):
    status, answer = server.ask("/translate", b" " * 10_000_000)
    assert status == 413 and str(MAX_BODY_BYTES) in answer["error"]
    with server.connect() as connection:
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")


def test_invalid_http_is_refused(server):
    for nonsense in (b"\x16\x03\x01\x00\xff\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a" * 100_000):
        with server.connect() as connection:
            connection.sendall(nonsense)
            assert connection.recv(65536).startswith(b"HTTP/1.1 400")
    assert server.ask("/health")[0] == 200


@pytest.fixture(scope="module")
def strict(runs):
    """A server with small limits, and its models."""
    config = ServingConfig(run=str(runs[0]), seconds=1.5, waiting=1, texts_per_minute=30, threads=1)
    with serving(config) as (found, models):
        yield found, models.models[0]


@pytest.fixture
def busy(strict, monkeypatch):
    """The strict server while its model works on something else."""
    server, model = strict
    block = socket.socketpair()
    batcher, search = model.batcher, model.search
    monkeypatch.setattr(model, "search", lambda *batch: (block[1].recv(1), search(*batch))[1])
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(server.ask, "/translate", ASKED | {"q": "ba"})
        while batcher.waiting or not first.running():
            time.sleep(0.01)
        time.sleep(0.2)
        yield server
        block[0].close()
        assert first.result()[0] in (200, 503)


def test_full_queue_and_timeout_are_reported(busy):
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(busy.ask, "/translate", ASKED | {"q": "de"})
        time.sleep(0.4)
        began = time.monotonic()
        status, answer = busy.ask("/translate", ASKED | {"q": "fi"})
        assert status == 503 and "overloaded" in answer["error"] and time.monotonic() - began < 1
        assert busy.ask("/health") == (200, {"status": "ok"})
        status, answer = waiting.result()
        assert status == 503 and "1.5 seconds" in answer["error"]


def test_slow_clients_are_disconnected(strict):
    server, _ = strict
    with server.connect() as connection:
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nq=")
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")
    with server.connect() as connection:
        connection.settimeout(30)
        try:
            while True:
                connection.sendall(b"G")
                time.sleep(0.5)
        except OSError:
            pass


def test_open_connections_do_not_block_requests(server, translator):
    import resource

    most = min(1000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 - 200)
    connections = [server.connect() for _ in range(most)]
    begun = [b"", b"POST /tr", b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nq"]
    for number, connection in enumerate(connections):
        connection.sendall(begun[number % 3])
    line = toy.sentences(1, seed=12)
    assert server.ask("/translate", ASKED | {"q": line}) == (200, {"translatedText": translator.translate(line)})
    for connection in connections:
        connection.close()


def test_rate_limit_counts_texts_but_not_health_checks(strict):
    server, _ = strict
    answers = [server.ask("/translate", ASKED | {"q": ["ba", "de"] * 5}) for _ in range(8)]
    refusals = [answer["error"] for status, answer in answers if status == 429]
    assert refusals and all(error.startswith("Slowdown: 30 per 1 minute: try again in ") for error in refusals)
    for path in ("/health", "/languages", "/frontend/settings", "/spec", "/page/models"):
        assert [server.ask(path)[0] for _ in range(31)] == [200] * 31


def test_rate_limiter_counts_by_minute(monkeypatch):
    clock, limiter = Clock(), RateLimiter(3)
    monkeypatch.setattr("mt.serving.requests.time", clock)
    clock.seconds = 119.0
    limiter.count("a", 2)
    with pytest.raises(HTTPException, match="Slowdown"):
        limiter.count("a", 2)
    clock.seconds = 120.0
    limiter.count("a", 3)
