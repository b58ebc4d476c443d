"""Composition of configs: Hydra merges the files in ``conf/``, and the schema checks the result.

Hydra alone stops at the first error. Here it only chooses and merges files. Single keys are set afterwards, so that
unknown keys, wrong values and wrong combinations of values all reach the schema at once.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from mt.cli.config_files import HYDRA_ERRORS, Files, quote
from mt.cli.error_messages import ErrorFormatter, ErrorMessage, schema_defaults
from mt.config import (
    AUTO,
    IGNORE_VALIDATION_ERRORS,
    REMOVED,
    Config,
    Origin,
    Resolved,
    flat_values,
    set_value,
    split_update,
)
from mt.core.errors import InputError, brief, counted, format_value, nearest
from mt.core.installation import CONF
from mt.storage.run_folder import CONFIG, nearest_run, read_config

USUAL_MODEL = "transformer_small"
"""The model preset whose sizes are the defaults of the schema."""
FLAGS = "--help, --version, --cfg and --config-dir"
LOOP = "for several runs, write a loop: for seed in 1 2 3; do python train.py seed=$seed name=demo-$seed; done"


class Setting(NamedTuple):
    """An override ``key=value`` that sets a single key, not a config group such as ``model=…``."""

    key: str
    value: Any
    """The value as Hydra's grammar reads it: ``1000.0``."""
    typed: str
    """The text of the value as the user typed it: ``1e3``."""


