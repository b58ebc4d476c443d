"""Composition of configs: Hydra merges the files in ``conf/``, and the schema checks the result.

Hydra alone stops at the first mistake. Here it only chooses and merges files. Single keys are set afterwards, so that
unknown keys, impossible values and contradictions all reach the schema at once.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import hydra
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from mt.cli.config_files import Files, example
from mt.cli.keys import schema_defaults
from mt.cli.mistakes import ErrorFormatter, Mistake
from mt.cli.overrides import OverrideReader, first_line
from mt.config.fields import IGNORE_CONTRADICTIONS, Section
from mt.config.presets import AUTO
from mt.config.resolved import Origin, Resolved, flat_values, set_value
from mt.core.errors import InputError
from mt.core.installation import CONF
from mt.core.wording import brief, counted, format_value, nearest

USUAL_MODEL = "transformer_small"

Config = TypeVar("Config", bound=Section)


@dataclass(frozen=True)
class Job(Generic[Config]):
    """One config of a command line, and the settings that are its own in a sweep (``seed=2``)."""

    resolved: Resolved[Config]
    swept: tuple[str, ...]

    @property
    def config(self) -> Config:
        return self.resolved.config


def compose_jobs(
    command: str, schema: type[Config], words: Sequence[str], multirun: bool, config_dir: Path | None = None
) -> list[Job[Config]]:
    """Compose and check every job of a command line.

    Args:
        command: The name of the config file in ``conf/`` that it starts from.
        schema: What its config must be.
        words: Overrides in Hydra's syntax.
        multirun: Whether a setting may have several values, each for a job of its own.
        config_dir: A folder with config files of the user's own, laid out like ``conf/``.

    Raises:
        InputError: With every mistake in every job.
    """
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        reader = OverrideReader(schema)
        composer = _Composer(Files(command, config_dir), schema, reader)
        jobs: list[Job[Config]] = []
        for overrides, swept in reader.expand(reader.parse(words), multirun):
            if resolved := composer.compose(overrides, swept):
                jobs.append(Job(resolved, swept))
    if lines := list(dict.fromkeys(mistake.line for mistake in reader.mistakes)):
        count = "one mistake" if len(lines) == 1 else counted(len(lines), "mistake")
        raise InputError("\n  ".join([f"{count}, nothing was started:", *lines]))
    return jobs


@dataclass(frozen=True)
class _Setting:
    """``key=value``: the value as Hydra understands it, and the letters as typed."""

    key: str
    value: Any
    typed: str

    def overlaps(self, key: str) -> bool:
        """Return whether the keys are equal or one lies within the other."""
        return _lies_in(self.key, key) or _lies_in(key, self.key)


class _Composer(Generic[Config]):
    """Composes the jobs of one command line and gathers the mistakes of all of them."""

    def __init__(self, files: Files, schema: type[Config], reader: OverrideReader) -> None:
        self.files = files
        self.schema = schema
        self.reader = reader
        self.defaults = files.group_defaults()
        self.options = {group: list(files.options(group)) for group in self.defaults}
        self.formatter = ErrorFormatter(schema, self.options)

    def compose(self, overrides: list[Override], swept: tuple[str, ...]) -> Resolved[Config] | None:
        """Return the checked config, or None after recording every mistake."""
        groups, settings = self._sort(overrides)
        config, chosen = self.files.merged(groups)
        for group in self.options.keys() - self.schema.model_fields.keys() & config.keys():
            self.reader.refuse(f"{group}={chosen[group]}: the file's first line must be: # @package _global_")
            del config[group]
        for setting in settings:
            try:
                OmegaConf.update(config, setting.key, setting.value, merge=True)
            except OmegaConfBaseException as error:
                self.reader.refuse(f"{setting.key}={brief(setting.typed)}: {first_line(error)}")
        has_budget = any(
            OmegaConf.select(config, key, throw_on_resolution_failure=False) is not None
            for key in ("training.minutes", "choice")
        )
        if "name" in self.schema.model_fields and not any(setting.key == "name" for setting in settings):
            usual = {"model": USUAL_MODEL} if chosen["model"] == AUTO and not has_budget else {}
            _set_default_name(config, {**chosen, **usual}, swept)
        values = self._values_with_texts(config, settings)
        checked = self._check(values, self._examples(chosen))
        if checked is None or self.reader.mistakes:
            return None
        origins: dict[str, Origin] = {
            key: "typed" if any(setting.overlaps(key) for setting in settings) else "preset"
            for key in Resolved.of(checked).origins
        }
        # A model's preset stands for a size. The best dropout depends on the length of the run, too.
        if has_budget and origins.get("model.dropout") == "preset":
            without_preset, _ = self.files.merged({**groups, "model": AUTO})
            if "dropout" not in without_preset.model:
                del origins["model.dropout"]
        return Resolved(checked, origins)

    def _sort(self, overrides: list[Override]) -> tuple[dict[str, str], list[_Setting]]:
        """Return the chosen options of groups, and the settings of single keys."""
        groups: dict[str, str] = {}
        settings: list[_Setting] = []
        for override in overrides:
            key, value = override.key_or_group, override.value()
            typed = value if isinstance(value, str) else (override.input_line or "").partition("=")[2].strip()
            if override.is_delete():
                self.reader.refuse(f"~{key}: no key can be taken away; give it another value: {key}=…")
            elif override.package is not None or key.partition(".")[0] == "hydra":
                full = f"{key}@{override.package}" if override.package else key
                self.reader.mistakes.append(self.formatter.unknown_key(full, value))
            elif key not in self.options or isinstance(value, dict):
                settings.append(_Setting(key, value, typed))
            elif typed in self.options[key]:
                groups[key] = typed
            elif value is None and self.defaults[key] is None:
                groups.pop(key, None)
            else:
                self.reader.mistakes.append(self.formatter.unknown_option(key, typed))
                if near := nearest(typed, self.options[key]):
                    groups[key] = near
        return groups, settings

    def _values_with_texts(self, config: DictConfig, settings: list[_Setting]) -> dict[str, Any]:
        """Return the values of ``config``. Where only a text fits, a number counts as its letters, as typed: the run
        named 2024, the language `nan` (Min Nan), name=${seed}."""
        values = self._values(config, settings)
        typed = {setting.key: setting.typed for setting in settings if not isinstance(setting.value, str)}
        typed |= {key: "" for key, value in flat_values(_plain(config)) if isinstance(value, str)}
        try:
            self.schema.model_validate(values, context=IGNORE_CONTRADICTIONS)
        except ValidationError as error:
            for key, errors in self.formatter.errors_by_key(error).items():
                value, types = errors[0]["input"], {details["type"] for details in errors}
                is_number = isinstance(value, bool | int | float)
                if is_number and key in typed and types in ({"string_type"}, {"string_type", "tuple_type"}):
                    OmegaConf.update(config, key, typed[key] or format_value(value))
        return self._values(config, settings)

    def _values(self, config: DictConfig, settings: list[_Setting]) -> dict[str, Any]:
        """Return plain values. An interpolation may also name a key that stands nowhere and has its default."""
        while True:
            values = _plain(config)
            try:
                complete = OmegaConf.merge(schema_defaults(self.schema, values), config)
                return _select_like(values, OmegaConf.to_container(complete, resolve=True))
            except OmegaConfBaseException as error:
                key = str(error.full_key).partition("[")[0]
                typed = next((f"={setting.typed}" for setting in reversed(settings) if setting.key == key), "")
                self.reader.refuse(f"{key}{brief(typed)}: {first_line(error)}", key)
                section, _, name = key.rpartition(".")
                part = OmegaConf.select(config, section) if section else config
                if not OmegaConf.is_dict(part) or name not in part:
                    raise InputError(self.reader.mistakes[-1].line) from error
                del part[name]

    def _check(self, values: dict[str, Any], examples: Mapping[str, str]) -> Config | None:
        """Return the checked config, or None after recording every mistake.

        Keys are weighed together only once each of them is right by itself. So wrong values are replaced by defaults,
        and missing ones by those of examples. A contradiction that names one of these keys may not be the user's.
        """
        config, mistakes = self._validate(values)
        replaced = {mistake.key.partition("[")[0] for mistake in mistakes}
        if replaced:
            rest: dict[str, Any] = {}
            for setting in self._settings_of(examples.values()):
                if setting.key in replaced:
                    set_value(rest, setting.key, setting.value)
            for key, value in flat_values(values):
                if not any(_lies_in(key, wrong) for wrong in replaced):
                    set_value(rest, key, value)
            config, _ = self._validate(rest)
        names = {key.rpartition(".")[2] for key in replaced}
        contradictions = [
            Mistake("", line)
            for line in (config.all_contradictions() if config else ())
            if names.isdisjoint(re.findall(r"\w+", line))
        ]
        # A kind that was only guessed at cannot judge the other keys of its section.
        guessed = {mistake.key for mistake in self.reader.mistakes if mistake.key in self.options}
        self.reader.mistakes += [
            mistake
            for mistake in [*_with_examples(mistakes, examples), *contradictions]
            if mistake.key.partition(".")[0] not in guessed
            and not (mistake.is_missing and mistake.key in self.reader.unread)
        ]
        return None if mistakes or contradictions else config

    def _validate(self, values: dict[str, Any]) -> tuple[Config | None, list[Mistake]]:
        """Return the config, or the mistakes in single values."""
        try:
            return self.schema.model_validate(values, context=IGNORE_CONTRADICTIONS), []
        except ValidationError as error:
            return None, self.formatter.mistakes(error)

    def _settings_of(self, lines: Iterable[str]) -> list[_Setting]:
        words = [word for line in lines for word in shlex.split(line)]
        return self._sort([self.reader.parser.parse_override(word) for word in words])[1]

    def _examples(self, chosen: Mapping[str, str | None]) -> dict[str, str]:
        """Return for each top-level key, where there is one, a command line that sets all that is needed beneath it."""
        files = {name: CONF / f"{self.files.command}.yaml" for name in self.schema.model_fields}
        for group in self.options:
            files[group] = self.files.options(group).get(chosen[group] or "", files.get(group, CONF))
        return {name: line for name, file in files.items() if file.is_file() and (line := example(file))}


def _set_default_name(config: DictConfig, chosen: Mapping[str, str | None], swept: Sequence[str]) -> None:
    """Set the name of a run that no setting names: that of a config file, of the experiment, or of data and model; in a
    sweep, followed by the settings of this job."""
    own = _plain(config).get("name")
    groups = [] if own is not None else ["experiment"] if chosen["experiment"] else ["data", "model"]
    if own is None or isinstance(own, str | int | float):
        parts = [str(chosen[group]) for group in groups] or [format_value(own)]
        parts += [word for word in swept if word.partition("=")[0] not in groups]
        config["name"] = "-".join(parts).replace("/", "_")


def _with_examples(mistakes: Sequence[Mistake], examples: Mapping[str, str]) -> list[Mistake]:
    """Add to the last missing key of each section a command line that has them all."""
    last = {mistake.key.partition(".")[0]: mistake for mistake in mistakes if mistake.is_missing}
    return [
        replace(mistake, line=f"{mistake.line}, for example: {examples[section]}")
        if (section := mistake.key.partition(".")[0]) in examples and mistake == last.get(section)
        else mistake
        for mistake in mistakes
    ]


def _plain(config: DictConfig) -> dict[str, Any]:
    return {str(key): value for key, value in OmegaConf.to_container(config).items()}  # type: ignore[union-attr]


def _select_like(pattern: Any, values: Any) -> Any:
    """Return the part of ``values`` whose keys are in ``pattern``, and are not missing there."""
    if not isinstance(pattern, dict) or not isinstance(values, dict):
        return values
    return {str(key): _select_like(part, values[key]) for key, part in pattern.items() if part != "???"}


def _lies_in(key: str, section: str) -> bool:
    return f"{key}.".startswith(f"{section}.")
