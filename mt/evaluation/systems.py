"""The systems to compare: finished runs, models without a run, or files with another program's translations."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from mt.config import TRANSFORMERS, CompareConfig, DecodingConfig, EvaluationConfig, RobustnessConfig, as_folders
from mt.core.errors import InputError
from mt.core.files import read_lines
from mt.core.language import ANY_DIRECTION, UNKNOWN_LANGUAGE, AskedDirection, base_language, choose_direction
from mt.core.text_files import INVALID_UTF_8
from mt.evaluation.runs import Run, read_run, refuse_different_configs
from mt.metrics.significance import block_numbers
from mt.storage.folders import is_model_without_run, read_description, resolve_model_path
from mt.storage.model_description import ModelDescription

SEED_SUFFIX = re.compile(r"(^|[-_=. ]+)(seed)?[-_=. ]*\d+$")
"""The seed at the end of a run's name: ``-seed2``, ``_3``."""


@dataclass(frozen=True)
class EvaluationSet:
    """The test set that every system of a comparison has translated."""

    sources: list[str] | None
    """None if only files of translations are compared, without the setting ``source``."""
    references: list[str]
    source_language: str | None
    target_language: str
    other_references: tuple[list[str], ...] = ()
    """Further references of each sentence, for the scores. All else uses ``references``."""

    @property
    def all_references(self) -> list[list[str]]:
        return [self.references, *self.other_references]

    @property
    def direction(self) -> str:
        """The languages for a report: ``en→fr``, or ``into fr`` if the source language is unknown."""
        if self.source_language is None:
            return f"into {self.target_language}"
        return f"{self.source_language}→{self.target_language}"

    @property
    def key(self) -> str:
        """The direction in file names: ``en-fr``."""
        return f"{self.source_language}-{self.target_language}"

    def blocks(self) -> np.ndarray:
        """Return the block number of each of N sentences, (N,) int64. Significance tests exchange blocks.

        Sentences with the same source form one block or, if the sources are unknown, those with the same reference.
        """
        return block_numbers(self.references if self.sources is None else self.sources)


@dataclass(frozen=True)
class Output:
    """One translation of the test set, and the run, model or file that it comes from. ``System.outputs`` holds it."""

    origin: Path
    """The run or model folder, the name of a model on the Hugging Face hub, or the file of translations."""
    hypotheses: list[str]
    """A translation of each test sentence. Empty until ``with_translations`` has let the model translate."""
    run: Run | None = None
    """None for a model without a run, and for a file."""
    model: ModelDescription | None = None
    """None for a file."""
    decoding: DecodingConfig | None = None
    """The settings of the search for the hypotheses; None for a file."""
    parameters: int | None = None
    """The number of parameters of a model without a run; None until ``with_translations`` has loaded it."""
    weights: str | None = None
    """The checksum of the weights of a model without a run; None until ``with_translations`` has loaded it."""
    asked: AskedDirection = ANY_DIRECTION
    """The direction, if the model has several. ``model`` and ``run`` are then about it."""

    @property
    def name(self) -> str:
        """The name of the folder or file, without its parent folders."""
        return self.origin.resolve().name if self.model else self.origin.name

    @property
    def is_foreign(self) -> bool:
        """Whether ``transformers`` computes the model."""
        return str(self.origin).startswith(TRANSFORMERS)


@dataclass(frozen=True)
class System:
    """One of the compared systems, with one or several outputs: runs that differ in their seed alone, models without a
    run, or files of translations."""

    name: str
    outputs: list[Output]

    @property
    def first(self) -> Output:
        """The first output. It represents the system where one output is measured, as for speed and attention."""
        return self.outputs[0]

    @property
    def runs(self) -> list[Run]:
        """The run of each output; empty for files and for models without a run."""
        return [output.run for output in self.outputs if output.run]

    @property
    def is_single(self) -> bool:
        return len(self.outputs) == 1

    @property
    def can_translate(self) -> bool:
        """Whether the system has a model; a file of translations has none."""
        return self.first.model is not None


def directions_to_score(config: CompareConfig | EvaluationConfig | RobustnessConfig) -> list[AskedDirection]:
    """Return the directions that a command scores: the one that its settings name or, without one, all that the models
    have in common. A model of a single direction needs none.

    Raises:
        InputError: A model cannot be read, or the models have no direction in common.
    """
    given = AskedDirection(config.source_language, config.target_language)
    origins = [origin for origins in config.systems for origin in origins]
    models = [list(read_description(origin).layers) for origin in origins if resolve_model_path(origin).is_dir()]
    models = [own for own in models if UNKNOWN_LANGUAGE not in own[0]]  # others take the languages of the test set
    largest = max(models, key=len, default=[])
    shared = [direction for direction in largest if all(direction in own for own in models)]
    if any(given) or len(largest) <= 1 or (getattr(config, "references", None) and len(shared) > 1):
        return [given]
    if shared:
        return [AskedDirection(*direction) for direction in shared]
    raise InputError(f"{' and '.join(origins)} have no direction in common; set source_language and target_language")


