"""Time one-sentence requests to a server while another client sends the most expensive requests that it accepts.

    python -m tests.benchmarks.serving [run=runs/demo] [output=serving.json]

The server runs in a process of its own with its default settings. Nothing else may run meanwhile.
"""

import http.client
import json
import random
import string
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from tests import options
from tests.benchmarks import task

REQUESTS = 50
MAX_SLOWDOWN = 4.0
"""At most this many times its time alone may a request take, for SHARE of the requests."""
SHARE = 0.95
CLIENTS = 64
SECONDS = 10.0
"""For which many clients send ordinary requests."""
MAX_CHARACTERS, MAX_BYTES = 5000, 2**20
LANGUAGES = {"source": "en", "target": "fr"}


class Options(options.Options):
    run: Path = task.PROJECT / "runs/demo"
    output: Path = Path("serving.json")


class Client:
    """A connection to the server."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def translate(self, texts: str | list[str]) -> int:
        """Ask for translations, and return the status of the answer."""
        body = json.dumps(LANGUAGES | {"q": texts})
        self._connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        response.read()
        return response.status

    def seconds(self, text: str) -> float:
        began = time.perf_counter()
        assert self.translate(text) == 200
        return time.perf_counter() - began


@contextmanager
def server(options: Options) -> Iterator[int]:
    """Yield the port of a server."""
    words = [f"run={options.run.resolve()}", "port=0", "device=cpu"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mt", "serve", *words], cwd=task.PROJECT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = next(line for line in process.stderr if "listening at" in line)
    threading.Thread(target=process.stderr.read, daemon=True).start()
    try:
        yield int(line.rpartition(":")[2])
    finally:
        process.kill()
        process.wait()


def expensive_requests(words: list[str]) -> dict[str, list[str]]:
    """Return lists of texts by what they hold: as many of MAX_CHARACTERS as fit into MAX_BYTES, or fewer words."""
    chosen = random.Random(1)
    full = MAX_BYTES // (MAX_CHARACTERS + 10)

    def of_words(texts: int) -> list[str]:
        return [" ".join(chosen.choices(words, k=MAX_CHARACTERS))[:MAX_CHARACTERS] for _ in range(texts)]

    return {
        "words of 4,999 letters": ["".join(chosen.choices(string.ascii_lowercase, k=4999)) for _ in range(full)],
        "1 MiB of ordinary words": of_words(full),
        "150,000 characters of ordinary words": of_words(30),
    }


@contextmanager
def load(port: int, texts: list[str]) -> Iterator[list[int]]:
    """Send a request again and again inside this context. Yields a list of the statuses of the answers."""
    statuses: list[int] = []
    ends = threading.Event()

    def send() -> None:
        client = Client(port)
        while not ends.is_set():
            with suppress(OSError, http.client.HTTPException):  # the server ends first
                statuses.append(client.translate(texts))

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    time.sleep(2)
    try:
        yield statuses
    finally:
        ends.set()


def throughput(port: int, lines: list[str]) -> float:
    """Return the sentences a second of many clients that send one at a time."""

    def send(number: int) -> int:
        client, count = Client(port), 0
        while time.perf_counter() < end:
            assert client.translate(lines[(number + CLIENTS * count) % len(lines)]) == 200
            count += 1
        return count

    end = time.perf_counter() + SECONDS
    with ThreadPoolExecutor(CLIENTS) as pool:
        return sum(pool.map(send, range(CLIENTS))) / SECONDS


def main() -> None:
    options = Options.parse(__doc__)
    lines = task.read_lines(options.run / "scored/test.source")
    words = sorted({word.strip(string.punctuation) for line in lines for word in line.split()} - {""})
    sentences = lines[:: len(lines) // REQUESTS][:REQUESTS]
    with server(options) as port:
        client = Client(port)
        for sentence in sentences:
            client.seconds(sentence)
        alone = [min(times) for times in zip(*([client.seconds(s) for s in sentences] for _ in range(3)), strict=True)]
        figures: dict[str, object] = {
            "sentences a second": throughput(port, lines),
            "median ms alone": 1000 * median(alone),
        }
        print(f"{figures['sentences a second']:.0f} sentences a second; {1000 * median(alone):.1f} ms for one alone")
        for name, texts in expensive_requests(words).items():
            with load(port, texts) as statuses:
                client = Client(port)  # the server closes connections without requests
                slower = sorted(client.seconds(s) / a for s, a in zip(sentences, alone, strict=True))
            value = slower[int(SHARE * REQUESTS)]
            print(
                f"beside {name} (answers: {dict(Counter(statuses))}): median {median(slower):.1f}, {SHARE:.0%} "
                f"{value:.1f}, at most {slower[-1]:.1f} times the time alone (at most {MAX_SLOWDOWN}: "
                f"{'reached' if value <= MAX_SLOWDOWN else 'MISSED'})"
            )
            figures[name] = slower
    options.output.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
