"""From the words of a command line to checked configs: Hydra composes ``conf/``, ``mt.config`` judges.

Hydra alone stops at the first mistake. Here only the choice of files is left to it; single keys are set
afterwards, so that unknown keys, impossible values and contradictions all reach the schema at once.
"""

import contextlib
import itertools
import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, RangeSweep, ValueType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from mt.config import Section
from mt.errors import InputError
from mt.installation import CONF
from mt.mistakes import (
    Mistake,
    Words,
    brief,
    find_mistakes,
    nearest,
    nearest_key,
    schema_keys,
    shown,
    takes_list,
    text_keys,
    unknown_key,
    unknown_option,
)

MOST_JOBS = 1000
"""Of one command line. Composing so many takes minutes; a range with more is a slip, and would fill the memory."""
CANNOT_BE_READ = (HydraException, ValueError, TypeError, ArithmeticError, RecursionError)
"""What Hydra's parser raises. Not all of it is its own: int() refuses 5,000 digits, its functions compute with what
they are given, and deep nesting ends in a RecursionError."""

Config = TypeVar("Config", bound=Section)


@dataclass(frozen=True)
class Job(Generic[Config]):
    """One config of a command line, and what sets it apart in a sweep (``seed=2``)."""

    config: Config
    swept: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """``key=value``: the value as Hydra understands it, and the letters as typed."""

    key: str
    value: Any
    typed: str


def group_defaults(config_name: str) -> dict[str, str | None]:
    """The groups of a command, each with the option it takes unless told otherwise."""
    defaults = OmegaConf.to_container(OmegaConf.load(CONF / f"{config_name}.yaml").defaults)
    assert isinstance(defaults, list)
    return {group: option for entry in defaults if isinstance(entry, dict) for group, option in entry.items()}


