"""The dotted keys of a schema, such as ``training.schedule.warmup``; and messages for the errors in a config: the
key and value, the reason, and the nearest valid key or value."""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from mt.config import REMOVED, Section, flat_values
from mt.core.errors import brief, did_you_mean, format_value

Schema = type[Section]
"""The schema of a config or section."""


def schema_keys(schema: Schema, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every dotted key of a schema with its field.

    If a section may be of several kinds, yield the keys of each kind, one kind after another. A list of sections is a
    single key.

    Args:
        schema: The schema of a config or section.
        prefix: Text before each key, such as "data.".
    """
    for name, field in schema.model_fields.items():
        kinds = sections_in(field.annotation)
        if not kinds or get_origin(field.annotation) is tuple:
            yield prefix + name, field
            continue
        for kind in kinds:
            yield from schema_keys(kind, f"{prefix}{name}.")


def sections_in(annotation: object) -> list[Schema]:
    """Return the section classes in a type annotation: one for each kind of section that a value may be."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for argument in get_args(annotation) for section in sections_in(argument)]


def kind_of(section: Schema) -> tuple[str, str]:
    """Return the key that distinguishes the kinds of a section, and its value in this kind: ("kind", "files"). Return
    ("", "") if there is only one kind."""
    for key in ("kind", "architecture"):
        if key in section.model_fields and section.model_fields[key].is_required():
            return key, get_args(section.model_fields[key].annotation)[0]
    return "", ""


def sections_at(schema: Schema, key: str) -> list[Schema]:
    """Return the section classes, one for each kind, of a key such as ``data`` or ``data.corpora[0]``. Return an empty
    list if the key is not that of a section."""
    sections = [schema]
    for name in re.sub(r"\[\d+\]", "", key).split(".") if key else []:
        fields = [section.model_fields[name] for section in sections if name in section.model_fields]
        sections = [section for field in fields for section in sections_in(field.annotation)]
    return sections


def location_key(schema: Schema, location: tuple[int | str, ...]) -> str:
    """Return the key of an error that pydantic reports: ``data.train[1]``.

    Args:
        schema: The schema of the config.
        location: Pydantic's location of the error: ("data", "files", "train", "many", 1). Between the parts of the
            key, it has the kinds of sections, and the tags of the types that a value may have.
    """
    key, sections, is_mapping = "", [schema], False
    for part in location:
        if isinstance(part, int):
            key += f"[{part}]"
        elif len(sections) > 1:
            sections = [section for section in sections if kind_of(section)[1] == part]
        elif sections or is_mapping:
            key += f".{part}" if key else part
            field = sections[0].model_fields.get(part) if sections else None
            sections = sections_in(field.annotation) if field else []
            is_mapping = field is not None and get_origin(field.annotation) is dict
    return key


def schema_defaults(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested mappings with the default of every key that has one.

    Args:
        schema: The schema of a config or section.
        values: The values that are set. They tell the kinds of sections. Sections of unknown kind are skipped.
    """
    defaults: dict[str, Any] = {}
    for name, field in schema.model_fields.items():
        kinds = sections_in(field.annotation)
        part = values[name] if isinstance(values.get(name), Mapping) else {}
        for kind in kinds:
            kind_key, kind_name = kind_of(kind)
            if len(kinds) == 1 or part.get(kind_key) == kind_name:
                defaults[name] = schema_defaults(kind, part)
        if not kinds and not field.is_required() and field.default != {}:
            defaults[name] = field.default
    return defaults


def other_trainers() -> dict[str, list[str]]:
    """Return the names that settings have in other trainers, by the setting here and its difference: ``training.workers
    (one for each GPU)``."""
    return yaml.safe_load(Path(__file__).with_name("other_trainers.yaml").read_bytes())


@dataclass
class ErrorMessage:
    """The message for an error in a config."""

    key: str
    """The dotted key with the error. "" if the error does not concern a single key."""
    line: str
    """The message."""
    is_missing: bool = False
    """Whether a required key is not set."""


@dataclass(frozen=True)
class ErrorFormatter:
    """Writes messages for the errors in the configs of one command."""

    schema: Schema
    options: Mapping[str, list[str]]
    """The options of each config group, such as those of ``model=``."""

    def errors_by_key(self, error: ValidationError) -> dict[str, list[ErrorDetails]]:
        """Return pydantic's errors by dotted key. A key has one error for each type that its value may have.

        Errors of a list or section are omitted if there are errors of its items.
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

    def messages(self, error: ValidationError) -> list[ErrorMessage]:
        """Return the messages for a ``ValidationError`` of the schema: one for each key, in pydantic's order."""
        messages: list[ErrorMessage] = []
        for key, errors in self.errors_by_key(error).items():
            value = errors[0].get("ctx", {}).get("tag", errors[0]["input"])
            match errors[0]["type"]:
                case "extra_forbidden":
                    messages += [self.unknown_key(full, part) for full, part in flat_values({key: value})]
                case "missing":
                    messages.append(ErrorMessage(key, f"{key}: is needed", is_missing=True))
                case "union_tag_not_found":
                    kinds = [kind_of(kind)[1] for kind in sections_at(self.schema, key.rpartition(".")[0])]
                    messages.append(ErrorMessage(key, f"{key}: is needed, one of {', '.join(kinds)}", is_missing=True))
                case "model_type" | "model_attributes_type":
                    keys = dict.fromkeys(name for kind in sections_at(self.schema, key) for name in kind.model_fields)
                    hint = f"must be a section: {{key:value,…}} with keys of {', '.join(keys)}"
                    messages.append(ErrorMessage(key, f"{key}={brief(format_value(value))}: {hint}"))
                case _:
                    reasons = dict.fromkeys(_reason(key, details) for details in errors)
                    messages.append(ErrorMessage(key, f"{key}={brief(format_value(value))}: {' or '.join(reasons)}"))
        return messages

    def unknown_option(self, group: str, option: str) -> ErrorMessage:
        """Return the message that a group does not have an option, such as ``model=transfromer_small``."""
        options = self.options[group]
        matches = difflib.get_close_matches(option, options, n=1)
        near = matches or [choice for choice in options if option in choice.split("_")]
        hint = f"; did you mean {group}={' or '.join(near)}?" if near else ""
        line = f"{group}={brief(option)}: there is no such option; there are {', '.join(options)}{hint}"
        return ErrorMessage(group, line)

    def unknown_key(self, key: str, value: object) -> ErrorMessage:
        """Return the message that a key does not exist, or only in another kind of its section: ``training.warmup``, or
        ``data.path`` if the data are files."""
        section, _, name = key.rpartition(".")
        kinds = sections_at(self.schema, section)
        if key in REMOVED:
            hint = f"this setting was removed; {REMOVED[key]}"
        elif owners := [kind_of(kind)[1] for kind in kinds if name in kind.model_fields]:
            hint = f"only {section} of kind {' or '.join(owners)} has this key"
        else:
            near = self.nearest(key)
            hint = "there is no such key; " + (f"did you mean {near}?" if near else "--help all lists all keys")
        return ErrorMessage(key, f"{key}={brief(format_value(value))}: {hint}")

    def nearest(self, key: str) -> str | None:
        """Return the setting that was meant by an unknown key, the name of another trainer or a misspelled key. Return
        None if there is none that is similar.

        Args:
            key: The key, or a flag such as ``--max-tokens``.
        """
        section, _, name = key.strip("+~-").replace("-", "_").rpartition(".")
        keys = [full for full, _ in schema_keys(self.schema)]
        if "[" in section:
            keys = [f"{section}.{field}" for kind in sections_at(self.schema, section) for field in kind.model_fields]
        choices = [*keys, *self.options]
        if names := [here for here, others in other_trainers().items() if name in others]:
            return next((here for here in names if re.split("[ =]", here)[0] in choices), None)
        name_and_section = key.strip("+~-").rpartition(".")[::-2]

        def similarity(choice: str) -> list[float]:
            pairs = zip(name_and_section, choice.rpartition(".")[::-2], strict=True)
            return [difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs]

        # The last part of a key counts most: for ``warmup``, the nearest is ``training.schedule.warmup``.
        best = max(keys if section else choices, key=similarity)
        return best if similarity(best)[0] >= 0.6 else None


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
        return f"must be one of {', '.join(choices)}" + did_you_mean(str(context.get("tag", value)), choices, 0.4)
    by_type = REASONS.get(kind) or REASONS.get(kind.partition("_")[0])
    return by_type or re.sub("^(Input|String|Tuple) should", "must", details["msg"])
