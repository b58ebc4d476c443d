"""Messages for the mistakes in a config: the key as typed, the value, the reason, and the nearest valid one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mt.cli.keys import kind_name, nearest_key, schema_keys, sections_in
from mt.config.fields import Section
from mt.core.wording import brief, format_value, nearest


@dataclass(frozen=True)
class Mistake:
    """One thing to mend."""

    key: str
    """The full key, or of a contradiction the section that it lies in. Empty where no key is to blame."""
    line: str
    """What to tell the user."""
    kind: Literal["wrong", "missing", "contradiction"] = "wrong"


@dataclass(frozen=True)
class ErrorFormatter:
    """Words the mistakes in a config, with the keys of its schema and the options of its groups."""

    schema: type[Section]
    options: Mapping[str, list[str]]
    """The options of each group, such as those of ``model=``."""
    examples: Mapping[str, str]
    """For a top-level key, a command line that sets everything needed beneath it."""

    def mistakes(self, error: ValidationError) -> list[Mistake]:
        """Return the mistakes that the schema reports, with one line for each key.

        Pydantic's locations also hold the kind of a section (``data.files.train``), and one entry for each type that a
        value may have.
        """
        errors: dict[str, list[ErrorDetails]] = {}
        for details in error.errors():
            errors.setdefault(self._locate(details["loc"])[0], []).append(details)
        for key in list(errors):
            if any(other.startswith((f"{key}.", f"{key}[")) for other in errors):
                del errors[key]  # a list with wrong items is also called too short
        mistakes: list[Mistake] = []
        for key, details_of_key in errors.items():
            mistakes += self._mistakes_of(key, details_of_key)
        return self._with_examples(mistakes)

    def _mistakes_of(self, key: str, errors: list[ErrorDetails]) -> list[Mistake]:
        first = errors[0]
        if first["type"] == "extra_forbidden":
            return [self.unknown_key(full, value) for full, value in _leaves(key, first["input"])]
        if first["type"] == "missing":
            return [Mistake(key, f"{key}: is needed", "missing")]
        if first["type"] == "value_error" and self._locate(first["loc"])[1]:
            message = str(first["ctx"]["error"])
            return [Mistake(key, _in_section(key, reason), "contradiction") for reason in message.split("\n")]
        if first["type"] in ("union_tag_invalid", "union_tag_not_found"):
            return [self._wrong_kind(key, first)]
        reasons = dict.fromkeys(self._reason(key, details) for details in errors)
        return [Mistake(key, f"{key}={brief(format_value(first['input']))}: {' or '.join(reasons)}")]

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
        typed = f"{brief(key)}={brief(format_value(value))}"
        section, _, name = key.rpartition(".")
        everywhere = [full for full, _ in schema_keys(self.schema)]
        if key in everywhere:
            kinds = [kind_name(kind) for kind in self._sections_at(section) if name in kind.model_fields]
            return Mistake(key, f"{typed}: only {section} of kind {' or '.join(kinds)} has this key")
        if "[" in section:
            everywhere = [f"{section}.{field}" for kind in self._sections_at(section) for field in kind.model_fields]
        near = nearest_key(key, everywhere if section else [*everywhere, *self.options])
        hint = f"nearest: {near}" if near else "--help lists all keys"
        return Mistake(key, f"{typed}: there is no such key; {hint}")

    def _wrong_kind(self, key: str, details: ErrorDetails) -> Mistake:
        context = details["ctx"]
        full = f"{key}.{context['discriminator'].strip(chr(39))}"
        kinds = [kind_name(kind) for kind in self._sections_at(key)]
        if "tag" not in context:
            return Mistake(full, f"{full}: is needed, one of {', '.join(kinds)}", "missing")
        return Mistake(full, f"{full}={brief(format_value(context['tag']))}: {_one_of(kinds, context['tag'])}")

    def _reason(self, key: str, details: ErrorDetails) -> str:
        kind, context, value = details["type"], details.get("ctx", {}), details["input"]
        match kind:
            case "literal_error":
                # "1, 2 or 'auto'"; here false is written false
                expected = re.split(", | or ", context["expected"])
                return _one_of([choice.strip("'").replace("False", "false") for choice in expected], value)
            case "model_type" | "model_attributes_type":
                inner = [name for name, _ in schema_keys(self.schema) if name.startswith(f"{key}.")]
                return (
                    f"is a section: set its keys, such as {inner[0]}=…" if inner else "must be a section: {key:value,…}"
                )
            case "tuple_type":
                return f"must be a list, written '{key}=[a,b]'"
            case "string_type" if isinstance(value, bool):
                return "must be a text (in YAML files no, yes and on need quotes)"
            case "float_type" if isinstance(value, int):  # beyond the largest float
                return "has too many digits"
            case "value_error":
                return str(context["error"])
            case _:
                return REASONS.get(kind) or re.sub("^(Input|String|Tuple) should", "must", details["msg"])

    def _with_examples(self, mistakes: list[Mistake]) -> list[Mistake]:
        """Add to the last missing key of each section a command line that has them all."""
        last = {mistake.key.partition(".")[0]: mistake for mistake in mistakes if mistake.kind == "missing"}
        examples = {last[section].key: line for section, line in self.examples.items() if section in last}
        return [
            replace(mistake, line=f"{mistake.line}, for example: {examples[mistake.key]}")
            if mistake.kind == "missing" and mistake.key in examples
            else mistake
            for mistake in mistakes
        ]

    def _locate(self, location: tuple[int | str, ...]) -> tuple[str, list[type[Section]]]:
        """Return the key of a pydantic location as the user types it, and the sections that may stand there."""
        key, here = "", [self.schema]
        for part in location:
            if isinstance(part, int):
                key += f"[{part}]"
            elif len(here) > 1:
                here = [section for section in here if kind_name(section) == part]
            elif here:
                key += f".{part}" if key else part
                field = here[0].model_fields.get(part)
                here = sections_in(field.annotation) if field else []
        return key, here

    def _sections_at(self, key: str) -> list[type[Section]]:
        """Return the sections, of every kind, that may stand at a key (``data``, ``data.corpora[0]``)."""
        here = [self.schema]
        for name in re.sub(r"\[\d+\]", "", key).split(".") if key else []:
            fields = [section.model_fields[name] for section in here if name in section.model_fields]
            here = [section for field in fields for section in sections_in(field.annotation)]
        return here


REASONS = {
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "string_unicode": "must be a text in UTF-8",
    "int_parsing_size": "has too many digits",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
"""For pydantic's types of errors."""


def _one_of(choices: Sequence[str], value: object) -> str:
    near = nearest(str(value), choices, min_similarity=0.4)
    if len(choices) == 1:
        return f"must be {choices[0]}"
    return f"must be one of {', '.join(choices)}" + (f"; nearest: {near}" if near else "")


def _in_section(section: str, reason: str) -> str:
    """Name the section in a message that may begin with one of its keys."""
    if not section:
        return reason
    return f"{section}.{reason}" if re.match(r"[\w.]+=", reason) else f"{section}: {reason}"


def _leaves(key: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for name, part in value.items():
            yield from _leaves(f"{key}.{name}", part)
    else:
        yield key, value
