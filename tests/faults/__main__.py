"""Puts faults into the way of training and translating and prints what became of them.

    python -m tests.faults [share=1.0] [seed=1] [only=TEXT] [output=faults.json]

share: of the full numbers. only: the campaigns whose name holds TEXT. One campaign a core runs at a time.
Exits with 1 if anything was lost.
"""

import json
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from tests import options
from tests.faults.campaigns import campaigns, run
from tests.faults.outcome import Outcome


class Options(options.Options):
    share: float = 1.0
    seed: int = 1
    only: str = ""
    output: Path = Path("faults.json")


def show(outcomes: dict[str, Outcome]) -> str:
    rows = [("fault", "injected", "survived", "")]
    rows += [(one.fault, str(one.injected), str(one.survived), one.figures) for one in outcomes.values()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows
    )


def main() -> None:
    options = Options.parse(__doc__)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        place = Path(folder)
        chosen = [name for name in campaigns(place) if options.only in name]
        running = {name: pool.submit(run, name, options.share, options.seed, place) for name in chosen}
        outcomes = {name: campaign.result() for name, campaign in running.items()}
    print(show(outcomes))
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    options.output.write_text(json.dumps({name: asdict(one) for name, one in outcomes.items()}, indent=2) + "\n")
    sys.exit(any(one.lost for one in outcomes.values()))


if __name__ == "__main__":
    main()
