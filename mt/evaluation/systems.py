"""Reads the systems to compare: finished runs, models that come alone, or files with another program's translations of
the same sentences."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from mt.config import CompareConfig, ModelDescription, TrainConfig
from mt.core.errors import InputError
from mt.core.files import read_lines
from mt.core.json_file import is_number, read_json
from mt.core.language import base_language
from mt.metrics.significance import blocks_of
from mt.storage.folders import read_description, refuse_links_out
from mt.storage.hub import resolve_model_path
from mt.storage.marian import UNKNOWN_LANGUAGE, is_marian
from mt.storage.run_folder import (
    CONFIG,
    METRICS,
    MODEL,
    RESULTS,
    config_differences,
    read_config,
    read_scored,
    refuse_changed_files,
)
from mt.training.provenance import read_provenance, with_conditions

Item = TypeVar("Item")

RESULTS_NEEDED = {"parameters", "updates", "target_tokens", "training_minutes", "peak_memory_bytes"}
"""Keys of results.json that must hold numbers. ``bleu_signature``, which is text, must be there as well."""
METRICS_NEEDED = {
    "train": {"loss", "seconds", "target_tokens"},
    "valid": {"step", "bleu", "seconds", "target_tokens"},
    "test": set(),
}
"""Keys that a line of metrics.jsonl must have, by its split."""
CAN_BE_NULL = {"loss", "bleu"}
"""Keys of metrics.jsonl whose value is null where it was not finite. All others must hold numbers."""


@dataclass(frozen=True)
class Run:
    """A finished run: how it was made and how it went."""

    folder: Path
    config: TrainConfig
    results: dict
    provenance: dict
    metrics: list[dict]

    def validations(self) -> list[dict]:
        """Returns the lines of metrics.jsonl on the validation set."""
        return [line for line in self.metrics if line["split"] == "valid"]


@dataclass(frozen=True)
class EvaluationSet:
    """The sentences that every system has translated."""

    sources: list[str] | None
    """None if only files are compared and ``source`` was not given."""
    references: list[str]
    source_language: str | None
    target_language: str

    def blocks(self) -> np.ndarray:
        """Returns the block of each sentence: (N,) int64, the same number for sentences with the same source (with the
        same reference, if the sources are not known)."""
        return blocks_of(self.references if self.sources is None else self.sources)


@dataclass(frozen=True)
class Output:
    """One translation of the evaluation set: the one that a run was scored on, that of a model, or a file."""

    origin: Path
    """The run or model folder, the name of a model of the hub, or the file."""
    hypotheses: list[str]
    """Empty until ``mt.evaluation.translation`` has let the model translate."""
    run: Run | None = None
    """None for a model that comes alone, and for a file."""
    model: ModelDescription | None = None
    """The model of a run, or the one that comes alone; None for a file, because only its lines are known."""
    weights: str | None = None
    """The checksum of the weights of a model that comes alone, once it has translated."""


@dataclass(frozen=True)
class System:
    """One of the compared systems: a config trained with one or several seeds, or another program with one or several
    outputs."""

    name: str
    outputs: list[Output]

    @property
    def first(self) -> Output:
        """The output that represents the system wherever only one can be looked at."""
        return self.outputs[0]

    @property
    def runs(self) -> list[Run]:
        """The runs behind the outputs; empty if these are files, or models that come alone."""
        return [output.run for output in self.outputs if output.run]

    @property
    def can_translate(self) -> bool:
        """Whether there is a model, which can be timed and looked into."""
        return self.first.model is not None

    @property
    def repeats(self) -> str:
        """What the system's outputs are called: "seeds" of one config, or just "outputs"."""
        return "seeds" if self.runs else "outputs"


def open_systems(config: CompareConfig) -> tuple[EvaluationSet, list[System]]:
    """Reads the systems to compare.

    Returns:
        The test set and the systems, the baseline first. The runs of each system are in the order of their seeds. The
        translations of models that come alone are missing and, if the config names a test set, those of runs, too:
        ``mt.evaluation.translation`` makes them.

    Raises:
        InputError: A run or model is unfinished or damaged, a system was tested on other sentences, a file has another
            number of lines, or something cannot be compared with the rest.
    """
    opened = [[_read(Path(place)) for place in system] for system in config.systems]
    opened = [sorted(system, key=lambda one: one[1].run.config.seed if one[1].run else 0) for system in opened]
    systems = [[output for _, output in system] for system in opened]
    with_runs = [(found, output) for system in opened for found, output in system if found]
    if config.references is not None or not with_runs:
        evaluation = _read_evaluation_set(config, [output for outputs in systems for output in outputs if output.model])
        systems = [
            [replace(output, hypotheses=[]) if output.model else output for output in outputs] for outputs in systems
        ]
    else:
        for key in ("source", "source_language", "target_language"):
            if (value := getattr(config, key)) is not None:
                raise InputError(
                    f"{key}={value} is for a test set of your own, which needs references=FILE; without it, the test "
                    f"set of {with_runs[0][1].origin} is compared on"
                )
        evaluation = with_runs[0][0]
        for found, output in with_runs[1:]:
            _refuse_incomparable(*with_runs[0], found, output)
    for outputs in systems:
        _refuse_other_lengths(evaluation, [output for output in outputs if output.hypotheses or not output.model])
        if len({(output.run is None, output.model is None) for output in outputs}) > 1:
            raise InputError(f"{outputs[0].origin}: the outputs of one system are runs, or models, or files")
        for first, second in pairwise(outputs):
            if first.run and second.run:
                _refuse_another_recipe(first.run, second.run)
    return evaluation, _named(systems)


