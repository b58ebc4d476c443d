"""Messages for mistakes in a config: the key and value, the reason, and the nearest valid key or value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mt.cli.keys import kind_of, location_key, nearest_key, schema_keys, sections_at
from mt.config.fields import Section
from mt.config.resolved import REMOVED, flat_values
from mt.core.wording import brief, format_value, nearest


@dataclass
class Mistake:
    """A mistake in a config, with its message."""

    key: str
    """The dotted key with the mistake. "" if the mistake is not that of a single key."""
    line: str
    """The message."""
    is_missing: bool = False
    """Whether the mistake is that a required key is not set."""


@dataclass(frozen=True)
class ErrorFormatter:
    """Writes messages for the mistakes in the configs of one command."""

    schema: type[Section]
    options: Mapping[str, list[str]]
    """The options of each config group, such as those of ``model=``."""

    def errors_by_key(self, error: ValidationError) -> dict[str, list[ErrorDetails]]:
        """Return pydantic's errors by dotted key. A key has one error for each type that its value may have.

        Errors of a list or section are left out if there are errors of its items.
        """
        errors: dict[str, list[ErrorDetails]] = {}
        for details in error.errors():
            key = location_key(self.schema, details["loc"])
            if discriminator := details.get("ctx", {}).get("discriminator"):
                key += "." + discriminator.strip("'")
            errors.setdefault(key, []).append(details)
        # Pydantic also reports a list with wrong items as too short.
        outer = [key for key in errors if any(other.startswith((f"{key}.", f"{key}[")) for other in errors)]
        return {key: of_key for key, of_key in errors.items() if key not in outer}

    def mistakes(self, error: ValidationError) -> list[Mistake]:
        """Return the mistakes in a ``ValidationError`` of the schema: one for each key, in pydantic's order."""
        mistakes: list[Mistake] = []
        for key, errors in self.errors_by_key(error).items():
            value = errors[0].get("ctx", {}).get("tag", errors[0]["input"])
            match errors[0]["type"]:
                case "extra_forbidden":
                    mistakes += [self.unknown_key(full, part) for full, part in flat_values({key: value})]
                case "missing":
                    mistakes.append(Mistake(key, f"{key}: is needed", is_missing=True))
                case "union_tag_not_found":
                    kinds = [kind_of(kind)[1] for kind in sections_at(self.schema, key.rpartition(".")[0])]
                    mistakes.append(Mistake(key, f"{key}: is needed, one of {', '.join(kinds)}", is_missing=True))
                case "model_type" | "model_attributes_type":
                    keys = dict.fromkeys(name for kind in sections_at(self.schema, key) for name in kind.model_fields)
                    hint = f"must be a section: {{key:value,…}} with keys of {', '.join(keys)}"
                    mistakes.append(Mistake(key, f"{key}={brief(format_value(value))}: {hint}"))
                case _:
                    reasons = dict.fromkeys(_reason(key, details) for details in errors)
                    mistakes.append(Mistake(key, f"{key}={brief(format_value(value))}: {' or '.join(reasons)}"))
        return mistakes

    def unknown_option(self, group: str, option: str) -> Mistake:
        """Return the mistake that a group does not have an option, such as ``model=transfromer_small``."""
        options = self.options[group]
        similar = nearest(option, options)
        near = [similar] if similar else [choice for choice in options if option in choice.split("_")]
        listed = ", ".join(options)
        hint = f"nearest: {group}={' or '.join(near)} (of {listed})" if near else f"there are {listed}"
        return Mistake(group, f"{group}={brief(option)}: there is no such option; {hint}")

    def unknown_key(self, key: str, value: object) -> Mistake:
        """Return the mistake that a key does not exist, or only in another kind of its section: ``training.warmup``, or
        ``data.path`` if the data are files."""
        section, _, name = key.rpartition(".")
        kinds = sections_at(self.schema, section)
        keys = [full for full, _ in schema_keys(self.schema)]
        if key in REMOVED:
            hint = f"this setting was removed; {REMOVED[key]}"
        elif key in keys:
            owners = [kind_of(kind)[1] for kind in kinds if name in kind.model_fields]
            hint = f"only {section} of kind {' or '.join(owners)} has this key"
        else:
            if "[" in section:
                keys = [f"{section}.{field}" for kind in kinds for field in kind.model_fields]
            near = nearest_key(key, keys if section else [*keys, *self.options])
            hint = "there is no such key; " + (f"nearest: {near}" if near else "--help lists all keys")
        return Mistake(key, f"{brief(key)}={brief(format_value(value))}: {hint}")


REASONS = {
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "string_unicode": "must be a text in UTF-8",
    "int_parsing_size": "has too many digits",
    "int": "must be a whole number",
    "float": "must be a number",
    "bool": "must be true or false",
    "dict": "must have a name for each value, written key.NAME=VALUE",
}
"""Reasons for messages by pydantic's error type, or by its part before the first underscore (``int_type``)."""


def _reason(key: str, details: ErrorDetails) -> str:
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "tuple_type":
        return f"must be a list, written '{key}=[a,b]'"
    if kind == "string_type" and isinstance(value, bool):
        return "must be a text (in YAML files no, yes and on need quotes)"
    if kind == "float_type" and isinstance(value, int):  # beyond the largest float
        return "has too many digits"
    if kind in ("literal_error", "union_tag_invalid"):  # pydantic lists the choices as "1, 2 or 'auto'"
        choices = re.split(", | or ", context.get("expected") or context["expected_tags"])
        choices = [choice.strip("'").replace("False", "false") for choice in choices]
        if len(choices) == 1:
            return f"must be {choices[0]}"
        near = nearest(str(context.get("tag", value)), choices, min_similarity=0.4)
        return f"must be one of {', '.join(choices)}" + (f"; nearest: {near}" if near else "")
    by_type = REASONS.get(kind) or REASONS.get(kind.partition("_")[0])
    return by_type or re.sub("^(Input|String|Tuple) should", "must", details["msg"])
