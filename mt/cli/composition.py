"""From the words of a command line to checked configs: Hydra composes the files in ``conf/``, the schema judges the
result.

Hydra alone stops at the first mistake. Here it only chooses and merges files. Single keys are set afterwards, so that
unknown keys, impossible values and contradictions all reach the schema at once.
"""

import contextlib
import copy
import functools
import itertools
import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import hydra
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, RangeSweep, ValueType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from mt.cli.keys import kind_key, kind_name, nearest_key, schema_keys, sections_in, takes_list, text_keys
from mt.cli.mistakes import Mistake, Vocabulary
from mt.config.commands import TrainConfig
from mt.config.fields import Section
from mt.config.presets import AUTO
from mt.config.resolved import Origin, Resolved
from mt.core.errors import InputError
from mt.core.installation import CONF
from mt.core.wording import brief, format_value, nearest

MOST_JOBS = 1000
"""Of one command line. Composing so many takes minutes. A range with more is a slip, and would fill the memory."""
USUAL_MODEL = "transformer_small"
CANNOT_BE_READ = (HydraException, ValueError, TypeError, ArithmeticError, RecursionError)
"""What Hydra's parser raises. Not all of it is its own: int() refuses 5,000 digits, its functions compute with what
they are given, and deep nesting ends in a RecursionError."""

Config = TypeVar("Config", bound=Section)


@dataclass(frozen=True)
class Job(Generic[Config]):
    """One config of a command line, and the settings that are its own in a sweep (``seed=2``)."""

    resolved: Resolved[Config]
    swept: tuple[str, ...]

    @property
    def config(self) -> Config:
        return self.resolved.config


@dataclass(frozen=True)
class Files:
    """The config files of one command: those in ``conf/``, and in a folder of the user's own."""

    command: str
    own: Path | None = None

    def group_defaults(self) -> dict[str, str | None]:
        """Returns the command's groups, each with the option that it takes unless told otherwise."""
        defaults = OmegaConf.to_container(OmegaConf.load(CONF / f"{self.command}.yaml").defaults)
        assert isinstance(defaults, list)
        return {group: option for entry in defaults if isinstance(entry, dict) for group, option in entry.items()}

    def options(self, group: str) -> dict[str, Path]:
        """Returns the options of a group, each with its file. Raises InputError if one of the user's own has the name
        of one in ``conf/``, which Hydra would take instead."""
        options = _yaml_files(CONF / group)
        own = _yaml_files(self.own / group) if self.own else {}
        if twice := options.keys() & own.keys():
            raise InputError(f"{own[min(twice)]}: there already is a {group}={min(twice)}; give this file another name")
        return options | own

    def merged(self, groups: Mapping[str, str]) -> tuple[DictConfig, dict[str, str | None]]:
        """Returns what Hydra makes of the command's config file and the chosen options, and the option of each group,
        whoever chose it: an experiment chooses options of other groups."""
        words = [f"{group}={option}" for group, option in groups.items()]
        if self.own:
            words.append(f"hydra.searchpath=[{_quoted(f'file://{self.own.absolute()}')}]")
        compose = _compose if self.own else _compose_once
        try:
            config = compose(self.command, tuple(words)).copy()
        except (yaml.YAMLError, OmegaConfBaseException, *CANNOT_BE_READ) as error:
            found = str(error).partition("\nConfig search path")[0].strip()
            raise InputError(f"{' '.join(words[: len(groups)])}: {found}") from error
        OmegaConf.set_struct(config, False)
        return config, {**self.group_defaults(), **config.pop("hydra").runtime.choices}


def _compose(command: str, words: tuple[str, ...]) -> DictConfig:
    return hydra.compose(command, list(words), return_hydra_config=True)


_compose_once = functools.cache(_compose)
"""The same for files in ``conf/``, which do not change. In a sweep it takes most of the time."""


def _yaml_files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml")) if path.is_file()}