def open_systems(
    config: CompareConfig | EvaluationConfig, asked: AskedDirection = ANY_DIRECTION
) -> tuple[EvaluationSet, list[System]]:
    """Read the test set and the systems that the settings of ``mt compare`` or ``mt evaluate`` name.

    Models of several directions translate in the direction ``asked``.

    The test set is the one that the setting ``references`` names or, without it, the test set of the first run. Models
    without a run have no hypotheses yet and, with ``references``, runs have none either. ``with_translations`` adds
    them.

    Returns:
        The test set and the systems, the baseline first. The runs of each system are sorted by their seeds. Systems
        are named by ``common_name`` and, if two would get the same name, numbered: ``demo [1]``, ``demo [2]``.

    Raises:
        InputError: A run is unfinished or corrupted, two runs have different test sets, a file has not one line for
            each
            test sentence, or the outputs of one system are of different kinds or different configs.
    """
    systems = [[_open_output(Path(origin), asked) for origin in origins] for origins in config.systems]
    systems = [sorted(outputs, key=lambda output: output.run.config.seed if output.run else 0) for outputs in systems]
    outputs = [output for system in systems for output in system]
    runs = [output for output in outputs if output.run]
    if config.references is not None or not runs:
        evaluation = _read_evaluation_set(config, [output for output in outputs if output.model])
        systems = [
            [replace(output, hypotheses=[]) if output.model else output for output in system] for system in systems
        ]
        _refuse_tables(
            {str(output.origin): output.hypotheses for output in outputs if not output.model}
            | dict(zip(as_folders(config.references or ()), evaluation.all_references, strict=True))
            | ({} if evaluation.sources is None else {str(config.source): evaluation.sources})
        )
    else:
        languages = () if any(any(output.asked) for output in outputs) else ("source_language", "target_language")
        for key in ("source", *languages):
            if (value := getattr(config, key)) is not None:
                raise InputError(
                    f"{key}={value} is for a test set of your own: add references=FILE, or leave {key} out to take "
                    f"the test set of {runs[0].origin}"
                )
        evaluation = scored_set(runs[0])
        for output in runs[1:]:
            _refuse_incomparable(runs[0], evaluation, output)
    asked = AskedDirection(evaluation.source_language, evaluation.target_language)
    for system in systems:
        for number, output in enumerate(system):
            if output.model and output.model.target_language == UNKNOWN_LANGUAGE:
                system[number] = replace(output, asked=asked)
            if (output.hypotheses or not output.model) and len(output.hypotheses) != len(evaluation.references):
                raise InputError(
                    f"{output.origin} has {len(output.hypotheses):,} lines, but there are "
                    f"{len(evaluation.references):,} references; give a file in which line n translates test sentence n"
                )
        if len({(output.run is None, output.model is None) for output in system}) > 1:
            raise InputError(
                f"{system[0].origin}: the outputs of one system are all runs, or models, or files; give outputs of "
                "different kinds as different systems"
            )
        for first, second in pairwise(system):
            if first.run and second.run:
                refuse_different_configs(first.run, second.run)
    named = [System(common_name(system), system) for system in systems]
    if len({system.name for system in named}) < len(named):
        named = [replace(system, name=f"{system.name} [{number}]") for number, system in enumerate(named, 1)]
    return evaluation, named


def scored_set(output: Output) -> EvaluationSet:
    """Return the test set of a run, as its run folder holds it."""
    assert output.run and output.model
    lines, model = output.run.scored, output.model
    return EvaluationSet(lines["source"], lines["reference"], model.source_language, model.target_language)


def _open_output(origin: Path, asked: AskedDirection) -> Output:
    """Read a run, the description of a model without a run, or a file of translations."""
    folder = resolve_model_path(origin)
    if not folder.is_dir():
        return Output(origin, _read_lines(origin))
    model = read_description(origin)
    run = None if is_model_without_run(folder) else read_run(folder)
    has_several = len(model.layers) > 1
    if [run is not None, has_several, any(asked)].count(True) > 1:
        direction = choose_direction(model.layers, asked, origin)
        languages = {"source_language": direction.source, "target_language": direction.target}
        model, asked = model.model_copy(update=languages), AskedDirection(*direction)
        run = run.towards(direction) if run and has_several else run
    else:
        asked = ANY_DIRECTION
    if run is None:
        return Output(origin, [], model=model, decoding=model.decoding, asked=asked)
    return Output(folder, run.scored["hypothesis"], run, model, run.config.decoding, asked=asked)


def report_parent(origins: Sequence[Path]) -> Path:
    """Return the folder that holds the last run, model folder or file: the place for a report. Models of the hub do not
    count; if there are no others, it is the current folder."""
    return next((origin.resolve().parent for origin in reversed(origins) if origin.exists()), Path())


