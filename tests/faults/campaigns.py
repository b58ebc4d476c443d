"""Which faults are injected, how many of each, and into what."""

import logging
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import torch

from tests import toy
from tests.faults import disk, every_key, hostile, interruption, lines, machines, network
from tests.faults.interruption import Subject
from tests.faults.outcome import Outcome

Campaign = Callable[[Path, int, int], Outcome]
"""What injects faults of one kind: into a folder, so many, chosen by a seed."""


def campaigns(place: Path) -> dict[str, tuple[int, Campaign]]:
    """By name: how many faults, and what injects them."""

    @cache
    def subject(architecture: str, workers: int = 1) -> Subject:
        """With its undisturbed run, made when it is first needed."""
        return Subject(place / f"{architecture}-{workers}", architecture, workers)

    def on_training(inject: Callable[[Subject, int, int], Outcome], architecture: str, workers: int = 1) -> Campaign:
        return lambda folder, times, seed: inject(subject(architecture, workers), times, seed)

    def on_a_run(inject: Callable[[Path, int, int, Path], Outcome]) -> Campaign:
        return lambda folder, times, seed: inject(folder, times, seed, subject("transformer").run("whole"))

    found: dict[str, tuple[int, Campaign]] = {}
    for architecture in toy.MODELS:
        found[f"kill-{architecture}"] = 30, on_training(interruption.kill, architecture)
        found[f"signal-{architecture}"] = 15, on_training(interruption.stop, architecture)
    if disk.can_be_filled():
        found["disk"] = 12, on_training(disk.fill, "transformer")
    if network.can_be_made():
        for number, times in ((2, 7), (4, 7)):
            found[f"machines-{number}"] = times, on_training(machines.fail, "transformer", workers=number)
        found["machines-translate"] = 3, on_a_run(machines.translate)
    for command in every_key.WORK:
        times = {"train": 2800, "translate": 900, "export": 500}.get(command, 600)
        found[f"every-key-{command}"] = times, on_a_run(partial(every_key.fuzz, name=command))
    return found | {
        "exploits": (1, on_a_run(hostile.exploits)),
        "comparisons": (12, on_a_run(hostile.comparisons)),
        "stream": (1_000_000, on_a_run(lines.stream)),
    }


def run(name: str, share: float, seed: int, place: Path) -> Outcome:
    """One campaign, in a process and a folder of its own."""
    logging.getLogger("mt").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    folder = place / name
    folder.mkdir()
    number, inject = campaigns(folder)[name]
    began = time.monotonic()
    one = inject(folder, max(1, round(number * share)), seed)
    seconds = time.monotonic() - began
    print(f"{one.fault}: {one.survived} of {one.injected} survived, {seconds:.0f} s", file=sys.stderr, flush=True)
    for trouble in one.lost:
        print(f"  {trouble}", file=sys.stderr, flush=True)
    return one
