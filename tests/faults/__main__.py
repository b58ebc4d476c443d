"""Puts faults into the way of training and translating and prints what became of them.

    python -m tests.faults [share=1.0] [seed=1] [only=TEXT] [output=faults.json]

share: of the full numbers. only: the campaigns whose name holds TEXT.
Exits with 1 if anything was lost.
"""

import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from tests import toy
from tests.faults import configs, disk, hostile, interruption, lines
from tests.faults.interruption import Subject
from tests.faults.outcome import Outcome

Campaign = Callable[[Path, int, int], Outcome]
"""What injects faults of one kind: into a folder, so many, chosen by a seed."""


@dataclass(frozen=True)
class Options:
    share: float = 1.0
    seed: int = 1
    only: str = ""
    output: Path = Path("faults.json")


def parse(arguments: list[str]) -> Options:
    kinds = {"share": float, "seed": int, "only": str, "output": Path}
    values = dict(argument.partition("=")[::2] for argument in arguments)
    if values.keys() - kinds:
        sys.exit(__doc__)
    return Options(**{name: kinds[name](value) for name, value in values.items()})


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

    def translate(architecture: str) -> Campaign:
        return lambda folder, times, seed: lines.translate(
            lines.hostile_lines(times, seed), seed, subject(architecture).run("whole")
        )

    found: dict[str, tuple[int, Campaign]] = {}
    for architecture in toy.MODELS:
        found[f"kill-{architecture}"] = 30, on_training(interruption.kill, architecture)
        found[f"signal-{architecture}"] = 15, on_training(interruption.stop, architecture)
        found[f"lines-{architecture}"] = 520, translate(architecture)
    if disk.can_be_filled():
        found["disk"] = 12, on_training(disk.fill, "transformer")
    return found | {
        "workers": (10, on_training(interruption.kill_workers, "transformer", workers=2)),
        "damage": (600, on_a_run(hostile.damage)),
        "exploits": (1, on_a_run(hostile.exploits)),
        "config-train": (200, lambda folder, times, seed: configs.fuzz(times, seed, "train")),
        "config-translate": (200, lambda folder, times, seed: configs.fuzz(times, seed, "translate")),
        "interrupted-translation": (10, on_a_run(lines.interrupt)),
        "closed-pipe": (3, on_a_run(lines.close_pipe)),
        "stream": (1_000_000, on_a_run(lines.stream)),
    }


def show(outcomes: dict[str, Outcome]) -> str:
    rows = [("fault", "injected", "survived", "")]
    rows += [(one.fault, str(one.injected), str(one.survived), one.figures) for one in outcomes.values()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows
    )


def main() -> None:
    options = parse(sys.argv[1:])
    logging.getLogger("mt").setLevel(logging.ERROR)
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as place:
        for name, (number, inject) in campaigns(Path(place)).items():
            if options.only not in name:
                continue
            folder = Path(place, name)
            folder.mkdir()
            began = time.monotonic()
            outcomes[name] = one = inject(folder, max(1, round(number * options.share)), options.seed)
            seconds = time.monotonic() - began
            print(
                f"{one.fault}: {one.survived} of {one.injected} survived, {seconds:.0f} s", file=sys.stderr, flush=True
            )
            for trouble in one.lost:
                print(f"  {trouble}", file=sys.stderr, flush=True)
    print(show(outcomes))
    options.output.write_text(json.dumps({name: asdict(one) for name, one in outcomes.items()}, indent=2) + "\n")
    sys.exit(any(one.lost for one in outcomes.values()))


if __name__ == "__main__":
    main()
