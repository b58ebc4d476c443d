"""A resolved config: its values, the origin of each that is not a default, and settings that no longer exist."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import ValidationError

from mt.config.fields import Section
from mt.core.errors import InputError

Origin = Literal["preset", "typed", "inherited", "chosen"]
"""Origins of values: preset, a config file; typed, the command line or Python; inherited, the base model or the run
folder; chosen, training.minutes."""
Config = TypeVar("Config", bound=Section)

REMOVED = {
    "robustness": "run python -m mt robustness run=FIRST second=SECOND",
    "training.replay": "mix the corpora with data=mixture, or set training.start_share, against forgetting",
    **dict.fromkeys(
        ("metric.command", "metric.name", "metric.version", "metric.minutes"),
        "write the scores to a file for each system, a number per line, and set scores.NAME=[first.txt,second.txt]",
    ),
}
"""Dotted key → the alternative, for the message that refuses it."""


@dataclass(frozen=True)
class Resolved(Generic[Config]):
    """A checked config of one command, and the origin of each value that is not a default. It is immutable."""

    config: Config
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Maps dotted keys, such as ``training.schedule.warmup``, to origins. Keys that are not in it have defaults."""

    @classmethod
    def of(cls, config: Config) -> Self:
        """Return a config built in Python as a resolved one. The origin of every value that it sets is "typed"."""
        keys = dict(flat_values(config.model_dump(exclude_unset=True)))
        return cls(config, dict.fromkeys(keys, "typed"))

    def is_given(self, key: str) -> bool:
        """Return whether a config file, the user or the base model has set a key, unlike a default or a chosen
        value."""
        return self.origins.get(key, "chosen") != "chosen"

    def with_values(self, values: Mapping[str, object], origin: Origin) -> Self:
        """Return a new config with other values.

        Args:
            values: Maps dotted keys to values. A mapping is the value of a section, and replaces all of its keys.
            origin: The origin of these values.

        Raises:
            InputError: A value is invalid, or contradicts another one.
        """
        if not values:
            return self
        sections = tuple(f"{key}." for key, value in values.items() if isinstance(value, Mapping))
        kept = {key: origin for key, origin in self.origins.items() if not key.startswith(sections)}
        plain = self.config.model_dump(exclude_unset=True)
        for key, value in values.items():
            set_value(plain, key, value)
        try:
            config = type(self.config).model_validate(plain)
        except ValidationError as error:
            messages = [str(details.get("ctx", {}).get("error", details["msg"])) for details in error.errors()]
            raise InputError("; ".join(messages)) from None
        changed = dict(flat_values(dict(values)))
        return type(self)(config, {**kept, **dict.fromkeys(changed, origin)})

    def value(self, key: str) -> object:
        """Return the value of a dotted key."""
        return functools.reduce(getattr, key.split("."), self.config)


def flat_values(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of nested mappings under its dotted key."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat_values(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def set_value(values: dict[str, Any], key: str, value: object) -> None:
    """Set the value of a dotted key in nested mappings."""
    *sections, name = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[name] = value


def without_removed(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the nested values of a recorded config without removed settings."""
    return {
        name: without_removed(value, f"{prefix}{name}.") if isinstance(value, Mapping) else value
        for name, value in values.items()
        if prefix + name not in REMOVED
    }
