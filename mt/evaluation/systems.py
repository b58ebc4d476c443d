"""The systems to compare: finished runs, models without a run, or files with another program's translations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from mt.config import CompareConfig, DecodingConfig
from mt.core.errors import InputError
from mt.core.files import read_lines
from mt.core.language import base_language
from mt.evaluation.naming import name_systems
from mt.evaluation.runs import Run, read_run, refuse_another_recipe
from mt.metrics.significance import block_numbers
from mt.storage.folders import is_model_without_run, read_description
from mt.storage.hub import resolve_model_path
from mt.storage.marian import UNKNOWN_LANGUAGE
from mt.storage.model_description import ModelDescription

Item = TypeVar("Item")


@dataclass(frozen=True)
class EvaluationSet:
    """The sentences that every system translates."""

    sources: list[str] | None
    """None if only files are compared and ``source`` was not given."""
    references: list[str]
    source_language: str | None
    target_language: str

    @property
    def direction(self) -> str:
        if self.source_language is None:
            return f"into {self.target_language}"
        return f"{self.source_language}→{self.target_language}"

    def blocks(self) -> np.ndarray:
        """Return the block of each sentence, (N,) int64: the same number for equal sources (for equal references, if
        the sources are unknown)."""
        return block_numbers(self.references if self.sources is None else self.sources)


@dataclass(frozen=True)
class Output:
    """One translation of the evaluation set: by a run or a model, or in a file."""

    origin: Path
    """The run or model folder, the name of a model of the hub, or the file."""
    hypotheses: list[str]
    """Empty until ``mt.evaluation.translation`` has let the model translate."""
    run: Run | None = None
    """None for a model without a run, and for a file."""
    model: ModelDescription | None = None
    """None for a file."""
    decoding: DecodingConfig | None = None
    """The search that finds the hypotheses; None for a file."""
    weights: str | None = None
    """The checksum of the weights of a model without a run, once it has translated."""

    @property
    def name(self) -> str:
        return self.origin.resolve().name if self.model else self.origin.name

    @property
    def kind(self) -> str:
        return "run" if self.run else "model" if self.model else "file"


@dataclass(frozen=True)
class System:
    """One of the compared systems: a config trained with one or several seeds, or another program with one or several
    outputs."""

    name: str
    outputs: list[Output]

    @property
    def first(self) -> Output:
        """The output that represents the system wherever only one is examined."""
        return self.outputs[0]

    @property
    def runs(self) -> list[Run]:
        """The runs behind the outputs; empty for files and for models without a run."""
        return [output.run for output in self.outputs if output.run]

    @property
    def is_single(self) -> bool:
        return len(self.outputs) == 1

    @property
    def can_translate(self) -> bool:
        """Whether there is a model to time and to study."""
        return self.first.model is not None

    @property
    def repeats(self) -> str:
        """The noun for the system's outputs: "seeds" of one config, or "outputs"."""
        return "seeds" if self.runs else "outputs"


def open_systems(config: CompareConfig) -> tuple[EvaluationSet, list[System]]:
    """Read the systems to compare.

    Returns:
        The test set and the systems, the baseline first. The runs of each system are in the order of their seeds.
        Hypotheses of models without a run are missing and, if the config names a test set, those of runs, too:
        ``mt.evaluation.translation`` makes them.

    Raises:
        InputError: A run or model is unfinished or damaged, a system was tested on other sentences, a file has another
            number of lines, or something cannot be compared with the rest.
    """
    systems = [[_open_output(Path(origin)) for origin in origins] for origins in config.systems]
    systems = [sorted(outputs, key=lambda output: output.run.config.seed if output.run else 0) for outputs in systems]
    outputs = [output for each in systems for output in each]
    runs = [output for output in outputs if output.run]
    if config.references is not None or not runs:
        evaluation = _read_evaluation_set(config, [output for output in outputs if output.model])
        systems = [[replace(output, hypotheses=[]) if output.model else output for output in each] for each in systems]
    else:
        for key in ("source", "source_language", "target_language"):
            if (value := getattr(config, key)) is not None:
                raise InputError(
                    f"{key}={value} is for a test set of your own, which needs references=FILE; without it, the test "
                    f"set of {runs[0].origin} is compared on"
                )
        evaluation = scored_set(runs[0])
        for output in runs[1:]:
            _refuse_incomparable(runs[0], evaluation, output)
    for each in systems:
        _refuse_other_lengths(evaluation, [output for output in each if output.hypotheses or not output.model])
        if len({output.kind for output in each}) > 1:
            raise InputError(f"{each[0].origin}: the outputs of one system are runs, or models, or files")
        for first, second in pairwise(each):
            if first.run and second.run:
                refuse_another_recipe(first.run, second.run)
    names = name_systems(
        [[output.name for output in each] for each in systems],
        ["seeds" if each[0].run else "outputs" for each in systems],
    )
    return evaluation, [System(name, each) for name, each in zip(names, systems, strict=True)]


