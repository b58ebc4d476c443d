"""Clients that ask for too much, send nonsense, are slow or leave get clear answers, and disturb nobody else."""

import json
import random
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


def test_no_answer_goes_to_another_question(server, translator, runs):
    """64 clients ask for texts, lists, HTML, alternatives and attention; some leave before they are answered, and some
    ask for what is refused."""
    lines = toy.sentences(150, seed=11)
    of_translations = dict(zip(translator.translate(lines), lines, strict=True))  # a mix-up would be seen
    expected = {line: translation for translation, line in of_translations.items()}
    lines = list(expected)
    assert len(lines) > 50
    attention = {
        line: _rounded(translator.attention(line, expected[line]).cross_attention()[-1].tolist()) for line in lines
    }

    def client(number):
        choose = random.Random(number)
        for _ in range(3):
            some = choose.sample(lines, choose.randint(1, 4))
            what = choose.choice(["text", "list", "html", "alternatives", "attention", "leave", "refused"])
            if what == "leave":
                body = json.dumps(ASKED | {"q": some}).encode()
                with server.connect() as connection:
                    connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
                    connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                    time.sleep(choose.random() / 50)
            elif what == "refused":
                assert server.ask("/translate", ASKED | {"q": some, "target": "zz"})[0] == 400
            elif what == "attention":
                pair = {"source": some[0], "translation": expected[some[0]]}
                answer = server.ask("/page/attention", pair | {"model": runs[0].name})[1]
                assert answer["weights"] == attention[some[0]]
            elif what == "list":
                answer = server.ask("/translate", ASKED | {"q": some})[1]
                assert answer["translatedText"] == [expected[line] for line in some]
            else:
                between = "<br>" if what == "html" else "\n"
                values = {"q": between.join(some), "format": "html" if what == "html" else "text"}
                values["alternatives"] = 2 if what == "alternatives" else 0
                answer = server.ask("/translate", ASKED | values)[1]
                assert answer["translatedText"] == between.join(expected[line] for line in some)
        return True

    with ThreadPoolExecutor(64) as pool:
        assert all(pool.map(client, range(64)))


def _rounded(weights):
    return [[[round(weight, 3) for weight in row] for row in head] for head in weights]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"q"', b"\xff\xfe\x00", b"[" * 200_000, b"1" * 5000, b'{"q": 1e999}'],
    ids=lambda body: body[:8].hex() or "empty",
)
def test_what_is_no_json(server, body):
    status, answer = server.ask("/translate", body, {"Content-Type": "application/json"})
    assert status == 400 and set(answer) == {"error"}


@pytest.mark.parametrize("content_type", ["multipart/form-data", "multipart/form-data; boundary=B", "text/plain", ""])
def test_what_is_no_form(server, content_type):
    status, answer = server.ask("/translate", b"\xff--B\r\n%%&q&&=", {"Content-Type": content_type})
    assert status == 400 and set(answer) == {"error"}


def test_a_body_of_10_mb_is_refused_and_a_larger_one_is_not_read(server):
    status, answer = server.ask("/translate", b" " * 10_000_000)
    assert status == 413 and str(MAX_BODY_BYTES) in answer["error"]
    with server.connect() as connection:
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")


def test_what_is_no_http(server):
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


def test_a_full_queue_is_reported_at_once_and_what_takes_too_long_is_dropped(busy):
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(busy.ask, "/translate", ASKED | {"q": "de"})
        time.sleep(0.4)
        began = time.monotonic()
        status, answer = busy.ask("/translate", ASKED | {"q": "fi"})
        assert status == 503 and "overloaded" in answer["error"] and time.monotonic() - began < 1
        assert busy.ask("/health") == (200, {"status": "ok"})
        status, answer = waiting.result()
        assert status == 503 and "1.5 seconds" in answer["error"]


def test_a_slow_body_is_reported_and_a_slow_header_is_cut_off(strict):
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


def test_many_connections_disturb_nobody(server, translator):
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


def test_who_asks_too_often_is_reported_to_slow_down(strict):
    server, _ = strict
    answers = [server.ask("/translate", ASKED | {"q": ["ba", "de"] * 5}) for _ in range(8)]
    refusals = [answer["error"] for status, answer in answers if status == 429]
    assert refusals and all(error.startswith("Slowdown: 30 per 1 minute: try again in ") for error in refusals)


def test_texts_are_counted_by_the_minute(monkeypatch):
    clock, limiter = Clock(), RateLimiter(3)
    monkeypatch.setattr("mt.serving.requests.time", clock)
    clock.seconds = 119.0
    limiter.count("a", 2)
    with pytest.raises(HTTPException, match="Slowdown"):
        limiter.count("a", 2)
    clock.seconds = 120.0
    limiter.count("a", 3)


def test_health_checks_are_not_counted(strict):
    server, _ = strict
    while server.ask("/translate", ASKED | {"q": ["ba"] * 20})[0] != 429:
        pass
    for path in ("/health", "/languages", "/frontend/settings", "/spec", "/page/models"):
        assert [server.ask(path)[0] for _ in range(31)] == [200] * 31
    assert 429 in [server.ask("/detect?q=ba", b"")[0] for _ in range(62)]  # at least 31 of them in one minute


@pytest.mark.parametrize("word", ["x", "ba", "qzrt", "漢"])
def test_a_word_of_5000_characters_is_not_searched(translator, word):
    (line,) = translator.segment([toy.line(f"ba {word * (5000 // len(word))} de")])
    assert sum(map(len, line.sources)) < 10
