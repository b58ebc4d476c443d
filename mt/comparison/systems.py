"""What is compared: finished runs, one or several seeds of each system, all on the same test set."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mt.config import TrainConfig
from mt.errors import InputError
from mt.files import read_lines
from mt.run_folder import METRICS, RESULTS, SCORED, read_config, read_json


@dataclass(frozen=True)
class Run:
    """A finished run: how it was made, how it went, and what it says of the test set."""

    folder: Path
    config: TrainConfig
    results: dict
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
    """The systems, the baseline first.

    Raises InputError for a run that is unfinished or damaged, or that cannot be compared with the first one.
    """
    runs = [[read_run(Path(folder)) for folder in system] for system in folders]
    baseline = runs[0][0]
    for system in runs:
        for run in system:
            _refuse_incomparable(baseline, run)
        for run in system[1:]:
            _refuse_another_recipe(system[0], run)
    names = [_common_name([run.folder.name for run in system]) for system in runs]
    if len(set(names)) < len(names):
        names = [_common_name([str(run.folder) for run in system]) for system in runs]
    return [System(name, system) for name, system in zip(names, runs, strict=True)]


def read_run(folder: Path) -> Run:
    """Raises InputError if the run is not finished, or a file of it is missing or damaged."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such run folder")
    config = read_config(folder)
    if not (folder / RESULTS).is_file():
        raise InputError(f"{folder} has no test scores yet: finish its training (the same command goes on)")
    lines = {name: _read_text(folder / SCORED / f"test.{name}") for name in ("source", "reference", "hypothesis")}
    if len({len(part) for part in lines.values()}) != 1:
        counts = ", ".join(f"{name} {len(part)}" for name, part in lines.items())
        raise InputError(f"{folder / SCORED}: the files have different numbers of lines: {counts}")
    try:
        metrics = [json.loads(line) for line in _read_text(folder / METRICS)]
    except ValueError as error:
        raise InputError(f"{folder / METRICS}: damaged: {error}") from None
    return Run(folder, config, read_json(folder / RESULTS), metrics, *lines.values())


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
    ours, theirs = (one.config.model_dump(exclude={"name", "runs", "seed"}) for one in (first, run))
    differing = [name for name in ours if ours[name] != theirs[name]]
    if differing:
        raise InputError(
            f"{run.folder} is no other seed of {first.folder}: their configs differ in {', '.join(differing)}"
        )
    if first.config.seed == run.config.seed:
        raise InputError(f"{run.folder} has the same seed as {first.folder}: {run.config.seed}")


def _common_name(names: Sequence[str]) -> str:
    """What the names of a system's runs begin with."""
    if len(names) == 1:
        return names[0]
    shared = "".join(letters[0] for letters in _same(names)).rstrip("-_=. ").removesuffix("seed").rstrip("-_=. ")
    return f"{shared or names[0]} ({len(names)} seeds)"


def _same(names: Sequence[str]) -> list[tuple[str, ...]]:
    columns = []
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        columns.append(letters)
    return columns
