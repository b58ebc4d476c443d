"""What is compared: finished runs, one or several seeds of each system, all on the same test set."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mt.config import TrainConfig
from mt.errors import InputError
from mt.files import read_lines
from mt.run_folder import (
    METRICS,
    PROVENANCE,
    RESULTS,
    SCORED,
    config_differences,
    is_number,
    read_config,
    read_json,
    refuse_links_out,
)

RESULTS_NEEDED = {"parameters", "updates", "target_tokens", "training_minutes", "peak_memory_bytes"}
"""Numbers, beside ``bleu_signature``, which is text."""
PROVENANCE_NEEDED: dict[str, set[str]] = {"data": {"train", "valid", "test"}, "libraries": set(), "machine": set()}
METRICS_NEEDED = {
    "train": {"loss", "seconds", "target_tokens"},
    "valid": {"step", "bleu", "seconds", "target_tokens"},
    "test": set(),
}
CAN_BE_NULL = {"loss", "bleu"}
"""Where they were not finite; all others are numbers."""


@dataclass(frozen=True)
class Run:
    """A finished run: how it was made, how it went, and what it says of the test set."""

    folder: Path
    config: TrainConfig
    results: dict
    provenance: dict
    metrics: list[dict]
    sources: list[str]
    references: list[str]
    hypotheses: list[str]

    def validations(self) -> list[dict]:
        """The lines of metrics.jsonl on the validation set."""
        return [line for line in self.metrics if line["split"] == "valid"]


@dataclass(frozen=True)
class System:
    """One config, trained with one seed or with several."""

    name: str
    runs: list[Run]

    @property
    def first(self) -> Run:
        """The run that stands for the system where only one can be looked at."""
        return self.runs[0]


def open_systems(folders: Sequence[Sequence[str]]) -> list[System]:
    """The systems, the baseline first, the runs of each by seed.

    Raises InputError for a run that is unfinished or damaged, or that cannot be compared with the first one.
    """
    opened = [[read_run(Path(folder)) for folder in system] for system in folders]
    runs = [sorted(system, key=lambda run: run.config.seed) for system in opened]
    for system in runs:
        for run in system:
            _refuse_incomparable(runs[0][0], run)
        for first, second in pairwise(system):
            _refuse_another_recipe(first, second)
    counts = [len(system) for system in runs]
    if len(set(counts)) > 1:
        raise InputError(
            f"the systems have {' and '.join(map(str, counts))} runs: seeds are compared in pairs, "
            "so give as many of each"
        )
    folder_names = [[run.folder.resolve().name for run in system] for system in runs]
    paths = [[str(run.folder) for run in system] for system in runs]
    candidates = [
        [_common_name(names) for names in folder_names],
        [", ".join(names) for names in folder_names],
        [", ".join(names) for names in paths],
    ]
    names = next((names for names in candidates if len(set(names)) == len(names)), candidates[-1])
    return [System(name, system) for name, system in zip(names, runs, strict=True)]


def read_run(folder: Path) -> Run:
    """Raises InputError if the run is not finished, or a file of it is missing or damaged."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such run folder")
    refuse_links_out(folder)
    config = read_config(folder)
    if not (folder / RESULTS).is_file():
        raise InputError(f"{folder} has no test scores yet: finish its training (the same command goes on)")
    lines = {name: _read_text(folder / SCORED / f"test.{name}") for name in ("source", "reference", "hypothesis")}
    if len({len(part) for part in lines.values()}) != 1:
        counts = ", ".join(f"{name} {len(part)}" for name, part in lines.items())
        raise InputError(f"{folder / SCORED}: the files have different numbers of lines: {counts}")
    if not lines["source"]:
        raise InputError(f"{folder / SCORED}: there is not one test sentence in it")
    results = read_json(folder / RESULTS, "bleu_signature", *RESULTS_NEEDED)
    if wrong := [name for name in sorted(RESULTS_NEEDED) if not _is_number(results[name])]:
        raise InputError(f"{folder / RESULTS}: damaged or of another version: {', '.join(wrong)}")
    provenance = read_json(folder / PROVENANCE, *PROVENANCE_NEEDED)
    for section, needed in PROVENANCE_NEEDED.items():
        if not isinstance(provenance[section], dict) or not needed <= provenance[section].keys():
            raise InputError(f"{folder / PROVENANCE}: damaged or of another version: {section}")
    splits = provenance["data"].values()
    if not all(isinstance(one, dict) and "pairs" in one and isinstance(one.get("sha256"), str) for one in splits):
        raise InputError(f"{folder / PROVENANCE}: damaged or of another version: data")
    metrics = _read_metrics(folder / METRICS)
    return Run(folder, config, results, provenance, metrics, *lines.values())


