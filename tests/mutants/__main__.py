"""Plants mistakes in ``mt/``, one at a time, and counts those that the tests notice: ``make mutants``.

``python -m tests.mutants [count=300] [seed=1] [again]``. First the whole suite runs once, to find out which tests
execute which lines. Then each mutant is put into a copy of the repository, one copy for each processor, and the tests
that can see it run there, for at most ``SECONDS`` by their usual durations. Stopped and started again, it goes on;
``again`` tries the survivors again with today's tests. Outcomes are in ``.mutants/``, which is not committed.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tqdm import tqdm

from tests.mutants.sampling import Mutant, sample
from tests.mutants.sight import Sight, look

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".mutants"
OUTCOMES = WORK / "outcomes.jsonl"
EQUIVALENT = Path(__file__).parent / "equivalent.txt"
"""Mutants that do the same as the original, or as well: nothing could kill them."""
SECONDS = 60.0


def main(words: list[str]) -> None:
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    mutants = sample(ROOT, int(settings.get("count", 300)), int(settings.get("seed", 1)))
    sight = look(ROOT, WORK)
    known = _read()
    due = [
        mutant
        for mutant in mutants
        if mutant.name not in known or ("again" in words and known[mutant.name] == "survived")
    ]
    random.Random(1).shuffle(due)  # so that those of a run that was stopped are a sample of all
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(os.cpu_count() or 1):
        copies.put(_copy(number))
    lock = threading.Lock()

    def attempt(mutant: Mutant) -> None:
        copy = copies.get()
        outcome = _outcome(mutant, sight, copy)
        copies.put(copy)
        with lock, OUTCOMES.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"mutant": mutant.name, "line": mutant.line, **outcome}, ensure_ascii=False) + "\n")

    with ThreadPoolExecutor(copies.qsize()) as pool:
        for _ in tqdm(pool.map(attempt, due), total=len(due), unit="mutant"):
            pass
    _report(mutants)


def _copy(number: int) -> Path:
    """Returns a copy of the files that git tracks or would track."""
    copy = WORK / f"copy_{number}"
    shutil.rmtree(copy, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True, stdout=subprocess.PIPE
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


def _outcome(mutant: Mutant, sight: Sight, copy: Path) -> dict[str, object]:
    tests, expected = [], 0.0
    for test in sight.of(mutant.module, mutant.line):
        if expected + sight.seconds[test] > SECONDS:
            break
        tests.append(test)
        expected += sight.seconds[test]
    if not tests:
        return {"outcome": "survived", "seconds": 0, "told": "no test executes this line"}
    (copy / mutant.module).write_text(mutant.code, encoding="utf-8")
    (copy / "chosen.txt").write_text("\n".join(tests), encoding="utf-8")
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "@chosen.txt"],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120 + 5 * expected,
        )
        outcome = {0: "survived", 1: "killed", 2: "killed"}.get(done.returncode, f"pytest ended with {done.returncode}")
        told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))][:1]
    except subprocess.TimeoutExpired:
        outcome, told = "killed", ["too slow"]
    shutil.copy2(ROOT / mutant.module, copy / mutant.module)
    seconds = round(time.monotonic() - began)
    return {"outcome": outcome, "seconds": seconds, "tests": len(tests), "told": "".join(told)[:300]}


def _read() -> dict[str, str]:
    """Returns the last outcome of each mutant."""
    if not OUTCOMES.exists():
        return {}
    outcomes = map(json.loads, OUTCOMES.read_text(encoding="utf-8").splitlines())
    return {outcome["mutant"]: outcome["outcome"] for outcome in outcomes}


def _report(mutants: list[Mutant]) -> None:
    known = _read()
    equivalent = set(EQUIVALENT.read_text(encoding="utf-8").splitlines()) if EQUIVALENT.exists() else set()
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
