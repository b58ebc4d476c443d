"""Messages for the mistakes in a config: the key as typed, the value, the reason, and the nearest valid one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mt.cli.keys import kind_of, location_key, nearest_key, schema_keys, sections_at
from mt.config.fields import Section
from mt.config.resolved import flat_values
from mt.core.wording import brief, format_value, nearest


@dataclass
class Mistake:
    """One thing to mend."""

    key: str
    """The full key. Empty where no single key is to blame."""
    line: str
    """What to tell the user."""
    is_missing: bool = False


@dataclass(frozen=True)
class ErrorFormatter:
    """Words the mistakes in a config, with the keys of its schema and the options of its groups."""

    schema: type[Section]
    options: Mapping[str, list[str]]
    """The options of each group, such as those of ``model=``."""

    def errors_by_key(self, error: ValidationError) -> dict[str, list[ErrorDetails]]:
        """Return pydantic's errors of each key: one for each type that its value may have."""
        errors: dict[str, list[ErrorDetails]] = {}
        for details in error.errors():
            key = location_key(self.schema, details["loc"])
            if discriminator := details.get("ctx", {}).get("discriminator"):
                key += "." + discriminator.strip("'")
            errors.setdefault(key, []).append(details)
        # A list with wrong items is also called too short.
        return {
            key: of_key
            for key, of_key in errors.items()
            if not any(other.startswith((f"{key}.", f"{key}[")) for other in errors)
        }

    def mistakes(self, error: ValidationError) -> list[Mistake]:
        """Return the mistakes that the schema reports, with one line for each key."""
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
        """For ``model=transfromer_small``."""
        options = self.options[group]
        similar = nearest(option, options)
        near = [similar] if similar else [choice for choice in options if option in choice.split("_")]
        there = ", ".join(options)
        hint = f"nearest: {group}={' or '.join(near)} (of {there})" if near else f"there are {there}"
        return Mistake(group, f"{group}={brief(option)}: there is no such option; {hint}")

    def unknown_key(self, key: str, value: object) -> Mistake:
        """For ``training.warmup``, for ``data.path`` where the data are files, and for ``hydra.job.name``."""
        section, _, name = key.rpartition(".")
        kinds = sections_at(self.schema, section)
        keys = [full for full, _ in schema_keys(self.schema)]
        if key in keys:
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
}
"""Reasons by pydantic's type of an error, or by the part of it before the first _."""


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
    if kind in ("literal_error", "union_tag_invalid"):  # pydantic names the choices as "1, 2 or 'auto'"
        choices = re.split(", | or ", context.get("expected") or context["expected_tags"])
        return _one_of([choice.strip("'").replace("False", "false") for choice in choices], context.get("tag", value))
    by_type = REASONS.get(kind) or REASONS.get(kind.partition("_")[0])
    return by_type or re.sub("^(Input|String|Tuple) should", "must", details["msg"])


def _one_of(choices: Sequence[str], value: object) -> str:
    if len(choices) == 1:
        return f"must be {choices[0]}"
    near = nearest(str(value), choices, min_similarity=0.4)
    return f"must be one of {', '.join(choices)}" + (f"; nearest: {near}" if near else "")