def example(file: Path) -> str | None:
    """Returns the command line in a config file's head comment in which everything needed stands."""
    found = re.search(r"^# Example: (.*)$", file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return found.group(1) if found else None


def compose_jobs(
    command: str, schema: type[Config], words: Sequence[str], multirun: bool, config_dir: Path | None = None
) -> list[Job[Config]]:
    """Composes and checks every job of a command line.

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
        overrides = [composer.parse(word) for word in words]
        jobs: list[Job[Config]] = []
        for job_words, swept in composer.expand([found for found in overrides if found], multirun):
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
    """Composes the jobs of one command line and gathers the mistakes of all of them."""

    def __init__(self, files: Files, schema: type[Config]) -> None:
        self.files = files
        self.schema = schema
        self.defaults = files.group_defaults()
        self.options = {group: list(files.options(group)) for group in self.defaults}
        self.parser = OverridesParser.create(GlobalHydra.instance().config_loader())
        self.mistakes: list[Mistake] = []
        self.unread: set[str] = set()
        """Keys that were given in a way that cannot be used. They are not to be called missing."""

    def parse(self, word: str) -> Override | None:
        """Reads one word of the command line. Returns None after a mistake."""
        if word.startswith("--"):
            hint = " (settings are written key=value, without dashes)" if "=" in word else ""
            self._wrong(
                f"{brief(word)}: there is no such flag; there are --help, --cfg, --explain, --multirun, "
                f"--config-dir and --shell-completion{hint}"
            )
            return None
        if not re.match(r"[+~]{0,2}[^=]+=", word) and not word.startswith("~"):
            key = "run" if os.path.isdir(word) else "input" if os.path.isfile(word) else None
            hint = f", such as {key}={shlex.quote(word)}" if key in self.schema.model_fields else ""
            self._wrong(f"{brief(word)}: is not a setting; write key=value{hint}")
            return None
        try:
            return self.parser.parse_override(word)
        except CANNOT_BE_READ as error:
            return self._parse_what_hydra_cannot_read(word, error)

    def _parse_what_hydra_cannot_read(self, word: str, error: Exception) -> Override | None:
        """Hydra's grammar leaves out letters that file names have (é, #, =). In quotes it takes them."""
        key, _, value = word.partition("=")
        is_key = re.fullmatch(r"\+{0,2}[A-Za-z_][A-Za-z0-9_.]*", key)
        if not is_key and (near := nearest_key(key.lstrip("+~"), [full for full, _ in schema_keys(self.schema)])):
            self._wrong(f"{brief(word)}: there is no such key; nearest: {near}")
            return None
        quoted = None
        if re.fullmatch(r"[^,\[\]{}\n]*", value):
            quoted = _quoted(value)
        elif re.fullmatch(r"\[[^{}\"'\n]*\]", value):
            quoted = re.sub(r"[^\[\],]+", lambda item: _quoted(item.group().strip()), value)
        if is_key and quoted is not None:
            with contextlib.suppress(*CANNOT_BE_READ):
                return self.parser.parse_override(f"{key}={quoted}")
        self.unread.add(key)
        self._wrong(
            f"{brief(word)}: cannot be read ({_first_line(error)}); names with special characters need quotes of their "
            f"""own, such as '{key}=["a é.txt",b]'"""
        )
        return None

    def expand(self, overrides: list[Override], multirun: bool) -> Iterator[tuple[list[Override], tuple[str, ...]]]:
        """Yields each combination of swept values, with the settings that set it apart."""
        choices: list[list[Override]] = []
        swept: list[bool] = []
        for override in overrides:
            word, several = override.input_line or "", override.is_sweep_override()
            if several and not multirun:
                key, _, value = word.partition("=")
                self.unread.add(key)
                a_list = f", or for a list '{key}=[{value}]'" if takes_list(self.schema, key) else ""
                self._wrong(f"{brief(word)}: several values are several runs, which need --multirun{a_list}")
            elif several and (not override.is_discrete_sweep() or override.value_type is ValueType.GLOB_CHOICE_SWEEP):
                self._wrong(f"{brief(word)}: cannot be listed; write a,b,c or range(start,stop,step)")
            else:
                choices.append(self._swept_values(override) if several else [override])
                swept.append(several)
        jobs = math.prod(map(len, choices))
        if jobs > MOST_JOBS:
            self._wrong(f"--multirun would start {jobs:,} jobs: one command line may start {MOST_JOBS:,}")
            return
        for combination in itertools.product(*choices):
            apart = [override for override, is_swept in zip(combination, swept, strict=True) if is_swept]
            words = tuple(f"{one.key_or_group}={one.get_value_element_as_str()}" for one in apart)
            yield list(combination), words

    def _swept_values(self, override: Override) -> list[Override]:
        """Returns a setting for each value of a sweep; none, after telling the mistake, if they cannot be listed."""
        key, word = override.get_key_element(), brief(override.input_line or "")
        try:
            if _has_more_than(MOST_JOBS, override):
                self._wrong(f"{word}: more than {MOST_JOBS:,} values, each a job of its own; write a shorter range")
            elif strings := [f"{key}={value}" for value in override.sweep_string_iterator()]:
                return self.parser.parse_overrides(strings)
            else:
                self._wrong(f"{word}: this range is empty; write range(start,stop,step), which ends before stop")
        except CANNOT_BE_READ as error:
            self._wrong(f"{word}: cannot be listed ({_first_line(error)}); write a,b,c or range(start,stop,step)")
        self.unread.add(key)
        return []

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
        vocabulary = Vocabulary(self.schema, self.options, self._examples(chosen))
        found = self._mistakes(values, vocabulary)
        if not found:
            if self.mistakes:
                return None
            return self._resolve(self.schema.model_validate(values), groups, settings)
        # A kind that was only guessed at cannot judge the other keys of its section.
        guessed = {mistake.key for mistake in self.mistakes if mistake.key in self.options}
        judged = [mistake for mistake in found if mistake.key.partition(".")[0] not in guessed]
        self.mistakes += [mistake for mistake in judged if mistake.kind != "missing" or mistake.key not in self.unread]
        self.mistakes += self._hidden_contradictions(values, judged, vocabulary)
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

    def _mistakes(self, values: Mapping[str, Any], vocabulary: Vocabulary) -> list[Mistake]:
        try:
            self.schema.model_validate(values)
        except ValidationError as error:
            return vocabulary.mistakes(error)
        return []

    def _hidden_contradictions(
        self, values: dict[str, Any], found: list[Mistake], vocabulary: Vocabulary
    ) -> list[Mistake]:
        """Returns the contradictions that the mistakes in ``found`` hide: the schema weighs keys together only once
        each of them is right by itself, and sections only once there is no contradiction inside them.

        The values to blame are left out, or filled in from examples, and the rest is checked again.
        """
        rest, left_out = copy.deepcopy(values), set()
        for mistake in found:
            if mistake.kind == "contradiction":
                named = re.findall(r"[\w.]+", mistake.line)
                keys = [*named, *(f"{mistake.key}.{word}" for word in named)]
            else:
                keys = [mistake.key.partition("[")[0]]
                left_out.add(mistake.key.rpartition(".")[2])
            left_out |= {key.rpartition(".")[2] for key in keys if _remove(rest, key, mistake.kind != "contradiction")}
        for section in {mistake.key.partition(".")[0] for mistake in found if mistake.kind == "missing"}:
            words = shlex.split(vocabulary.examples.get(section, ""))
            for setting in self._sort([self.parser.parse_override(word) for word in words])[1]:
                _add(rest, setting.key, setting.value)
        # What speaks of a value that was left out may not be true of what the user meant.
        hidden = [
            mistake
            for mistake in self._mistakes(rest, vocabulary)
            if mistake.kind == "contradiction"
            and mistake not in found
            and left_out.isdisjoint(re.findall(r"\w+", mistake.line))
        ]
        return hidden + self._hidden_contradictions(values, found + hidden, vocabulary) if hidden else []

    def _sort(self, overrides: list[Override]) -> tuple[dict[str, str], list[_Setting]]:
        """Returns the chosen options of groups, and the settings of single keys."""
        groups: dict[str, str] = {}
        settings: list[_Setting] = []
        vocabulary = Vocabulary(self.schema, self.options, {})
        for override in overrides:
            key, value = override.key_or_group, override.value()
            typed = value if isinstance(value, str) else (override.input_line or "").partition("=")[2].strip()
            if override.is_delete():
                self._wrong(f"~{key}: no key can be taken away; give it another value: {key}=…")
            elif override.package is not None or key.startswith("hydra.") or key == "hydra":
                full = f"{key}@{override.package}" if override.package else key
                self.mistakes.append(vocabulary.unknown_key(full, value))
            elif key not in self.options or isinstance(value, dict):
                settings.append(_Setting(key, value, typed))
            elif typed in self.options[key]:
                groups[key] = typed
            elif value is None and self.defaults[key] is None:
                groups.pop(key, None)
            else:
                self.mistakes.append(vocabulary.unknown_option(key, typed))
                if near := nearest(typed, self.options[key]):
                    groups[key] = near
        return groups, settings

    def _apply(self, config: DictConfig, settings: list[_Setting]) -> dict[str, Any]:
        """Returns the values of ``config`` after ``settings``, with interpolations resolved."""
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
                self._wrong(f"{setting.key}={brief(setting.typed)}: {_first_line(error)}")
        try:
            return self._resolved(result)
        except OmegaConfBaseException as error:
            key = str(error.full_key)
            typed = next((f"={setting.typed}" for setting in reversed(used) if setting.key == key), "")
            self._wrong(f"{key}{brief(typed)}: {_first_line(error)}")
            kept = [setting for setting in used if not _overlap(setting.key, key)]
            if len(kept) == len(used):
                raise InputError(self.mistakes[-1].line) from error
            return self._apply(config, kept)

    def _resolved(self, config: DictConfig) -> dict[str, Any]:
        """Returns plain values. An interpolation may also name a key that stands nowhere and has its default."""
        complete = OmegaConf.merge(_defaults(self.schema, config), config)
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
        return _those_in(OmegaConf.to_container(config), resolved)

    def _examples(self, chosen: dict[str, str | None]) -> dict[str, str]:
        files = {group: self.files.options(group).get(chosen[group] or "") for group in self.options}
        files |= {name: CONF / f"{self.files.command}.yaml" for name in self.schema.model_fields if name not in files}
        return {name: line for name, file in files.items() if file and (line := example(file))}

    def _wrong(self, line: str) -> None:
        self.mistakes.append(Mistake("", line))


def _default_name(name: str | float | None, chosen: Mapping[str, str | None], swept: Sequence[str]) -> str:
    """Returns the name of a run that was not named on the command line: what a config file says, the experiment's name,
    or those of its data and model; then, in a sweep, the settings that set it apart and are not in the name yet."""
    groups = ["experiment"] if chosen["experiment"] else ["data", "model"]
    if name is not None:
        groups, parts = [], [format_value(name)]
    else:
        parts = [str(chosen[group]) for group in groups]
    return "-".join([*parts, *(word for word in swept if word.partition("=")[0] not in groups)]).replace("/", "_")


def _defaults(schema: type[Section], config: object) -> dict[str, Any]:
    """Returns the schema's default for every key that has one; of a section's kinds, those of the one in ``config``."""
    found: dict[str, Any] = {}
    for name, field in schema.model_fields.items():
        part = config._get_node(name) if isinstance(config, DictConfig) else None
        kinds = sections_in(field.annotation)
        chosen = [kind for kind in kinds if len(kinds) == 1 or _is_of_kind(part, kind)]
        if chosen:
            found[name] = _defaults(chosen[0], part)
        elif not kinds and not field.is_required():
            default = field.default
            found[name] = list(default) if isinstance(default, tuple) else default
    return found


def _is_of_kind(part: object, section: type[Section]) -> bool:
    return isinstance(part, DictConfig) and OmegaConf.select(part, kind_key(section) or "") == kind_name(section)


def _those_in(pattern: Any, values: Any) -> Any:
    """Returns the part of ``values`` whose keys are in ``pattern``, and are not missing there."""
    if not isinstance(pattern, dict) or not isinstance(values, dict):
        return values
    return {str(key): _those_in(part, values[key]) for key, part in pattern.items() if part != "???"}


def _remove(values: dict[str, Any], key: str, sections_too: bool) -> bool:
    """Removes a key, which may lie deep, and returns whether it was there. Whole sections only where told."""
    *sections, name = key.split(".")
    for section in sections:
        values = values.get(section, {}) if isinstance(values, dict) else {}
    if not isinstance(values, dict) or name not in values or (isinstance(values[name], dict) and not sections_too):
        return False
    del values[name]
    return True


def _add(values: dict[str, Any], key: str, value: object) -> None:
    """Adds a value at a key, which may lie deep, if there is none yet."""
    *sections, name = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values.setdefault(name, value)


def _has_more_than(limit: int, override: Override) -> bool:
    """Returns whether a sweep has more values than that. A range may have billions, so they are not all listed."""
    sweep = override.value()
    if isinstance(sweep, RangeSweep):
        return next(itertools.islice(sweep.range(), limit, None), None) is not None
    return sum(1 for _ in override.sweep_iterator()) > limit


def _first_line(error: BaseException) -> str:
    return brief(str(error).partition("\n")[0])


def _quoted(text: str) -> str:
    """Quotes a text so that Hydra's grammar takes every letter for itself. There, backslashes count before quotes
    alone."""
    return '"' + re.sub(r'(\\*)("|$)', lambda found: 2 * found[1] + found[2].replace('"', '\\"'), text) + '"'


def _overlap(one: str, other: str) -> bool:
    """Returns whether one key is the other or lies within it."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
