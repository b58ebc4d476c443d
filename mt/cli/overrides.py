"""The words of a command line as Hydra's overrides, and the jobs of a sweep."""

import contextlib
import itertools
import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, RangeSweep, ValueType

from mt.cli.config_files import HYDRA_ERRORS, quote
from mt.cli.keys import nearest_key, schema_keys
from mt.cli.mistakes import Mistake
from mt.config.fields import Section
from mt.core.wording import brief

MAX_JOBS = 1000
"""Of one command line. Composing so many takes minutes. A range with more is a slip, and would fill the memory."""


class OverrideReader:
    """Reads the words of one command line and records the mistakes in them."""

    def __init__(self, schema: type[Section]) -> None:
        self.schema = schema
        self.parser = OverridesParser.create(GlobalHydra.instance().config_loader())
        self.mistakes: list[Mistake] = []
        self.unread: set[str] = set()
        """Keys whose values cannot be read. They are not to be called missing."""

    def parse(self, words: Sequence[str]) -> list[Override]:
        """Return the words that can be read."""
        return [override for word in words if (override := self._parse(word))]

    def _parse(self, word: str) -> Override | None:
        if word.startswith("--"):
            self.refuse(
                f"{brief(word)}: there is no such flag; there are --help, --cfg, --explain, --multirun, "
                "--config-dir and --shell-completion"
                + (" (settings are written key=value, without dashes)" if "=" in word else "")
            )
        elif not re.match(r"[+~]{0,2}[^=]+=|~", word):
            key = "run" if os.path.isdir(word) else "input" if os.path.isfile(word) else None
            hint = f", such as {key}={shlex.quote(word)}" if key in self.schema.model_fields else ""
            self.refuse(f"{brief(word)}: is not a setting; write key=value{hint}")
        else:
            try:
                return self.parser.parse_override(word)
            except HYDRA_ERRORS as error:
                return self._parse_quoted(word, error)
        return None

    def _parse_quoted(self, word: str, error: Exception) -> Override | None:
        """Read a word with quotes around texts. Hydra's grammar leaves out letters that file names have (é, #, =)."""
        key, _, value = word.partition("=")
        is_key = re.fullmatch(r"\+{0,2}[A-Za-z_][A-Za-z0-9_.]*", key)
        if not is_key and (near := nearest_key(key.lstrip("+~"), [full for full, _ in schema_keys(self.schema)])):
            self.refuse(f"{brief(word)}: there is no such key; nearest: {near}")
            return None
        quoted = value
        if re.fullmatch(r"[^,\[\]{}\n]*", value):
            quoted = quote(value)
        elif re.fullmatch(r"\[[^{}\"'\n]*\]", value):
            quoted = re.sub(r"[^\[\],]+", lambda item: quote(item.group().strip()), value)
        if is_key:
            with contextlib.suppress(*HYDRA_ERRORS):
                return self.parser.parse_override(f"{key}={quoted}")
        hint = f"""names with special characters need quotes of their own, such as '{key}=["a é.txt",b]'"""
        self.refuse(f"{brief(word)}: cannot be read ({first_line(error)}); {hint}", key)
        return None

    def expand(self, overrides: Sequence[Override], multirun: bool) -> Iterator[tuple[list[Override], tuple[str, ...]]]:
        """Yield each combination of swept values, with the settings that set it apart."""
        swept = {override.key_or_group for override in overrides if override.is_sweep_override()}
        choices = [
            self._swept_values(override, multirun) if override.is_sweep_override() else [override]
            for override in overrides
        ]
        choices = [values for values in choices if values]
        jobs = math.prod(map(len, choices))
        if jobs > MAX_JOBS:
            self.refuse(f"--multirun would start {jobs:,} jobs: one command line may start {MAX_JOBS:,}")
            return
        for job in itertools.product(*choices):
            varied = [override for override in job if override.key_or_group in swept]
            yield list(job), tuple(f"{each.key_or_group}={each.get_value_element_as_str()}" for each in varied)

    def _swept_values(self, override: Override, multirun: bool) -> list[Override]:
        """Return a setting for each value of a sweep; none after recording a mistake."""
        key, sweep = override.get_key_element(), override.value()
        is_listable = override.is_discrete_sweep() and override.value_type is not ValueType.GLOB_CHOICE_SWEEP
        cannot_be_listed = "cannot be listed{}; write a,b,c or range(start,stop,step)"
        try:
            if not multirun:
                values = (override.input_line or "").partition("=")[2]
                reason = f"several values are several runs, which need --multirun; a list is written '{key}=[{values}]'"
            elif not is_listable:
                reason = cannot_be_listed.format("")
            elif (
                isinstance(sweep, RangeSweep)
                and next(itertools.islice(sweep.range(), MAX_JOBS, None), None) is not None
            ):
                reason = f"more than {MAX_JOBS:,} values, each a job of its own; write a shorter range"
            elif strings := [f"{key}={value}" for value in override.sweep_string_iterator()]:
                return self.parser.parse_overrides(strings)
            else:
                reason = "this range is empty; write range(start,stop,step), which ends before stop"
        except HYDRA_ERRORS as error:
            reason = cannot_be_listed.format(f" ({first_line(error)})")
        self.refuse(f"{brief(override.input_line or '')}: {reason}", key)
        return []

    def refuse(self, line: str, key: str | None = None) -> None:
        """Record a mistake, and the key whose value cannot be read because of it."""
        self.mistakes.append(Mistake("", line))
        self.unread |= {key} if key else set()


def first_line(error: BaseException) -> str:
    return brief(str(error).partition("\n")[0])
