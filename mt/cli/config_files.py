"""The config files of a command, and Hydra's composition of them."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import hydra
import yaml
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mt.core.errors import InputError
from mt.core.installation import CONF

HYDRA_ERRORS = (HydraException, ValueError, TypeError, ArithmeticError, RecursionError)
"""What Hydra's parser raises. Not all of it is its own: int() refuses 5,000 digits, its functions compute with what
they are given, and deep nesting ends in a RecursionError."""


@dataclass(frozen=True)
class Files:
    """The config files of one command: those in ``conf/``, and in a folder of the user's own."""

    command: str
    own: Path | None = None

    def group_defaults(self) -> dict[str, str | None]:
        """Return the command's groups, each with the option that it takes unless told otherwise."""
        defaults = OmegaConf.to_container(OmegaConf.load(CONF / f"{self.command}.yaml").defaults)
        assert isinstance(defaults, list)
        return {group: option for entry in defaults if isinstance(entry, dict) for group, option in entry.items()}

    def options(self, group: str) -> dict[str, Path]:
        """Return the options of a group, each with its file. Raise InputError if one of the user's own has the name
        of one in ``conf/``, which Hydra would take instead."""
        options = _yaml_files(CONF / group)
        own = _yaml_files(self.own / group) if self.own else {}
        if duplicates := options.keys() & own.keys():
            name = min(duplicates)
            raise InputError(f"{own[name]}: there already is a {group}={name}; give this file another name")
        return options | own

    def merged(self, groups: Mapping[str, str]) -> tuple[DictConfig, dict[str, str | None]]:
        """Merge the command's config file with the chosen options. Return the config and the option of each group; an
        experiment chooses options of other groups."""
        words = [f"{group}={option}" for group, option in groups.items()]
        if self.own:
            words.append(f"hydra.searchpath=[{quote(f'file://{self.own.absolute()}')}]")
        compose = _compose if self.own else _compose_once
        try:
            config = compose(self.command, tuple(words)).copy()
        except (yaml.YAMLError, OmegaConfBaseException, *HYDRA_ERRORS) as error:
            reason = str(error).partition("\nConfig search path")[0].strip()
            raise InputError(f"{' '.join(words[: len(groups)])}: {reason}") from error
        OmegaConf.set_struct(config, False)
        return config, {**self.group_defaults(), **config.pop("hydra").runtime.choices}


def _compose(command: str, words: tuple[str, ...]) -> DictConfig:
    return hydra.compose(command, list(words), return_hydra_config=True)


_compose_once = functools.cache(_compose)
"""The same for files in ``conf/``, which do not change. In a sweep it takes most of the time."""


def _yaml_files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml")) if path.is_file()}


def example(file: Path) -> str | None:
    """Return the example of a complete command line in a config file's head comment."""
    match = re.search(r"^# Example: (.*)$", file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return match.group(1) if match else None


def quote(text: str) -> str:
    """Quote a text so that Hydra's grammar takes every letter for itself. There, backslashes count before quotes
    alone."""
    return '"' + re.sub(r'(\\*)("|$)', lambda match: 2 * match[1] + match[2].replace('"', '\\"'), text) + '"'
