"""The words of a command line as Hydra's overrides, and the jobs of a sweep."""

import contextlib
import itertools
import math
import os
import re
import shlex
from collections.abc import Iterator

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, RangeSweep, ValueType

from mt.cli.config_files import HYDRA_ERRORS, quote
from mt.cli.keys import nearest_key, schema_keys, takes_list
from mt.cli.mistakes import Mistake
from mt.config.fields import Section
from mt.core.wording import brief

MAX_JOBS = 1000
"""Of one command line. Composing so many takes minutes. A range with more is a slip, and would fill the memory."""


class OverrideReader:
    """Reads the words of one command line and records the mistakes in them."""

    def __init__(self, schema: type[Section], mistakes: list[Mistake]) -> None:
        self.schema = schema
        self.mistakes = mistakes
        self.parser = OverridesParser.create(GlobalHydra.instance().config_loader())
        self.unread: set[str] = set()
        """Keys whose values cannot be read. They are not to be called missing."""

    def parse(self, word: str) -> Override | None:
        """Read one word of the command line. Return None after a mistake."""
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
        except HYDRA_ERRORS as error:
            return self._parse_quoted(word, error)

    def _parse_quoted(self, word: str, error: Exception) -> Override | None:
        """Hydra's grammar leaves out letters that file names have (é, #, =). In quotes it takes them."""
        key, _, value = word.partition("=")
        is_key = re.fullmatch(r"\+{0,2}[A-Za-z_][A-Za-z0-9_.]*", key)
        if not is_key and (near := nearest_key(key.lstrip("+~"), [full for full, _ in schema_keys(self.schema)])):
            self._wrong(f"{brief(word)}: there is no such key; nearest: {near}")
            return None
        quoted = None
        if re.fullmatch(r"[^,\[\]{}\n]*", value):
            quoted = quote(value)
        elif re.fullmatch(r"\[[^{}\"'\n]*\]", value):
            quoted = re.sub(r"[^\[\],]+", lambda item: quote(item.group().strip()), value)
        if is_key and quoted is not None:
            with contextlib.suppress(*HYDRA_ERRORS):
                return self.parser.parse_override(f"{key}={quoted}")
        self.unread.add(key)
        self._wrong(
            f"{brief(word)}: cannot be read ({first_line(error)}); names with special characters need quotes of their "
            f"""own, such as '{key}=["a é.txt",b]'"""
        )
        return None

    def expand(self, overrides: list[Override], multirun: bool) -> Iterator[tuple[list[Override], tuple[str, ...]]]:
        """Yield each combination of swept values, with the settings that set it apart."""
        choices: list[list[Override]] = []
        swept: list[bool] = []
        for override in overrides:
            word, several = override.input_line or "", override.is_sweep_override()
            if several and not multirun:
                key, _, value = word.partition("=")
                self.unread.add(key)
                list_hint = f", or for a list '{key}=[{value}]'" if takes_list(self.schema, key) else ""
                self._wrong(f"{brief(word)}: several values are several runs, which need --multirun{list_hint}")
            elif several and (not override.is_discrete_sweep() or override.value_type is ValueType.GLOB_CHOICE_SWEEP):
                self._wrong(f"{brief(word)}: cannot be listed; write a,b,c or range(start,stop,step)")
            else:
                choices.append(self._swept_values(override) if several else [override])
                swept.append(several)
        jobs = math.prod(map(len, choices))
        if jobs > MAX_JOBS:
            self._wrong(f"--multirun would start {jobs:,} jobs: one command line may start {MAX_JOBS:,}")
            return
        for combination in itertools.product(*choices):
            varied = [override for override, is_swept in zip(combination, swept, strict=True) if is_swept]
            words = tuple(f"{override.key_or_group}={override.get_value_element_as_str()}" for override in varied)
            yield list(combination), words

    def _swept_values(self, override: Override) -> list[Override]:
        """Return a setting for each value of a sweep; none, after telling the mistake, if they cannot be listed."""
        key, word = override.get_key_element(), brief(override.input_line or "")
        try:
            if _has_more_than(MAX_JOBS, override):
                self._wrong(f"{word}: more than {MAX_JOBS:,} values, each a job of its own; write a shorter range")
            elif strings := [f"{key}={value}" for value in override.sweep_string_iterator()]:
                return self.parser.parse_overrides(strings)
            else:
                self._wrong(f"{word}: this range is empty; write range(start,stop,step), which ends before stop")
        except HYDRA_ERRORS as error:
            self._wrong(f"{word}: cannot be listed ({first_line(error)}); write a,b,c or range(start,stop,step)")
        self.unread.add(key)
        return []

    def _wrong(self, line: str) -> None:
        self.mistakes.append(Mistake("", line))


def _has_more_than(limit: int, override: Override) -> bool:
    """Return whether a sweep has more values than that. A range may have billions, so they are not all listed."""
    sweep = override.value()
    if isinstance(sweep, RangeSweep):
        return next(itertools.islice(sweep.range(), limit, None), None) is not None
    return sum(1 for _ in override.sweep_iterator()) > limit


def first_line(error: BaseException) -> str:
    return brief(str(error).partition("\n")[0])