def group_options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def example(file: Path) -> str | None:
    """The command line in a config file's head comment in which everything needed stands."""
    found = re.search(r"^# Example: (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else None


def compose_jobs(config_name: str, schema: type[Config], words: Sequence[str], multirun: bool) -> list[Job[Config]]:
    """Composes and checks every job of a command line.

    Args:
        words: overrides in Hydra's syntax.
        multirun: whether a setting may hold several values, each for a job of its own.

    Raises:
        InputError: with every mistake in every job.
    """
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        composer = _Composer(config_name, schema)
        overrides = [composer.parse(word) for word in words]
        jobs: list[Job[Config]] = []
        for job_words, swept in composer.expand([found for found in overrides if found], multirun):
            config = composer.compose(job_words, swept)
            if config is not None:
                jobs.append(Job(config, swept))
    lines = list(dict.fromkeys(mistake.line for mistake in composer.mistakes))
    if lines:
        count = "one mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
        raise InputError("\n  ".join([f"{count}, nothing was started:", *lines]))
    return jobs


class _Composer(Generic[Config]):
    """Composes the jobs of one command line and gathers the mistakes of all of them."""

    def __init__(self, config_name: str, schema: type[Config]) -> None:
        self.config_name = config_name
        self.schema = schema
        self.defaults = group_defaults(config_name)
        self.options = {group: group_options(group) for group in self.defaults}
        self.parser = OverridesParser.create(GlobalHydra.instance().config_loader())
        self.mistakes: list[Mistake] = []
        self.unread: set[str] = set()
        """Keys that were given, though in a way that cannot be used: they are not to be called missing."""

    def parse(self, word: str) -> Override | None:
        """One word of the command line; a mistake gives None."""
        if word.startswith("--"):
            hint = " (settings are written key=value, without dashes)" if "=" in word else ""
            self._wrong(f"{brief(word)}: there is no such flag; there are --help, --cfg and --multirun{hint}")
            return None
        if not re.match(r"[+~]{0,2}[^=]+=", word) and not word.startswith("~"):
            key = "run" if os.path.isdir(word) else "input" if os.path.isfile(word) else None
            hint = f", such as {key}={shlex.quote(word)}" if key in self.schema.model_fields else ""
            self._wrong(f"{brief(word)}: is not a setting; write key=value{hint}")
            return None
        try:
            return self.parser.parse_override(word)
        except CANNOT_BE_READ as error:
            key, _, value = word.partition("=")
            # Hydra's grammar leaves out letters that file names have (é, #, =).
            plain = r"[^,\[\]{}\n]*"
            is_key = re.fullmatch(r"\+{0,2}[A-Za-z_][A-Za-z0-9_.]*", key)
            if not is_key and (near := nearest_key(key.lstrip("+~"), [full for full, _ in schema_keys(self.schema)])):
                self._wrong(f"{brief(word)}: there is no such key; nearest: {near}")
                return None
            if is_key and re.fullmatch(plain, value):
                with contextlib.suppress(*CANNOT_BE_READ):
                    return self.parser.parse_override(f"{key}={_quoted(value)}")
            if is_key and re.fullmatch(r"\[[^{}\"'\n]*\]", value):
                quoted = re.sub(r"[^\[\],]+", lambda item: _quoted(item.group().strip()), value)
                with contextlib.suppress(*CANNOT_BE_READ):
                    return self.parser.parse_override(f"{key}={quoted}")
            reason = _first_line(error)
            self.unread.add(key)
            self._wrong(
                f"{brief(word)}: cannot be read ({reason}); names with special characters need quotes of their own, "
                f"""such as '{key}=["a é.txt",b]'"""
            )
            return None

    def expand(self, overrides: list[Override], multirun: bool) -> Iterator[tuple[list[Override], tuple[str, ...]]]:
        """Each combination of swept values, with the settings that set it apart."""
        choices: list[list[Override]] = []
        swept: list[bool] = []
        for override in overrides:
            several = override.is_sweep_override()
            word = override.input_line or ""
            if several and not multirun:
                key, _, value = word.partition("=")
                self.unread.add(key)
                a_list = f", or for a list '{key}=[{value}]'" if takes_list(self.schema, key) else ""
                self._wrong(f"{brief(word)}: several values are several runs, which need --multirun{a_list}")
            elif several and (not override.is_discrete_sweep() or override.value_type is ValueType.GLOB_CHOICE_SWEEP):
                self._wrong(f"{brief(word)}: cannot be listed; write a,b,c or range(start,stop,step)")
            elif several:
                key = override.get_key_element()
                choices.append(self._swept_values(override))
                swept.append(True)
            else:
                choices.append([override])
                swept.append(False)
        jobs = math.prod(map(len, choices))
        if jobs > MOST_JOBS:
            self._wrong(f"--multirun would start {jobs:,} jobs: one command line may start {MOST_JOBS:,}")
            return
        for combination in itertools.product(*choices):
            yield (
                list(combination),
                tuple(
                    f"{override.key_or_group}={override.get_value_element_as_str()}"
                    for override, is_swept in zip(combination, swept, strict=True)
                    if is_swept
                ),
            )

    def _swept_values(self, override: Override) -> list[Override]:
        """A setting for each value of a sweep; none, after telling the mistake, if they cannot be listed."""
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

    def compose(self, overrides: list[Override], swept: tuple[str, ...]) -> Config | None:
        """The checked config, or None after telling every mistake."""
        groups, settings = self._sort(overrides)
        try:
            config = hydra.compose(
                self.config_name,
                [f"{group}={option}" for group, option in groups.items()],
                return_hydra_config=True,
            )
        except HydraException as error:
            raise InputError(f"conf/{self.config_name}.yaml: {error}") from error
        chosen = {**self.defaults, **config.hydra.runtime.choices}
        words = Words(self.schema, self.options, self._examples(chosen))
        values, used = self._apply(config, settings)
        if swept and "name" in values and not any(setting.key == "name" for setting in used):
            apart = [word for word in swept if not word.startswith(("data=", "model="))]
            values["name"] = "-".join([str(values["name"]), *apart]).replace("/", "_")
        try:
            result = self.schema.model_validate(values)
        except ValidationError as error:
            found = find_mistakes(error, values, words)
        else:
            return None if self.mistakes else result
        # A kind that was only guessed at cannot judge the other keys of its section.
        guessed = {mistake.key for mistake in self.mistakes if mistake.key in self.options}
        judged = [mistake for mistake in found if mistake.key.partition(".")[0] not in guessed]
        self.mistakes += [mistake for mistake in judged if mistake.kind != "missing" or mistake.key not in self.unread]
        self._find_hidden(config, used, judged, words)
        return None

    def _find_hidden(self, config: DictConfig, settings: list[Setting], found: list[Mistake], words: Words) -> None:
        """Hidden contradictions: the schema weighs keys together only once each is right by itself."""
        wrong = [setting for setting in settings if any(_is_blamed(setting.key, mistake) for mistake in found)]
        kept = [setting for setting in settings if setting not in wrong]
        for section in {mistake.key.partition(".")[0] for mistake in found if mistake.kind == "missing"}:
            example_words = shlex.split(words.examples.get(section, ""))
            _, filled = self._sort([self.parser.parse_override(word) for word in example_words])
            given = {setting.key for setting in kept}
            kept += [setting for setting in filled if setting.key not in given]
        values, _ = self._apply(config, kept)
        try:
            self.schema.model_validate(values)
        except ValidationError as error:
            # What speaks of a value that was left out may not be true of what the user meant.
            left_out = {setting.key.rpartition(".")[2] for setting in wrong}
            left_out |= {mistake.key.rpartition(".")[2] for mistake in found if mistake.kind != "contradiction"}
            hidden = [
                mistake
                for mistake in find_mistakes(error, values, words)
                if mistake.kind == "contradiction"
                and mistake not in found
                and left_out.isdisjoint(re.findall(r"\w+", mistake.line))
            ]
            self.mistakes += hidden
            if hidden:  # a section's contradictions hide those between sections
                self._find_hidden(config, settings, found + hidden, words)

    def _sort(self, overrides: list[Override]) -> tuple[dict[str, str], list[Setting]]:
        """Choices of files, and settings of single keys."""
        groups: dict[str, str] = {}
        settings: list[Setting] = []
        words = Words(self.schema, self.options, {})
        for override in overrides:
            key, value = override.key_or_group, override.value()
            typed = value if isinstance(value, str) else (override.input_line or "").partition("=")[2].strip()
            if override.is_delete():
                self._wrong(f"~{key}: no key can be taken away; give it another value: {key}=…")
            elif override.package is not None or key.startswith("hydra.") or key == "hydra":
                self.mistakes.append(
                    unknown_key(f"{key}@{override.package}" if override.package else key, value, words)
                )
            elif key not in self.options or isinstance(value, dict):
                settings.append(Setting(key, value, typed))
            elif typed in self.options[key]:
                groups[key] = typed
            elif value is None and self.defaults[key] is None:
                groups.pop(key, None)
            else:
                self.mistakes.append(unknown_option(key, typed, words))
                if near := nearest(typed, self.options[key]):
                    groups[key] = near
        return groups, settings

    def _apply(self, config: DictConfig, settings: list[Setting]) -> tuple[dict[str, Any], list[Setting]]:
        """The resolved values after ``settings``, without what is still missing; and the usable settings."""
        result = config.copy()
        OmegaConf.set_struct(result, False)
        used: list[Setting] = []
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
            self._write_out_numbers(result)
            return {
                str(key): _resolve(result, str(key))
                for key in result
                if key != "hydra" and not OmegaConf.is_missing(result, key)
            }, used
        except OmegaConfBaseException as error:
            key = str(error.full_key)
            typed = next((f"={setting.typed}" for setting in reversed(used) if setting.key == key), "")
            self._wrong(f"{key}{brief(typed)}: {_first_line(error)}")
            kept = [setting for setting in used if not _overlap(setting.key, key)]
            if len(kept) == len(used):
                raise InputError(self.mistakes[-1].line) from error
            return self._apply(config, kept)

    def _write_out_numbers(self, config: DictConfig) -> None:
        """Replaces an interpolation that gives a number by its digits where only a text fits: ``name=${seed}``."""
        for key in text_keys(self.schema):
            section, _, name = key.rpartition(".")
            node = OmegaConf.select(config, section) if section else config
            if OmegaConf.is_dict(node) and OmegaConf.is_interpolation(node, name):
                value = node[name]
                if isinstance(value, bool | int | float):
                    node[name] = shown(value)

    def _examples(self, chosen: dict[str, str | None]) -> dict[str, str]:
        files = {group: CONF / group / f"{option}.yaml" for group, option in chosen.items() if group in self.options}
        files |= {name: CONF / f"{self.config_name}.yaml" for name in self.schema.model_fields if name not in files}
        return {name: line for name, file in files.items() if file.exists() and (line := example(file))}

    def _wrong(self, line: str) -> None:
        self.mistakes.append(Mistake("", line))


def _has_more_than(limit: int, override: Override) -> bool:
    """Whether a sweep has more values than that; a range may have billions, so they are not all listed."""
    sweep = override.value()
    if isinstance(sweep, RangeSweep):
        return next(itertools.islice(sweep.range(), limit, None), None) is not None
    return sum(1 for _ in override.sweep_iterator()) > limit


def _first_line(error: BaseException) -> str:
    return brief(str(error).partition("\n")[0])


def _quoted(text: str) -> str:
    """So that Hydra's grammar takes every letter for itself: there, backslashes count before quotes alone."""
    return '"' + re.sub(r'(\\*)("|$)', lambda found: 2 * found[1] + found[2].replace('"', '\\"'), text) + '"'


def _overlap(one: str, other: str) -> bool:
    """Whether one key is the other or lies within it."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _is_blamed(key: str, mistake: Mistake) -> bool:
    if mistake.kind == "contradiction":
        return key.startswith(mistake.key) and key.rpartition(".")[2] in re.findall(r"\w+", mistake.line)
    return mistake.kind == "wrong" and _overlap(key, mistake.key.partition("[")[0])


def _resolve(config: DictConfig, key: str) -> Any:
    value = config[key]
    return _without_missing(OmegaConf.to_container(value, resolve=True)) if OmegaConf.is_config(value) else value


def _without_missing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_missing(part) for key, part in value.items() if part != "???"}
    return value
