"""Plants mistakes in ``mt/``, one at a time, and counts those that the tests notice: ``make mutants``.

``python -m tests.mutants [count=300] [seed=1] [seconds=20] [again]``. First the whole suite runs once, to find out
which tests execute which lines. Then each mutant is put into a copy of the repository, one copy for each processor, and
the tests that can see it run there, for at most ``seconds`` by their usual durations. Stopped and started again, it
goes on; ``again`` tries the survivors again with today's tests. Outcomes are in ``.mutants/``, which is not committed;
without this folder, everything begins anew.
"""

import json
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.sampling import Mutant, sample
from tests.mutants.sight import Sight, look
from tests.mutants.trial import Bench

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".mutants"
OUTCOMES = WORK / "outcomes.jsonl"
EQUIVALENT = Path(__file__).parent / "equivalent.txt"
"""Mutants that do the same as the original, or as well: nothing could kill them."""


def main(words: list[str]) -> None:
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    mutants = sample(ROOT, int(settings.get("count", 300)), int(settings.get("seed", 1)))
    sight = look(ROOT, WORK)
    known = _read() | dict.fromkeys(_equivalent(), "equivalent")
    due = [
        mutant
        for mutant in mutants
        if mutant.name not in known or ("again" in words and known[mutant.name] == "survived")
    ]
    random.Random(1).shuffle(due)  # so that those of a run that was stopped are a sample of all
    due.sort(key=lambda mutant: mutant.name not in known)
    try_all(due, sight, float(settings.get("seconds", 20)))
    _report(mutants)


def try_all(mutants: Sequence[Mutant], sight: Sight, seconds: float) -> None:
    """Try mutants in one copy of the repository for each processor, and write down the outcomes."""
    benches: SimpleQueue[Bench] = SimpleQueue()
    for number in range(os.cpu_count() or 1):
        benches.put(Bench(ROOT, WORK / f"copy_{number}", sight.seconds))

    def attempt(mutant: Mutant) -> None:
        bench, tests = benches.get(), _tests_in_time(sight, mutant, seconds)
        began = time.monotonic()
        killed, told = bench.attempt(mutant, tests)
        benches.put(bench)
        outcome = {
            "mutant": mutant.name,
            "line": mutant.line,
            "outcome": "killed" if killed else "survived",
            "seconds": round(time.monotonic() - began, 1),
            "tests": len(tests),
            "told": told,
        }
        with OUTCOMES.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(outcome, ensure_ascii=False) + "\n")
        print(f"{outcome['outcome']} in {outcome['seconds']} s: {mutant.module}:{mutant.line} {told}", flush=True)

    with ThreadPoolExecutor(benches.qsize()) as pool:
        list(pool.map(attempt, mutants))


def _tests_in_time(sight: Sight, mutant: Mutant, seconds: float) -> list[str]:
    """Return the tests that may see a mutant, at least one and as many as usually take at most ``seconds``."""
    tests: list[str] = []
    for test in sight.of(mutant.module, mutant.line):
        if tests and sum(sight.seconds[each] for each in [*tests, test]) > seconds:
            break
        tests.append(test)
    return tests


def _read() -> dict[str, str]:
    """Returns the last outcome of each mutant."""
    if not OUTCOMES.exists():
        return {}
    outcomes = map(json.loads, OUTCOMES.read_text(encoding="utf-8").splitlines())
    return {outcome["mutant"]: outcome["outcome"] for outcome in outcomes}


def _equivalent() -> set[str]:
    return set(EQUIVALENT.read_text(encoding="utf-8").splitlines())


def _report(mutants: list[Mutant]) -> None:
    known = _read()
    equivalent = _equivalent()
    counted = [mutant for mutant in mutants if mutant.name not in equivalent]
    survived = [mutant for mutant in counted if known[mutant.name] != "killed"]
    for mutant in survived:
        print(f"{known[mutant.name]}: {mutant.module}:{mutant.line}")
        print(f"  - {mutant.before.strip()}\n  + {mutant.after.strip()}")
    share = 1 - len(survived) / max(len(counted), 1)
    print(
        f"{len(counted) - len(survived)} of {len(counted)} mutants killed ({share:.1%}); "
        f"{len(mutants) - len(counted)} equivalent ones left out"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