def _read_metrics(path: Path) -> list[dict]:
    lines = []
    for number, text in enumerate(_read_text(path), 1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        needed = METRICS_NEEDED.get(str(line.get("split"))) if isinstance(line, dict) else None
        if needed is None or any(not _is_number(line.get(name, ""), name in CAN_BE_NULL) for name in needed):
            raise InputError(f"{path}: line {number} is damaged")
        lines.append(line)
    return lines


def _is_number(value: object, or_null: bool = False) -> bool:
    return is_number(value) or (or_null and value is None)


def _read_text(path: Path) -> list[str]:
    return [line.decode("utf-8", errors="replace") for line in read_lines(path)]


def _refuse_incomparable(baseline: Run, run: Run) -> None:
    """Scores mean something beside each other only on the same sentences, counted in the same way."""
    data = baseline.config.data, run.config.data
    directions = [f"{each.source_language}→{each.target_language}" for each in data]
    tokenizers = [_scored_with(one) for one in (baseline, run)]
    for what, first, second in (
        ("direction", *directions),
        ("number of test sentences", len(baseline.sources), len(run.sources)),
        ("tokenisation of the score", *tokenizers),
    ):
        if first != second:
            raise InputError(
                f"{run.folder} cannot be compared with {baseline.folder}: another {what} ({second} instead of {first})"
            )
    for what, ours, theirs in (
        ("source", baseline.sources, run.sources),
        ("reference", baseline.references, run.references),
    ):
        differing = [number for number, pair in enumerate(zip(ours, theirs, strict=True), 1) if pair[0] != pair[1]]
        if differing:
            raise InputError(
                f"{run.folder} cannot be compared with {baseline.folder}: another test set (the {what} differs in "
                f"{len(differing)} lines, first in line {differing[0]})"
            )


def _scored_with(run: Run) -> str:
    """The tokeniser and case of a run's BLEU, from its signature."""
    parts = str(run.results.get("bleu_signature", "")).split("|")
    return " ".join(part for part in parts if part.startswith(("tok:", "case:")))


def _refuse_another_recipe(first: Run, run: Run) -> None:
    """The runs of one system differ in their seed alone."""
    differing = config_differences(first.config, run.config)
    if "seed" not in differing:
        raise InputError(f"{run.folder} has the same seed as {first.folder}: {run.config.seed}")
    if others := [key for key in differing if key != "seed"]:
        raise InputError(f"{run.folder} is no other seed of {first.folder}: they differ in {', '.join(others)}")
    # Which training pairs are too long can hang on the tokenizer, and of large corpora that hangs on the seed.
    data = first.provenance["data"], run.provenance["data"]
    if changed := [split for split in ("valid", "test") if data[0][split] != data[1][split]]:
        raise InputError(f"{run.folder} is no other seed of {first.folder}: other {' and '.join(changed)} pairs")


def _common_name(names: Sequence[str]) -> str:
    """What the names of a system's runs begin with, up to a place where one would cut."""
    if len(names) == 1:
        return names[0]
    shared = re.sub(r"[^-_=. ]*$", "", os.path.commonprefix(list(names))).rstrip("-_=. ")
    stem = shared.removesuffix("seed").rstrip("-_=. ")
    return f"{stem} ({len(names)} seeds)" if stem else ", ".join(names)
