"""The config files of a command, and their composition by Hydra."""

import functools
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import hydra
import yaml
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mt.core.errors import InputError
from mt.core.installation import CONF

logger = logging.getLogger(__name__)

HYDRA_ERRORS = (HydraException, ValueError, TypeError, ArithmeticError, RecursionError)
"""Exceptions of Hydra's parser. Not all are its own: int() refuses 5,000 digits, a function such as range() may fail,
and deep nesting ends in a RecursionError."""


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

    def examples(self, keys: Iterable[str], chosen: Mapping[str, str | None]) -> dict[str, str]:
        """Return for top-level keys the settings that suffice for everything beneath them, as a command line.

        They come from the file of the chosen option, or else from the command's config file. Keys without an example
        are skipped.
        """
        default = CONF / f"{self.command}.yaml"
        paths = {key: self.options(key).get(chosen.get(key) or "", default) for key in keys}
        return {key: line for key, path in paths.items() if (line := example(path))}

    def warn_of_unread(self) -> None:
        """Log a warning for each config file in the user's own folder that no option reads."""
        groups = self.group_defaults()
        for file in self.own.rglob("*.y*ml") if self.own else ():
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