def _named(systems: Sequence[list[Output]]) -> list[System]:
    """Gives the systems the shortest names that tell them apart."""
    short = [[_short_name(output) for output in outputs] for outputs in systems]
    whole = [[str(output.origin) for output in outputs] for outputs in systems]
    candidates = [
        [
            _common_name(names, "seeds" if outputs[0].run else "outputs")
            for names, outputs in zip(short, systems, strict=True)
        ],
        [", ".join(names) for names in short],
        [", ".join(names) for names in whole],
    ]
    numbered = [f"{name} ({number})" for number, name in enumerate(candidates[-1], 1)]
    names = next((names for names in candidates if len(set(names)) == len(names)), numbered)
    return [System(name, outputs) for name, outputs in zip(names, systems, strict=True)]


def _short_name(output: Output) -> str:
    return output.origin.resolve().name if output.model else output.origin.name


def _read(place: Path) -> tuple[EvaluationSet | None, Output]:
    """Reads a run with its test set; or a model that comes alone, or a file, which come without one."""
    folder = resolve_model_path(place)
    if is_model_alone(folder):
        return None, Output(place, [], model=read_description(place))
    if folder.is_dir():
        return read_run(folder)
    if not place.exists():
        raise InputError(f"{place}: no such run folder or file")
    return None, Output(place, _read_lines(place))


def is_model_alone(folder: Path) -> bool:
    """Returns whether a folder holds a model and no run: one of MarianMT, or what a run folder has for translating."""
    return is_marian(folder) or ((folder / MODEL).is_file() and not (folder / CONFIG).exists())


def folder_beside(places: Sequence[Path]) -> Path:
    """Returns the folder that the last of the systems lies in; models of the hub, which lie elsewhere, do not count."""
    return next((place.resolve().parent for place in reversed(places) if place.exists()), Path())


def _read_evaluation_set(config: CompareConfig, models: Sequence[Output]) -> EvaluationSet:
    """Reads the evaluation set from the files that the config names.

    Args:
        config: Names them, and the languages, unless all models have the same.
        models: What is to translate it.
    """
    source_language, target_language = (
        _language(side, getattr(config, side), models) for side in ("source_language", "target_language")
    )
    needed = ["references"] * (config.references is None) + ["source"] * (bool(models) and config.source is None)
    if needed or target_language is None:
        missing = [*needed, *(["target_language"] if target_language is None else [])]
        given = "theirs.txt second=ours.txt" if not models else f"{models[0].origin} second=…"
        raise InputError(
            f"{' and '.join(missing)}: needed where no run brings its test set along, for example: first={given} "
            "references=reference.txt source=source.txt target_language=de"
        )
    assert config.references is not None
    references = _read_lines(Path(config.references))
    sources = None if config.source is None else _read_lines(Path(config.source))
    if not references:
        raise InputError(f"references={config.references}: there is not one line in it")
    if sources is not None and len(sources) != len(references):
        raise InputError(
            f"source={config.source} has {len(sources):,} lines, references={config.references} {len(references):,}"
        )
    return EvaluationSet(sources, references, source_language, target_language)


def _language(side: str, given: str | None, models: Sequence[Output]) -> str | None:
    """Returns the source or target language of a test set: what is given, or else what all models say."""
    for output in models:
        own = getattr(output.model, side)
        if output.run and given and base_language(own) != base_language(given):
            raise InputError(f"{side}={given}: {output.origin} has {own}")
    known = [getattr(output.model, side) for output in models if getattr(output.model, side) != UNKNOWN_LANGUAGE]
    return given or (known[0] if len(set(map(base_language, known))) == 1 else None)


def _refuse_other_lengths(evaluation: EvaluationSet, outputs: Sequence[Output]) -> None:
    for output in outputs:
        if len(output.hypotheses) != len(evaluation.references):
            raise InputError(
                f"{output.origin} has {len(output.hypotheses):,} lines, but there are {len(evaluation.references):,} "
                "references: line n must be the translation of sentence n"
            )


