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
from mt.storage.run_folder import CHOICE, RESULTS

PROJECT = Path(__file__).parents[2]
Cell = dict[str, str | int | float]


def subset(files: list[str], pairs: int, folder: Path) -> list[str]:
    """Writes that many pairs, at even distances, and returns the two files; those that are given if 0."""
    if not pairs:
        return files
    written = []
    for file in files:
        lines = list(read_lines(Path(file)))
        chosen = [lines[number * len(lines) // pairs] for number in range(min(pairs, len(lines)))]
        path = folder / f"{pairs}-{Path(file).name.removesuffix('.gz')}"
        path.write_bytes(b"".join(line + b"\n" for line in chosen))
        written.append(str(path))
    return written


def train(cell: Cell, words: list[str], folder: Path) -> dict:
    """Trains one run and returns what is kept of it. A run that was interrupted goes on, without the time before."""
    name = f"{cell['pairs']}-{cell['minutes']}-{cell['seed']}-{sha256(str(cell['settings']))[:8]}"
    given = [f"training.minutes={cell['minutes']}", f"seed={cell['seed']}", f"name={name}", f"runs={folder / 'runs'}"]
    started = time.monotonic()
    command = [sys.executable, "train.py", *words, *given, *shlex.split(str(cell["settings"]))]
    subprocess.run(command, cwd=PROJECT, check=True)
    minutes = (time.monotonic() - started) / 60
    run = folder / "runs" / name
    results = read_json(run / RESULTS)
    decisions = {one["name"]: one["value"] for one in read_json(run / CHOICE)["decisions"]}
    kept = {key: results[key] for key in ("bleu", "chrf", "updates", "best_update", "training_minutes", "parameters")}
    return {**cell, **kept, "total_minutes": minutes, "decisions": decisions, "processor": processor_name()}


def main(arguments: dict[str, str]) -> None:
    output = Path(arguments["output"]).absolute()
    folder = output.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    done = read_json(output)["runs"] if output.exists() else []
    source, target = arguments["languages"].split(",")
    files = {
        split: [str(Path(name).absolute()) for name in arguments[split].split(",")]
        for split in ("train", "valid", "test")
    }
    tried = ["", *filter(None, arguments.get("settings", "").split(";"))]
    usual = {"pairs": "0", "minutes": "5", "seeds": "1"}
    axes = [arguments.get(key, default).split(",") for key, default in usual.items()]
    for pairs, minutes, seed, settings in itertools.product(*axes, tried):
        cell: Cell = {"train": files["train"][0], "pairs": int(pairs), "minutes": float(minutes), "seed": int(seed)}
        cell["settings"] = settings.strip()
        if any(all(one[key] == value for key, value in cell.items()) for one in done):
            continue
        data = {split: ",".join(map(json.dumps, found)) for split, found in files.items()}
        data["train"] = ",".join(map(json.dumps, subset(files["train"], int(pairs), folder)))
        words = ["data=files", f"data.source_language={source}", f"data.target_language={target}"]
        words += [f"data.{split}=[{found}]" for split, found in data.items()]
        done.append(train(cell, words + shlex.split(arguments.get("also", "")), folder))
        write_json(output, {"runs": done})
    for one in done:
        print(
            f"{one['pairs'] or 'all':>8} pairs {one['minutes']:>5g} min, took {one['total_minutes']:5.1f}, "
            f"seed {one['seed']}: BLEU {one['bleu']:5.2f}, {one['updates']:,} updates  {one['settings'] or 'chosen'}"
        )


if __name__ == "__main__":
    main(dict(word.partition("=")[::2] for word in sys.argv[1:]))
