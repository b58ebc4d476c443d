"""Reads the config files of a command and the settings of a command line with Hydra's parser."""

import contextlib
import functools
import logging
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Generic, NamedTuple

import hydra
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mt.cli.mistakes import ErrorFormatter, Mistake
from mt.config import REMOVED, Config
from mt.core.errors import InputError, brief, nearest
from mt.core.installation import CONF

logger = logging.getLogger(__name__)

HYDRA_ERRORS = (HydraException, ValueError, TypeError, ArithmeticError, RecursionError)
"""Exceptions of Hydra's parser. Not all are its own: int() refuses 5,000 digits, a function such as range() may fail,
and deep nesting ends in a RecursionError."""
FLAGS = "--help, --cfg and --config-dir"
LOOP = "for several runs, write a loop: for seed in 1 2 3; do python train.py seed=$seed name=demo-$seed; done"


@dataclass(frozen=True)
class Files:
    """The config files of one command, in ``conf/`` and in the user's own folder."""

    command: str
    """The name of the command."""
    own: Path | None = None
    """The user's own folder of config files, laid out like ``conf/``."""

    def group_defaults(self) -> dict[str, str | None]:
        """Return the command's config groups in order, each with its default option. None: no option by default."""
        defaults = OmegaConf.to_container(OmegaConf.load(CONF / f"{self.command}.yaml").defaults)
        assert isinstance(defaults, list)
        return {group: option for entry in defaults if isinstance(entry, dict) for group, option in entry.items()}

    def options(self, group: str) -> dict[str, Path]:
        """Return the options of a config group, each with its file. The user's own come last.

        Raises:
            InputError: One of the user's own files has the name of a file in ``conf/``, so that Hydra would ignore it.
        """
        options = _yaml_files(CONF / group)
        own = _yaml_files(self.own / group) if self.own else {}
        for name in sorted(options.keys() & own.keys()):
            raise InputError(f"{own[name]}: there already is a {group}={name}; give this file another name")
        return options | own

    def warn_of_unread(self) -> None:
        """Log a warning for each config file in the user's own folder that no option reads."""
        groups = self.group_defaults()
        for file in chain(self.own.glob("*.y*ml"), self.own.glob("*/*.y*ml")) if self.own else ():
            if file.suffix != ".yaml" or file.parent.name not in groups:
                logger.warning("%s: not read; name it GROUP/NAME.yaml, with GROUP in %s", file, ", ".join(groups))

    def merged(self, groups: Mapping[str, str]) -> tuple[DictConfig, dict[str, str | None]]:
        """Merge the command's config file with the files of the chosen options.

        Args:
            groups: The chosen options of config groups. Other groups have their defaults, or the option that is named
                as the kind of data or model that the files set.

        Returns:
            The merged config, and the option of each group. An experiment may have chosen options of other groups.

        Raises:
            InputError: A file cannot be read or merged.
        """
        words = [f"{group}={option}" for group, option in groups.items()]
        if self.own:
            words.append(f"hydra.searchpath=[{quote(f'file://{self.own.absolute()}')}]")
        compose = _compose if self.own else _compose_once
        try:
            config = compose(self.command, tuple(words)).copy()
        except (yaml.YAMLError, OmegaConfBaseException, *HYDRA_ERRORS) as error:
            reason = str(error).partition("\nConfig search path")[0].strip()
            if match := re.search(r"Could not (?:find|override) 'experiment/(\w+)[/@]", reason):
                reason += f"; under defaults, write - override /{match[1]}: …"
            raise InputError(f"{' '.join(words[: len(groups)])}: {reason}") from error
        OmegaConf.set_struct(config, False)
        defaults = self.group_defaults()
        chosen = {**defaults, **config.pop("hydra").runtime.choices}
        for group, key in (("data", "data.kind"), ("model", "model.architecture")):
            kind = OmegaConf.select(config, key)
            if group not in groups and defaults.get(group) == chosen.get(group) and kind in self.options(group):
                return self.merged({**groups, group: kind})
        return config, chosen


def _compose(command: str, words: tuple[str, ...]) -> DictConfig:
    return hydra.compose(command, list(words), return_hydra_config=True)


_compose_once = functools.cache(_compose)
"""``_compose`` with a cache, for the files in ``conf/``, which do not change. Composing takes a tenth of a second."""


def _yaml_files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml")) if path.is_file()}


def example(file: Path) -> str | None:
    """Return the settings after "# Example: " in a config file, as words of a command line: all settings that must be
    given with this file. None if it has no example."""
    match = re.search(r"^# Example: (.*)$", file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return match.group(1) if match else None


def quote(text: str) -> str:
    """Put quotes around a text so that Hydra's grammar reads every character literally. The grammar treats backslashes
    as escapes only before a quote."""
    return '"' + re.sub(r'(\\*)("|$)', lambda match: 2 * match[1] + match[2].replace('"', '\\"'), text) + '"'


class Setting(NamedTuple):
    """An override ``key=value`` that sets a single key, not a config group such as ``model=…``."""

    key: str
    value: Any
    """The value as Hydra's grammar reads it: ``1000.0``."""
    typed: str
    """The text of the value as the user typed it: ``1e3``."""


class OverrideReader(Generic[Config]):
    """Reads the words of one command line and records all mistakes in them, instead of raising at the first."""

    def __init__(self, schema: type[Config], files: Files) -> None:
        self.schema = schema
        self.files = files
        self.defaults = files.group_defaults()
        self.options = {group: list(files.options(group)) for group in self.defaults}
        files.warn_of_unread()
        self.formatter = ErrorFormatter(schema, self.options)
        self.mistakes: list[Mistake] = []
        self.unread: set[str] = set()
        """Keys whose values cannot be read. They are given, so they must not be reported as missing."""
        self._parser = OverridesParser.create(GlobalHydra.instance().config_loader())

    def refuse(self, line: str, key: str | None = None) -> None:
        """Record a mistake.

        Args:
            line: The message.
            key: The key whose value cannot be read because of the mistake.
        """
        self.mistakes.append(Mistake("", line))
        self.unread |= {key} if key else set()

    def parse(self, words: Sequence[str]) -> list[Override]:
        """Parse words as Hydra's overrides. A word that is not one is recorded as a mistake and left out.

        Raises:
            InputError: A word is a removed flag.
        """
        for flag in {"--multirun", "-m"}.intersection(words):
            raise InputError(f"{flag}: this flag was removed; {LOOP}")
        return [override for word in words if (override := self._parse(word))]

    def _parse(self, word: str) -> Override | None:
        if word.startswith("-"):
            near = self.formatter.nearest(word.partition("=")[0])
            hint = f"settings are written key=value, without dashes; nearest: {near}" if near else f"there are {FLAGS}"
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
            self.refuse(f"{brief(word)}: there is no such key; nearest: {near}")
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

        Everything else is recorded as a mistake. An unknown option is replaced by the nearest one.
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
                self.mistakes.append(self.formatter.unknown_key(full, value))
            elif key not in self.options or isinstance(value, dict):
                settings.append(Setting(key, value, typed))
            elif typed in self.options[key]:
                groups[key] = typed
            elif value is None and self.defaults[key] is None:
                groups.pop(key, None)
            else:
                self.mistakes.append(self.formatter.unknown_option(key, typed))
                if near := nearest(typed, self.options[key]):
                    groups[key] = near
        return groups, settings


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, cut short if it is long."""
    return brief(str(error).partition("\n")[0])