def open_run(folder: Path) -> Output:
    """Read a finished run.

    Raises:
        InputError: The run is not finished, or one of its files is missing or damaged.
    """
    run = read_run(folder)
    return Output(folder, run.scored["hypothesis"], run, read_description(folder), run.config.decoding)


def scored_set(output: Output) -> EvaluationSet:
    """Return the test set of a run."""
    assert output.run
    lines, data = output.run.scored, output.run.config.data
    return EvaluationSet(lines["source"], lines["reference"], data.source_language, data.target_language)


def _open_output(origin: Path) -> Output:
    folder = resolve_model_path(origin)
    if is_model_without_run(folder):
        model = read_description(origin)
        return Output(origin, [], model=model, decoding=model.decoding)
    if folder.is_dir():
        return open_run(folder)
    if not origin.exists():
        raise InputError(f"{origin}: no such run folder or file")
    return Output(origin, _read_lines(origin))


def report_parent(origins: Sequence[Path]) -> Path:
    """Return the folder of the last of the systems; models of the hub are elsewhere and do not count."""
    return next((origin.resolve().parent for origin in reversed(origins) if origin.exists()), Path())


def _read_evaluation_set(config: CompareConfig, models: Sequence[Output]) -> EvaluationSet:
    """Read the evaluation set from the files that the config names.

    Args:
        config: Names them, and the languages, unless all models have the same.
        models: Translate it.
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
    """Return the source or target language of a test set: the given one, or else that of all models."""
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


def _read_lines(path: Path) -> list[str]:
    """Read the lines of another program's file, without a byte-order mark and CRs at the ends of lines.

    Raises:
        InputError: A line is not UTF-8. If such bytes were replaced, different characters would count as equal.
    """
    lines = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            lines.append(line.removesuffix(b"\r").decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            raise InputError(
                f"{path}: line {number} is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
            ) from None
    return lines


def _refuse_incomparable(first: Output, evaluation: EvaluationSet, output: Output) -> None:
    """Raise InputError unless two runs have the same test set and scoring."""
    other = scored_set(output)
    message = f"{output.origin} cannot be compared with {first.origin}: another"
    if other.direction != evaluation.direction:
        raise InputError(f"{message} direction ({other.direction} instead of {evaluation.direction})")
    count, expected = len(other.references), len(evaluation.references)
    if count != expected:
        raise InputError(f"{message} number of test sentences ({count} instead of {expected})")
    for side, lines, expected_lines in (
        ("source", other.sources, evaluation.sources),
        ("reference", other.references, evaluation.references),
    ):
        pairs = enumerate(zip(lines or [], expected_lines or [], strict=True), 1)
        if differing := [number for number, (line, expected_line) in pairs if line != expected_line]:
            raise InputError(
                f"{message} test set (the {side} differs in {len(differing)} lines, first in line {differing[0]})"
            )


def evenly_spaced(items: Sequence[Item], count: int) -> list[Item]:
    """Return up to ``count`` of the items at even distances, because test sets are often sorted."""
    if count >= len(items):
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]