class OverrideReader(Generic[Config]):
    """Reads the words of one command line and records all errors in them, instead of raising at the first."""

    def __init__(self, schema: type[Config], files: Files) -> None:
        self.schema = schema
        self.files = files
        self.defaults = files.group_defaults()
        self.options = {group: list(files.options(group)) for group in self.defaults}
        files.warn_of_unread()
        self.formatter = ErrorFormatter(schema, self.options)
        self.errors: list[ErrorMessage] = []
        self.unread: set[str] = set()
        """Keys whose values cannot be read. They are given, so they must not be reported as missing."""
        self._parser = OverridesParser.create(GlobalHydra.instance().config_loader())

    def refuse(self, line: str, key: str | None = None) -> None:
        """Record an error.

        Args:
            line: The message.
            key: The key whose value cannot be read because of the error.
        """
        self.errors.append(ErrorMessage("", line))
        self.unread |= {key} if key else set()

    def parse(self, words: Sequence[str]) -> list[Override]:
        """Parse words as Hydra's overrides. A word that is not one is recorded as an error and skipped."""
        return [override for word in words if (override := self._parse(word))]

    def _parse(self, word: str) -> Override | None:
        if word.startswith("-"):
            near = self.formatter.nearest(word.partition("=")[0])
            hint = (
                f"settings are written key=value, without dashes; did you mean {near}?"
                if near
                else f"there are {FLAGS}"
            )
            self.refuse(f"{brief(word)}: there is no such flag; {hint}")
        elif not re.match(r"[+~]{0,2}[^=]+=|~", word):
            key = "run" if os.path.isdir(word) else "input" if os.path.isfile(word) else None
            hint = f", such as {key}={shlex.quote(word)}" if key in self.schema.model_fields else ""
            self.refuse(f"{brief(word)}: is not a setting; write key=value{hint}")
        else:
            key, _, value = word.partition("=")
            try:
                # The value of a removed setting need not be readable to refuse it.
                return self._parser.parse_override(f"{key}={quote(value)}" if key in REMOVED else word)
            except HYDRA_ERRORS as error:
                return self._parse_quoted(word, error)
        return None

    def _parse_quoted(self, word: str, error: Exception) -> Override | None:
        """Parse a word after putting quotes around its texts, because Hydra's grammar excludes characters that occur in
        file names (é, #, =). If this fails, record the first error."""
        key, _, value = word.partition("=")
        is_key = re.fullmatch(r"\+{0,2}[A-Za-z_][A-Za-z0-9_.-]*", key)
        if not is_key and (near := self.formatter.nearest(key)):
            self.refuse(f"{brief(word)}: there is no such key; did you mean {near}?")
            return None
        quoted = value
        if re.fullmatch(r"[^,\[\]{}\n]*", value):
            quoted = quote(value)
        elif re.fullmatch(r"\[[^{}\"'\n]*\]", value):
            quoted = re.sub(r"[^\[\],]+", lambda item: quote(item.group().strip()), value)
        if is_key:
            with contextlib.suppress(*HYDRA_ERRORS):
                return self._parser.parse_override(f"{key}={quoted}")
        hint = f"""names with special characters need quotes of their own, such as '{key}=["a é.txt",b]'"""
        self.refuse(f"{brief(word)}: cannot be read ({first_line(error)}); {hint}", key)
        return None

    def sort(self, overrides: Sequence[Override]) -> tuple[dict[str, str], list[Setting]]:
        """Sort overrides into the chosen option of each config group (``model=…``), and the settings of single keys.

        Everything else is recorded as an error. An unknown option is replaced by the nearest one.
        """
        groups: dict[str, str] = {}
        settings: list[Setting] = []
        for override in overrides:
            key, value = override.key_or_group, override.value()
            typed = value if isinstance(value, str) else (override.input_line or "").partition("=")[2].strip()
            if override.is_sweep_override():
                word = override.input_line or ""
                listed = word.replace("=", "=[", 1) + "]"
                self.refuse(f"{brief(word)}: a setting takes one value; a list is written '{listed}'; {LOOP}", key)
            elif override.is_delete():
                self.refuse(f"~{key}: no key can be taken away; give it another value: {key}=…")
            elif override.package is not None or key.partition(".")[0] == "hydra":
                full = f"{key}@{override.package}" if override.package else key
                self.errors.append(self.formatter.unknown_key(full, value))
            elif key not in self.options or isinstance(value, dict):
                settings.append(Setting(key, value, typed))
            elif typed in self.options[key]:
                groups[key] = typed
            elif value is None and self.defaults[key] is None:
                groups.pop(key, None)
            else:
                self.errors.append(self.formatter.unknown_option(key, typed))
                if near := nearest(typed, self.options[key]):
                    groups[key] = near
        return groups, settings


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, cut short if it is long."""
    return brief(str(error).partition("\n")[0])


def compose_job(
    command: str, schema: type[Config], words: Sequence[str], config_dir: Path | None = None
) -> Resolved[Config]:
    """Compose and check the config of a command line.

    Args:
        command: The name of the command, and of its config file in ``conf/``.
        schema: The schema of the command's config.
        words: Overrides in Hydra's syntax.
        config_dir: A folder with the user's own config files, laid out like ``conf/``.

    Raises:
        InputError: The message lists every error.
    """
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        reader = OverrideReader(schema, Files(command, config_dir))
        job = _compose(reader, reader.parse(words))
    if job is None:
        lines = list(dict.fromkeys(error.line for error in reader.errors))
        raise InputError("\n  ".join([f"{counted(len(lines), 'error')}, nothing was started:", *lines]))
    return job


def _compose(reader: OverrideReader[Config], overrides: list[Override]) -> Resolved[Config] | None:
    """Return the checked config. Return None if the reader has recorded an error."""
    groups, settings = reader.sort(overrides)
    config, chosen = reader.files.merged(groups)
    for group in reader.options.keys() - reader.schema.model_fields.keys() & config.keys():
        reader.refuse(
            f"{group}={chosen[group]}: the file's first line must be: # @package _global_ (without a byte order mark)"
        )
        del config[group]
    typed = {setting.key: setting.value for setting in settings}
    if base := typed.get("training.continue_from"):
        config = _inherited(str(base), typed, groups)
    for setting in settings:
        try:
            OmegaConf.update(config, setting.key, setting.value, merge=setting.key != "data.valid")
        except OmegaConfBaseException as error:
            reader.refuse(f"{setting.key}={brief(setting.typed)}: {first_line(error)}")
    lengths = {"training.max_updates", "training.epochs"}
    if OmegaConf.select(config, "training.epochs") is not None:
        if lengths <= typed.keys():
            reader.refuse("training.max_updates and training.epochs both set the length of the run: set one of them")
        # The length that is typed replaces that of a config file.
        config.training.pop("epochs" if "training.max_updates" in typed else "max_updates", None)
    plain = dict(flat_values(_plain(config)))
    for key in REMOVED.keys() & plain.keys():
        if not plain[key]:  # a recorded config.yaml of an earlier version has them, turned off
            section, _, name = key.rpartition(".")
            del (OmegaConf.select(config, section) if section else config)[name]
    has_budget = any(plain.get(key) is not None for key in ("training.minutes", "choice"))
    if "name" in reader.schema.model_fields and "name" not in typed:
        # that in a config file, or the experiment's, or DATA-MODEL
        model = USUAL_MODEL if chosen["model"] == AUTO and not has_budget else chosen["model"]
        run_name = _plain(config).get("name")
        if run_name is None:
            run_name = chosen["experiment"] or f"{chosen['data']}-{model}"
        if isinstance(run_name, str | int | float):
            config["name"] = format_value(run_name).replace("/", "_")
    _numbers_to_texts(reader, config, settings)
    checked = _check(
        reader, _values(reader, config, settings), reader.files.examples(reader.schema.model_fields, chosen)
    )
    if checked is None or reader.errors:
        return None
    origins: dict[str, Origin] = {
        key: "typed" if any(overlap(other, key) for other in typed) else "inherited" if base else "preset"
        for key in Resolved.of(checked).origins
    }
    # A model's preset stands for a size. The best dropout depends on the length of the run, too, so that the time
    # budget may change the preset's, but not that of an experiment.
    if has_budget and origins.get("model.dropout") == "preset":
        without_preset, _ = reader.files.merged({**groups, "model": AUTO})
        if "dropout" not in without_preset.model:
            del origins["model.dropout"]
    return Resolved(checked, origins)


def _inherited(base: str, typed: Mapping[str, object], groups: Mapping[str, str]) -> DictConfig:
    """Return the recorded config of the run that ``training.continue_from`` names, or of the new run if it has begun.

    Args:
        base: The value of ``training.continue_from``.
        typed: The typed settings.
        groups: The typed options of config groups.

    Raises:
        InputError: There is no such run, or an option is typed.
    """
    if groups:
        raise InputError(f"training.continue_from={base} takes all settings of that run: leave {', '.join(groups)} out")
    run, (base_run, _) = Path(f"{typed.get('runs', 'runs')}/{typed.get('name')}"), split_update(base)
    if "name" not in typed or run == base_run:
        raise InputError(f"training.continue_from={base}: give the new run a name of its own (name=…)")
    if not (run / CONFIG).is_file():
        run = base_run
        if not run.is_dir():
            raise InputError(f"training.continue_from={base}: no such run{nearest_run(run)}")
    recorded = read_config(run)
    return OmegaConf.create(recorded.model_dump(mode="json", exclude={"runs": True, "training": {"epochs", "reset"}}))


def _numbers_to_texts(reader: OverrideReader, config: DictConfig, settings: Sequence[Setting]) -> None:
    """Replace typed and interpolated numbers by texts in ``config`` where the schema takes a text only: the run named
    2024, the language ``nan`` (Min Nan), ``name=${seed}``."""
    typed = {setting.key: setting.typed for setting in settings if not isinstance(setting.value, str)}
    typed |= {key: "" for key, value in flat_values(_plain(config)) if isinstance(value, str)}
    try:
        reader.schema.model_validate(_values(reader, config, settings), context=IGNORE_VALIDATION_ERRORS)
    except ValidationError as error:
        for key, errors in reader.formatter.errors_by_key(error).items():
            value, types = errors[0]["input"], {details["type"] for details in errors}
            if key in typed and types <= {"string_type", "tuple_type"} and isinstance(value, bool | int | float):
                OmegaConf.update(config, key, typed[key] or format_value(value))


def _values(reader: OverrideReader, config: DictConfig, settings: Sequence[Setting]) -> dict[str, Any]:
    """Return the values of a config, with interpolations such as ``${seed}`` resolved.

    An interpolation may also name a key that has its default. One that cannot be resolved is recorded as an error, and
    its key is deleted from ``config``.
    """
    while True:
        values = _plain(config)
        try:
            complete = OmegaConf.merge(schema_defaults(reader.schema, values), config)
            return _select_like(values, OmegaConf.to_container(complete, resolve=True))
        except OmegaConfBaseException as error:
            key = str(error.full_key).partition("[")[0]
            typed = next((f"={setting.typed}" for setting in reversed(settings) if setting.key == key), "")
            reader.refuse(f"{key}{brief(typed)}: {first_line(error)}", key)
            section, _, name = key.rpartition(".")
            part = OmegaConf.select(config, section) if section else config
            if not OmegaConf.is_dict(part) or name not in part:
                raise InputError(reader.errors[-1].line) from error
            del part[name]


def _check(reader: OverrideReader[Config], values: dict[str, Any], examples: Mapping[str, str]) -> Config | None:
    """Return the checked config. If there are errors, record all of them and return None."""
    config, errors = _validate(reader, values)
    wrong = {error.key.partition("[")[0] for error in errors}
    if wrong:
        # Combinations of the other values may be wrong, too. To find out, complete them with defaults and examples.
        completed: dict[str, Any] = {}
        for override in reader.parse([word for line in examples.values() for word in shlex.split(line)]):
            if override.key_or_group in wrong:
                set_value(completed, override.key_or_group, override.value())
        for key, value in flat_values(values):
            if not any(overlap(key, other) for other in wrong):
                set_value(completed, key, value)
        config, _ = _validate(reader, completed)
    names = {key.rpartition(".")[2] for key in wrong}
    lines = list(config.all_validation_errors()) if config else []
    combinations = [ErrorMessage("", line) for line in lines if names.isdisjoint(re.findall(r"\w+", line))]
    for section, line in examples.items():
        missing = [error for error in errors if error.is_missing and error.key.partition(".")[0] == section]
        if missing:
            missing[-1].line += f", for example: {line}"
    # Keys of a section are not judged by the kind of section that was only guessed from a misspelled option.
    guessed = {error.key for error in reader.errors if error.key in reader.options}
    reader.errors += [
        error
        for error in (*errors, *combinations)
        if error.key.partition(".")[0] not in guessed and not (error.is_missing and error.key in reader.unread)
    ]
    return None if errors or combinations else config


def _validate(reader: OverrideReader[Config], values: object) -> tuple[Config | None, list[ErrorMessage]]:
    """Return the config, with combinations of values not yet checked, or the errors in single values."""
    try:
        return reader.schema.model_validate(values, context=IGNORE_VALIDATION_ERRORS), []
    except ValidationError as error:
        return None, reader.formatter.messages(error)


def _plain(config: DictConfig) -> dict[str, Any]:
    return {str(key): value for key, value in OmegaConf.to_container(config).items()}  # type: ignore[union-attr]


def _select_like(pattern: Any, values: Any) -> Any:
    """Return those parts of ``values`` whose keys are in ``pattern``, too, and have a value there."""
    if not isinstance(pattern, dict) or not isinstance(values, dict):
        return values
    return {str(key): _select_like(part, values[key]) for key, part in pattern.items() if part != "???"}


def overlap(key: str, other: str) -> bool:
    """Return whether two dotted keys are equal or one lies within the other."""
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")
