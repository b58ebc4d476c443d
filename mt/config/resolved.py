"""A resolved config: its values, and the origin of each that is not a default."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import ValidationError

from mt.config.fields import Section
from mt.core.errors import InputError

Origin = Literal["preset", "typed", "inherited", "chosen"]
"""A config file in conf/; the command line or Python; the base run or the run folder; training.minutes."""
Config = TypeVar("Config", bound=Section)


@dataclass(frozen=True)
class Resolved(Generic[Config]):
    """A config that is never changed in place: ``with_values`` derives another one."""

    config: Config
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """The origin of each dotted key, such as ``training.schedule.warmup``. Other keys have their defaults."""

    @classmethod
    def of(cls, config: Config) -> Self:
        """Resolve a config that was built in Python: everything that it sets counts as typed."""
        keys = dict(flat_values(config.model_dump(exclude_unset=True)))
        return cls(config, dict.fromkeys(keys, "typed"))

    def is_given(self, key: str) -> bool:
        """Return whether a key has neither its default nor a chosen value."""
        return self.origins.get(key, "chosen") != "chosen"

    def with_values(self, values: Mapping[str, object], origin: Origin) -> Self:
        """Derive a config with other values at dotted keys. The value of a section is a mapping that replaces it whole.

        Raises:
            InputError: The values contradict each other or those that were given.
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
            yield prefix + name, value


def set_value(values: dict[str, Any], key: str, value: object) -> None:
    """Set the value of a dotted key in nested mappings."""
    *sections, name = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[name] = value
