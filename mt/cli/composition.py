"""Composition of configs: Hydra merges the files in ``conf/``, and the schema checks the result.

Hydra alone stops at the first mistake. Here it only chooses and merges files. Single keys are set afterwards, so that
unknown keys, impossible values and contradictions all reach the schema at once.
"""

import copy
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import hydra
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from mt.cli.config_files import Files, example
from mt.cli.keys import text_keys
from mt.cli.mistakes import ErrorFormatter, Mistake
from mt.cli.overrides import OverrideReader, first_line
from mt.cli.plain_values import add, defaults, remove, select_like
from mt.config.fields import Section
from mt.config.presets import AUTO
from mt.config.resolved import Origin, Resolved
from mt.config.train import TrainConfig
from mt.core.errors import InputError
from mt.core.installation import CONF
from mt.core.wording import brief, format_value, nearest

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
        composer = _Composer(Files(command, config_dir), schema)
        overrides = [composer.reader.parse(word) for word in words]
        jobs: list[Job[Config]] = []
        for job_words, swept in composer.reader.expand([override for override in overrides if override], multirun):
            resolved = composer.compose(job_words, swept)
            if resolved is not None:
                jobs.append(Job(resolved, swept))
    lines = list(dict.fromkeys(mistake.line for mistake in composer.mistakes))
    if lines:
        count = "one mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
        raise InputError("\n  ".join([f"{count}, nothing was started:", *lines]))
    return jobs


@dataclass(frozen=True)
class _Setting:
    """``key=value``: the value as Hydra understands it, and the letters as typed."""

    key: str
    value: Any
    typed: str