def read_run(folder: Path) -> tuple[EvaluationSet, Output]:
    """Reads a finished run: its test set and its output.

    Raises:
        InputError: The run is not finished, or one of its files is missing or damaged.
    """
    refuse_links_out(folder)
    if not (folder / RESULTS).is_file():
        read_config(folder)  # a folder that is no run at all has another message
        raise InputError(f"{folder} has no test scores yet: finish its training (the same command goes on)")
    results = read_json(folder / RESULTS, "bleu_signature", *RESULTS_NEEDED)
    refuse_changed_files(folder, results)
    config = read_config(folder)
    lines = read_scored(folder)
    if wrong := [name for name in sorted(RESULTS_NEEDED) if not _is_number(results[name])]:
        raise InputError(f"{folder / RESULTS}: damaged or of another version: {', '.join(wrong)}")
    provenance = with_conditions(read_provenance(folder))
    metrics = _read_metrics(folder / METRICS)
    data = config.data
    run = Run(folder, config, results, provenance, metrics)
    evaluation = EvaluationSet(lines["source"], lines["reference"], data.source_language, data.target_language)
    return evaluation, Output(folder, lines["hypothesis"], run, read_description(folder))


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


def _read_lines(path: Path) -> list[str]:
    """Reads the lines of a file that another program wrote, without a byte-order mark and CRs at the ends of lines.

    Raises:
        InputError: A line is not UTF-8. If such bytes were replaced, different characters would count as equal.
    """
    lines = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            lines.append(line.removesuffix(b"\r").decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            raise InputError(f"{path}: line {number} is not UTF-8") from None
    return lines


def _read_text(path: Path) -> list[str]:
    return [line.decode("utf-8", errors="replace") for line in read_lines(path)]


def _refuse_incomparable(baseline: EvaluationSet, first: Output, evaluation: EvaluationSet, output: Output) -> None:
    """Raises InputError unless both runs have the same test set and scoring; else scores cannot be compared."""
    assert first.run and output.run
    directions = [f"{each.source_language}→{each.target_language}" for each in (baseline, evaluation)]
    for what, ours, theirs in (
        ("direction", *directions),
        ("number of test sentences", len(baseline.references), len(evaluation.references)),
        ("tokenisation of the score", _scored_with(first.run), _scored_with(output.run)),
    ):
        if ours != theirs:
            raise InputError(
                f"{output.origin} cannot be compared with {first.origin}: another {what} ({theirs} instead of {ours})"
            )
    for what, our_lines, their_lines in (
        ("source", baseline.sources or [], evaluation.sources or []),
        ("reference", baseline.references, evaluation.references),
    ):
        pairs = enumerate(zip(our_lines, their_lines, strict=True), 1)
        differing = [number for number, (one, other) in pairs if one != other]
        if differing:
            raise InputError(
                f"{output.origin} cannot be compared with {first.origin}: another test set (the {what} differs in "
                f"{len(differing)} lines, first in line {differing[0]})"
            )


def _scored_with(run: Run) -> str:
    """Returns the tokenizer and case of a run's BLEU, from its signature."""
    parts = str(run.results.get("bleu_signature", "")).split("|")
    return " ".join(part for part in parts if part.startswith(("tok:", "case:")))


def _refuse_another_recipe(first: Run, run: Run) -> None:
    """Raises InputError unless the two runs differ in their seed and nothing else, as the runs of one system must."""
    differing = config_differences(first.config, run.config)
    if "seed" not in differing:
        raise InputError(f"{run.folder} has the same seed as {first.folder}: {run.config.seed}")
    if others := [key for key in differing if key != "seed"]:
        raise InputError(f"{run.folder} is no other seed of {first.folder}: they differ in {', '.join(others)}")
    # The training pairs may differ: which of them are too long can depend on the tokenizer, and for large corpora the
    # tokenizer depends on the seed.
    data = first.provenance["data"], run.provenance["data"]
    if changed := [split for split in ("valid", "test") if data[0][split] != data[1][split]]:
        raise InputError(f"{run.folder} is no other seed of {first.folder}: other {' and '.join(changed)} pairs")


def _common_name(names: Sequence[str], repeats: str) -> str:
    """Returns a name for the runs or files of one system.

    It is the common beginning of their names, cut at a separator, with their number. If the names have no common
    beginning, all of them are listed.
    """
    if len(names) == 1:
        return names[0]
    shared = os.path.commonprefix(list(names))
    if any(re.match(r"[^-_=. ]", name[len(shared) :]) for name in names):
        shared = re.sub(r"[^-_=. ]*$", "", shared)  # the names diverge inside a word: cut back to its beginning
    stem = shared.rstrip("-_=. ").removesuffix("seed").rstrip("-_=. ")
    return f"{stem} ({len(names)} {repeats})" if stem else ", ".join(names)


def evenly_spaced(items: Sequence[Item], count: int) -> list[Item]:
    """Returns ``count`` of the items at even distances, because test sets are often sorted."""
    if count >= len(items):
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]