def _read_evaluation_set(config: CompareConfig | EvaluationConfig, models: Sequence[Output]) -> EvaluationSet:
    """Read the user's own test set: the files of ``references`` and, if it is set, ``source``.

    Args:
        models: The compared runs and models. Those give the languages that the config does not name, and need a
            source.

    Raises:
        InputError: A setting is missing, a file cannot be used, or the languages are not those of a run.
    """
    source_language, target_language = (
        _language(side, getattr(config, side), models) for side in ("source_language", "target_language")
    )
    needed = ["references"] * (config.references is None) + ["source"] * (bool(models) and config.source is None)
    if needed or target_language is None:
        missing = [*needed, *(["target_language"] if target_language is None else [])]
        raise InputError(
            f"{' and '.join(missing)} must be set, because no run with a test set is given; for example: "
            "references=reference.txt source=source.txt target_language=de"
        )
    assert config.references is not None
    paths = as_folders(config.references)
    references, *others = [_read_lines(Path(path)) for path in paths]
    sources = None if config.source is None else _read_lines(Path(config.source))
    for key, path, lines in [
        *(("references", path, lines) for path, lines in zip(paths, [references, *others], strict=True)),
        ("source", config.source, references if sources is None else sources),
    ]:
        if not any(map(str.strip, lines)):
            raise InputError(f"{key}={path} has no text; give a file with a sentence on each line")
        if len(lines) != len(references):
            raise InputError(
                f"{key}={path} has {len(lines):,} lines and references={paths[0]} has {len(references):,}; line n of "
                "both must belong to test sentence n"
            )
    return EvaluationSet(sources, references, source_language, target_language, tuple(others))


def _language(side: str, given: str | None, models: Sequence[Output]) -> str | None:
    """Return the source or target language of the user's own test set.

    Args:
        side: ``source_language`` or ``target_language``.
        given: The value of that setting.

    Returns:
        ``given`` or, if it is None, the language that all models have. None if they have several or do not say it.

    """
    codes = [getattr(output.model, side) for output in models]
    known = [code for code in codes if code != UNKNOWN_LANGUAGE]
    return given or (known[0] if len(set(map(base_language, known))) == 1 else None)


def _refuse_tables(files: Mapping[str, list[str]]) -> None:
    """Raise InputError for a file with a tab in each of its lines, unless all files are such.

    Args:
        files: The name of each file → its lines.
    """
    written = {name: list(filter(str.strip, lines)) for name, lines in files.items()}
    tables = [name for name, lines in written.items() if lines and all("\t" in line for line in lines)]
    if tables and len(tables) < len(files):
        raise InputError(
            f"{tables[0]} has a tab in each line, so it is a table; write each column to a file of its own, for "
            f"example with cut -f1 {tables[0]}, and name several references as references=[FILE,FILE]"
        )


def _read_lines(path: Path) -> list[str]:
    """Read the lines of a file of translations, references or sources, without byte-order mark and line ends.

    Raises:
        InputError: The file cannot be read, or a line is not UTF-8.
    """
    # Invalid bytes are refused because, once replaced, different ones would count as equal.
    lines = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            lines.append(line.removesuffix(b"\r").decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            raise InputError(f"{path}: line {number} is {INVALID_UTF_8}") from None
    return lines


def _refuse_incomparable(first: Output, evaluation: EvaluationSet, output: Output) -> None:
    """Raise InputError unless a run has the same languages and the same test set, line by line, as the first run.

    Args:
        evaluation: The test set of ``first``.
    """
    other = scored_set(output)
    message = f"{output.origin} cannot be compared with {first.origin}: another"
    hint = "compare runs of one test set, or give compare one with references=, source= and target_language="
    if other.direction != evaluation.direction:
        raise InputError(
            f"{message} direction ({other.direction} instead of {evaluation.direction}); compare runs of one direction"
        )
    count, expected = len(other.references), len(evaluation.references)
    if count != expected:
        raise InputError(f"{message} number of test sentences ({count} instead of {expected}); {hint}")
    for side, lines, expected_lines in (
        ("source", other.sources, evaluation.sources),
        ("reference", other.references, evaluation.references),
    ):
        pairs = enumerate(zip(lines or [], expected_lines or [], strict=True), 1)
        if differing := [number for number, (line, expected_line) in pairs if line != expected_line]:
            raise InputError(
                f"{message} test set (the {side} differs in {len(differing)} lines, first in line {differing[0]}); "
                f"{hint}"
            )


def common_name(outputs: Sequence[Output]) -> str:
    """Return a name for a system with these outputs.

    Names that differ only in the seed at their end become ``demo (3 seeds)`` for runs, ``demo (3 outputs)`` otherwise.
    Other names are joined by commas.
    """
    names = [output.name for output in outputs]
    if len(names) == 1:
        return names[0]
    stems = {SEED_SUFFIX.sub("", name) for name in names}
    noun = "seeds" if outputs[0].run else "outputs"
    return f"{stems.pop()} ({len(names)} {noun})" if len(stems) == 1 and "" not in stems else ", ".join(names)
