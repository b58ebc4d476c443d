"""Reads the settings of a command line with Hydra's parser."""

import contextlib
import os
import re
import shlex
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override

from mt.cli.config_files import HYDRA_ERRORS, Files, quote
from mt.cli.mistakes import ErrorFormatter, Mistake
from mt.config import REMOVED, Config
from mt.core.errors import InputError, brief, nearest

FLAGS = "--help, --cfg and --config-dir"
LOOP = "for several runs, write a loop: for seed in 1 2 3; do python train.py seed=$seed name=demo-$seed; done"


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
