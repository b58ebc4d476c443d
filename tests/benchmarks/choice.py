"""How good what ``training.minutes`` chooses is, beside other settings for the same time:
``python -m tests.benchmarks.choice output=sweep.json train=en.txt,fr.txt valid=… test=… languages=en,fr [pairs=5000,0]
[minutes=5,15] [seeds=1] [settings='model.dropout=0.1;model=transformer_tiny training.batch_tokens=1024'] [also=…]``.

Trains a run for every combination of pairs (0: all), minutes, seeds and settings, and beside them the choice itself.
``settings`` are separated by semicolons; words within one go together. ``also`` goes to all runs, such as
``training.threads=1``. Each finished run is added to ``output``: BLEU, the minutes of the whole command, and what
was chosen. The same command again goes on with those that are missing. In the end a table is printed.
"""

import itertools
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

from mt.core.device import processor_name
from mt.core.files import read_lines
from mt.core.json_file import read_json, sha256, write_json
from mt.storage.run_folder import CHOICE_FILE, RESULTS
from tests import options
from tests.benchmarks import task

Cell = dict[str, str | int | float]
"""What identifies a run: pairs, minutes, seed and settings."""


class Options(options.Options):
    output: Path
    train: str
    valid: str
    test: str
    languages: str
    pairs: str = "0"
    minutes: str = "5"
    seeds: str = "1"
    settings: str = ""
    also: str = ""


def subset(files: list[str], pairs: int, folder: Path) -> list[str]:
    """Write that many pairs, at even distances, and return the two files; 0 pairs: return the given files."""
    if not pairs:
        return files
    paths = []
    for file in files:
        lines = list(read_lines(Path(file)))
        chosen = [lines[number * len(lines) // pairs] for number in range(min(pairs, len(lines)))]
        path = folder / f"{pairs}-{Path(file).name.removesuffix('.gz')}"
        path.write_bytes(b"".join(line + b"\n" for line in chosen))
        paths.append(str(path))
    return paths


def train(cell: Cell, words: list[str], folder: Path) -> dict:
    """Train one run and return its figures. An interrupted run goes on, without the time before."""
    name = f"{cell['pairs']}-{cell['minutes']}-{cell['seed']}-{sha256(str(cell['settings']))[:8]}"
    given = [f"training.minutes={cell['minutes']}", f"seed={cell['seed']}", f"name={name}", f"runs={folder / 'runs'}"]
    started = time.monotonic()
    command = [sys.executable, "train.py", *words, *given, *shlex.split(str(cell["settings"]))]
    subprocess.run(command, cwd=task.PROJECT, check=True)
    minutes = (time.monotonic() - started) / 60
    run = folder / "runs" / name
    results = read_json(run / RESULTS)
    decisions = {one["name"]: one["value"] for one in read_json(run / CHOICE_FILE)["decisions"]}
    kept = {key: results[key] for key in ("bleu", "chrf", "updates", "best_update", "training_minutes", "parameters")}
    return {**cell, **kept, "total_minutes": minutes, "decisions": decisions, "processor": processor_name()}


def main() -> None:
    options = Options.parse(__doc__)
    output = options.output.absolute()
    folder = output.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    done = read_json(output)["runs"] if output.exists() else []
    source, target = options.languages.split(",")
    files = {
        split: [str(Path(name).absolute()) for name in getattr(options, split).split(",")]
        for split in ("train", "valid", "test")
    }
    axes = (values.split(",") for values in (options.pairs, options.minutes, options.seeds))
    for pairs, minutes, seed, settings in itertools.product(*axes, ["", *filter(None, options.settings.split(";"))]):
        cell: Cell = {"train": files["train"][0], "pairs": int(pairs), "minutes": float(minutes), "seed": int(seed)}
        cell["settings"] = settings.strip()
        if any(all(run[key] == value for key, value in cell.items()) for run in done):
            continue
        data = files | {"train": subset(files["train"], int(pairs), folder)}
        words = ["data=files", f"data.source_language={source}", f"data.target_language={target}"]
        words += [f"data.{split}=[{','.join(map(json.dumps, names))}]" for split, names in data.items()]
        done.append(train(cell, words + shlex.split(options.also), folder))
        write_json(output, {"runs": done})
    for run in done:
        print(
            f"{run['pairs'] or 'all':>8} pairs {run['minutes']:>5g} min, took {run['total_minutes']:5.1f}, "
            f"seed {run['seed']}: BLEU {run['bleu']:5.2f}, {run['updates']:,} updates  {run['settings'] or 'chosen'}"
        )


if __name__ == "__main__":
    main()
