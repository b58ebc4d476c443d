"""Translation of a long stream of lines."""

import os
import random
import time
from pathlib import Path
from subprocess import PIPE

import psutil

from tests.faults.outcome import Outcome
from tests.processes import Process, start, wait_for
from tests.toy import SYLLABLES

SAME_MEMORY = 100 * 2**20
"""Bytes by which a long stream may hold more than a short one."""


def stream(folder: Path, count: int, seed: int, run: Path) -> Outcome:
    """A long stream holds no more memory than its first hundredth."""
    outcome = Outcome(f"a stream of {count:,} lines")
    chance = random.Random(seed)
    source = folder / "stream.txt"
    with source.open("w") as lines:
        for _ in range(count):
            lines.write(" ".join(chance.choices(SYLLABLES, k=chance.randrange(1, 7))) + "\n")
    output = folder / "stream.out"
    began = time.monotonic()
    process = _translate(run, f"input={source}", f"output={output}")
    partial = Path(f"{output}.partial")
    wait_for(lambda: partial.exists() and _lines(partial) >= count // 100, seconds=600)
    early = psutil.Process(process.pid).memory_info().rss
    late = early
    while process.poll() is None:
        late = psutil.Process(process.pid).memory_info().rss or late
        time.sleep(0.2)
    troubles = [f"{late - early:,} bytes more at the end"] if late - early > SAME_MEMORY else []
    if process.returncode or _lines(output) != count:
        troubles.append(f"ended with {process.returncode}, {_lines(output):,} lines")
    outcome.judge(troubles)
    rate = count / (time.monotonic() - began)
    outcome.figures = f"{early / 2**20:,.0f} MB after 1 %, {late / 2**20:,.0f} MB at the end; {rate:,.0f} lines/s"
    return outcome


GREEDY = "decoding.beam_size=1 decoding.max_length_ratio=1 decoding.max_length_extra=3"


def _translate(run: Path, *words: str, **streams: object) -> Process:
    return start("translate.py", f"run={run}", *GREEDY.split(), *words, stderr=PIPE, **streams)


def _lines(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: os.read(stream.fileno(), 2**20), b""))
