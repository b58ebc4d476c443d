"""The command ``serve``: its process, its socket and its settings."""

import asyncio
import http.client
import json
import re
import signal
import socket
import subprocess
import urllib.request

import pytest

from mt.config import ServingConfig
from mt.core.errors import InputError
from tests import toy
from tests.processes import run, start


@pytest.fixture
def process(runs):
    words = [f"run={runs[0]}", "port=0", "device=cpu", "threads=1", "decoding.beam_size=2"]
    process = start("-m", "mt", "serve", *words, stderr=subprocess.PIPE)
    lines = []
    while not lines or "listening" not in lines[-1]:
        lines.append(process.stderr.readline().decode())
        assert lines[-1], lines
    yield process, re.search(r"http://127\.0\.0\.1:\d+", lines[-1])[0]
    process.stderr.close()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_signal_ends_server_after_pending_requests(process, number, status):
    running, url = process
    texts = toy.sentences(120, seed=13)
    asking = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    body = json.dumps({"q": texts, "source": "en", "target": "fr"})
    asking.request("POST", "/translate", body, {"Content-Type": "application/json"})
    assert urllib.request.urlopen(f"{url}/health").status == 200  # so the server has received the first request
    running.send_signal(number)
    assert len(json.load(asking.getresponse())["translatedText"]) == len(texts)
    assert running.wait(60) == status
    assert b"Traceback" not in running.stderr.read()


@pytest.mark.parametrize(
    ("host", "message"),
    [("127.0.0.1", r"host=127.0.0.1 port=\d+: Address already in use"), ("198.51.100.7", "host=198")],
)
def test_unavailable_address_is_reported(host, message):
    from mt.serving.command import serve

    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(InputError, match=message),
    ):
        serve(ServingConfig(run="nothing", host=host, port=other.getsockname()[1]))


def test_missing_serving_packages_are_reported(tmp_path):
    (tmp_path / "program.py").write_text(
        "import sys\nfrom mt.cli.commands import COMMANDS\nfrom mt.core.process import load_function\n"
        "for name in [name for name in sys.modules if name.startswith(('mt.serving', 'starlette'))]:\n"
        "    del sys.modules[name]\n"
        "sys.modules['starlette'] = None\nload_function(COMMANDS['serve'].work)\n"
    )
    done = run(str(tmp_path / "program.py"))
    assert b"InputError: starlette is not installed for " in done.stderr and b"'mt-trainer[serving]'" in done.stderr


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"decoding": {"method": "sample"}}, "decoding.method=sample: a server"),
        ({"decoding": {"n_best": 3}}, "decoding.n_best"),
        ({"decoding": {"markup": "html"}}, "format=html"),
        ({"run": ("a", "./a")}, "given twice"),
    ],
)
def test_unsupported_settings_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ServingConfig.model_validate({"run": "a"} | values)


def test_listening_socket_disables_nagle():
    """Without TCP_NODELAY, every response after the first of a connection takes 40 ms longer."""
    from mt.serving.command import listening_socket

    async def accepted_option():
        option = asyncio.get_running_loop().create_future()

        def accept(reader, writer):
            option.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = listening_socket(ServingConfig(run="any", port=0))
        async with await asyncio.start_server(accept, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            writer.close()
            return await option

    assert asyncio.run(accepted_option())