class _Composer(Generic[Config]):
    """Compose the jobs of one command line and gathers the mistakes of all of them."""

    def __init__(self, files: Files, schema: type[Config]) -> None:
        self.files = files
        self.schema = schema
        self.defaults = files.group_defaults()
        self.options = {group: list(files.options(group)) for group in self.defaults}
        self.mistakes: list[Mistake] = []
        self.reader = OverrideReader(schema, self.mistakes)

    def compose(self, overrides: list[Override], swept: tuple[str, ...]) -> Resolved[Config] | None:
        """Return the checked config, or None after recording every mistake."""
        groups, settings = self._sort(overrides)
        config, chosen = self.files.merged(groups)
        for group in self.options.keys() - self.schema.model_fields.keys() & config.keys():
            self._wrong(f"{group}={chosen[group]}: the file's first line must be: # @package _global_")
            del config[group]
        is_chosen_for = any(
            OmegaConf.select(config, key) is not None
            or any(setting.key == key and setting.value is not None for setting in settings)
            for key in ("training.minutes", "choice")
        )
        if "name" in self.schema.model_fields and not any(setting.key == "name" for setting in settings):
            named = config.get("name")
            if named is None or isinstance(named, str | int | float):
                usual = {"model": USUAL_MODEL} if chosen.get("model") == AUTO and not is_chosen_for else {}
                config["name"] = _default_name(named, {**chosen, **usual}, swept)
        values = self._apply(config, settings)
        formatter = ErrorFormatter(self.schema, self.options, self._examples(chosen))
        mistakes = self._mistakes(values, formatter)
        if not mistakes:
            if self.mistakes:
                return None
            return self._resolve(self.schema.model_validate(values), groups, settings)
        # A kind that was only guessed at cannot judge the other keys of its section.
        guessed = {mistake.key for mistake in self.mistakes if mistake.key in self.options}
        judged = [mistake for mistake in mistakes if mistake.key.partition(".")[0] not in guessed]
        self.mistakes += [
            mistake for mistake in judged if mistake.kind != "missing" or mistake.key not in self.reader.unread
        ]
        self.mistakes += self._hidden_contradictions(values, judged, formatter)
        return None

    def _resolve(self, config: Config, groups: dict[str, str], settings: list[_Setting]) -> Resolved[Config]:
        """Add the origin of each value."""
        origins: dict[str, Origin] = {
            key: "typed" if any(_overlap(setting.key, key) for setting in settings) else "preset"
            for key in Resolved.of(config).origins
        }
        # A model's preset stands for a size. The best dropout depends on the length of the run, too.
        if (
            isinstance(config, TrainConfig)
            and (config.training.minutes or config.choice)
            and origins.get("model.dropout") == "preset"
        ):
            without_preset, _ = self.files.merged({**groups, "model": AUTO})
            if "dropout" not in without_preset.model:
                del origins["model.dropout"]
        return Resolved(config, origins)

    def _mistakes(self, values: Mapping[str, Any], formatter: ErrorFormatter) -> list[Mistake]:
        try:
            self.schema.model_validate(values)
        except ValidationError as error:
            return formatter.mistakes(error)
        return []

    def _hidden_contradictions(
        self, values: dict[str, Any], mistakes: list[Mistake], formatter: ErrorFormatter
    ) -> list[Mistake]:
        """Return the contradictions that ``mistakes`` hide: the schema weighs keys together only once
        each of them is right by itself, and sections only once there is no contradiction inside them.

        The values to blame are left out, or filled in from examples, and the rest is checked again.
        """
        rest, left_out = copy.deepcopy(values), set()
        for mistake in mistakes:
            if mistake.kind == "contradiction":
                named = re.findall(r"[\w.]+", mistake.line)
                keys = [*named, *(f"{mistake.key}.{word}" for word in named)]
            else:
                keys = [mistake.key.partition("[")[0]]
                left_out.add(mistake.key.rpartition(".")[2])
            left_out |= {key.rpartition(".")[2] for key in keys if remove(rest, key, mistake.kind != "contradiction")}
        for section in {mistake.key.partition(".")[0] for mistake in mistakes if mistake.kind == "missing"}:
            words = shlex.split(formatter.examples.get(section, ""))
            for setting in self._sort([self.reader.parser.parse_override(word) for word in words])[1]:
                add(rest, setting.key, setting.value)
        # What speaks of a value that was left out may not be true of what the user meant.
        hidden = [
            mistake
            for mistake in self._mistakes(rest, formatter)
            if mistake.kind == "contradiction"
            and mistake not in mistakes
            and left_out.isdisjoint(re.findall(r"\w+", mistake.line))
        ]
        return hidden + self._hidden_contradictions(values, mistakes + hidden, formatter) if hidden else []

    def _sort(self, overrides: list[Override]) -> tuple[dict[str, str], list[_Setting]]:
        """Return the chosen options of groups, and the settings of single keys."""
        groups: dict[str, str] = {}
        settings: list[_Setting] = []
        formatter = ErrorFormatter(self.schema, self.options, {})
        for override in overrides:
            key, value = override.key_or_group, override.value()
            typed = value if isinstance(value, str) else (override.input_line or "").partition("=")[2].strip()
            if override.is_delete():
                self._wrong(f"~{key}: no key can be taken away; give it another value: {key}=…")
            elif override.package is not None or key.startswith("hydra.") or key == "hydra":
                full = f"{key}@{override.package}" if override.package else key
                self.mistakes.append(formatter.unknown_key(full, value))
            elif key not in self.options or isinstance(value, dict):
                settings.append(_Setting(key, value, typed))
            elif typed in self.options[key]:
                groups[key] = typed
            elif value is None and self.defaults[key] is None:
                groups.pop(key, None)
            else:
                self.mistakes.append(formatter.unknown_option(key, typed))
                if near := nearest(typed, self.options[key]):
                    groups[key] = near
        return groups, settings

    def _apply(self, config: DictConfig, settings: list[_Setting]) -> dict[str, Any]:
        """Return the values of ``config`` after ``settings``, with interpolations resolved."""
        result = config.copy()
        used: list[_Setting] = []
        for setting in settings:
            value = setting.value
            # The run named 2024, the language `nan` (Min Nan): where only a text fits, the letters count.
            if isinstance(value, bool | int | float) and setting.key in text_keys(self.schema):
                value = setting.typed
            try:
                OmegaConf.update(result, setting.key, value, merge=True)
                used.append(setting)
            except OmegaConfBaseException as error:
                self._wrong(f"{setting.key}={brief(setting.typed)}: {first_line(error)}")
        try:
            return self._resolved(result)
        except OmegaConfBaseException as error:
            key = str(error.full_key)
            typed = next((f"={setting.typed}" for setting in reversed(used) if setting.key == key), "")
            self._wrong(f"{key}{brief(typed)}: {first_line(error)}")
            kept = [setting for setting in used if not _overlap(setting.key, key)]
            if len(kept) == len(used):
                raise InputError(self.mistakes[-1].line) from error
            return self._apply(config, kept)

    def _resolved(self, config: DictConfig) -> dict[str, Any]:
        """Return plain values. An interpolation may also name a key that stands nowhere and has its default."""
        complete = OmegaConf.merge(defaults(self.schema, config), config)
        assert isinstance(complete, DictConfig)
        for key in text_keys(self.schema):  # name=${seed}: the digits of the number
            section, _, name = key.rpartition(".")
            node = OmegaConf.select(complete, section) if section else complete
            if OmegaConf.is_dict(node) and OmegaConf.is_interpolation(node, name):
                value = node[name]
                if isinstance(value, bool | int | float):
                    node[name] = format_value(value)
        resolved = {
            key: OmegaConf.to_container(part, resolve=True) if OmegaConf.is_config(part := complete[key]) else part
            for key in complete
        }
        return select_like(OmegaConf.to_container(config), resolved)

    def _examples(self, chosen: dict[str, str | None]) -> dict[str, str]:
        files = {group: self.files.options(group).get(chosen[group] or "") for group in self.options}
        files |= {name: CONF / f"{self.files.command}.yaml" for name in self.schema.model_fields if name not in files}
        return {name: line for name, file in files.items() if file and (line := example(file))}

    def _wrong(self, line: str) -> None:
        self.mistakes.append(Mistake("", line))


def _default_name(name: str | float | None, chosen: Mapping[str, str | None], swept: Sequence[str]) -> str:
    """Return the default name of a run: that of a config file, of the experiment, or of data and model; in a sweep,
    followed by the settings of this job."""
    groups = ["experiment"] if chosen["experiment"] else ["data", "model"]
    if name is not None:
        groups, parts = [], [format_value(name)]
    else:
        parts = [str(chosen[group]) for group in groups]
    return "-".join([*parts, *(word for word in swept if word.partition("=")[0] not in groups)]).replace("/", "_")


def _overlap(key: str, other: str) -> bool:
    """Return whether one key is the other or lies within it."""
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")
