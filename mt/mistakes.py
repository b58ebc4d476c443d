"""Says what is wrong with a config: the key as one types it, the value, why, and the nearest right one."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from mt.config import Section


@dataclass(frozen=True)
class Mistake:
    """One thing to mend."""

    key: str
    """The full key, or the section whose keys contradict each other; empty for the whole config."""
    line: str
    """What to tell the user."""
    missing: bool = False
    """The key is needed but was not given."""


@dataclass(frozen=True)
class Words:
    """What may be written on a command line, to find the nearest right word among."""

    schema: type[Section]
    groups: Mapping[str, list[str]]
    """Group name → its options."""
    examples: Mapping[str, str]
    """Top key → a command line in which everything needed beneath it stands."""


def nearest(word: str, choices: list[str]) -> str | None:
    """The choice that was probably meant, if any is near."""
    return next(iter(difflib.get_close_matches(word, choices, n=1, cutoff=0.6)), None)


def nearest_key(key: str, keys: list[str]) -> str | None:
    """As ``nearest``, but the last part counts most: ``warmup`` finds ``training.schedule.warmup``."""
    section, _, name = key.rpartition(".")

    def likeness(choice: str) -> float:
        choice_section, _, choice_name = choice.rpartition(".")
        names = difflib.SequenceMatcher(None, name, choice_name).ratio()
        sections = difflib.SequenceMatcher(None, section, choice_section).ratio()
        return names + 0.3 * sections if names >= 0.6 else 0.0

    best = max(keys, key=likeness)
    return best if likeness(best) > 0 else nearest(key, keys)


def shown(value: object) -> str:
    """A value as one would type it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{shown(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(shown(part) for part in value) + "]"
    return str(value)


def schema_keys(schema: type[Section], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every full key of a schema with its field; where a section may be of several kinds, of every kind."""
    for name, field in schema.model_fields.items():
        kinds = _sections(field.annotation)
        if not kinds or _is_list(field.annotation):
            yield prefix + name, field
        else:
            for kind in kinds:
                yield from schema_keys(kind, f"{prefix}{name}.")


def takes_only_text(schema: type[Section], key: str) -> bool:
    """Whether a key's value is always a text, so that 2024 or true can only mean these letters."""
    fields = [field for name, field in schema_keys(schema) if name == key]
    return bool(fields) and all(_plain_types(field.annotation) <= {str, type(None)} for field in fields)


def find_mistakes(error: ValidationError, values: Mapping[str, object], words: Words) -> list[Mistake]:
    """Everything that the schema found wrong with ``values``.

    Pydantic's locations hold the kind of a section (``data.files.train``) and one entry for each type that
    a value may have; here one key that the user can type has one line.
    """
    found: dict[str, list[tuple[ErrorDetails, list[type[Section]]]]] = {}
    for details in error.errors():
        key, sections = _locate(words.schema, details["loc"])
        found.setdefault(key, []).append((details, sections))
    mistakes: list[Mistake] = []
    for key, entries in found.items():
        unknown = [details for details, _ in entries if details["type"] == "extra_forbidden"]
        if unknown:
            mistakes += [
                _unknown_key(full, value, values, words) for full, value in _leaves(key, unknown[0]["input"])
            ]
        elif any(details["type"] == "missing" for details, _ in entries):
            mistakes.append(_missing_key(key, words))
        elif any(sections for _, sections in entries) and entries[0][0]["type"] == "value_error":
            mistakes += [
                Mistake(key, _with_section(key, str(details["ctx"]["error"]))) for details, _ in entries
            ]
        else:
            reasons = dict.fromkeys(_reason(key, details, words) for details, _ in entries)
            mistakes.append(Mistake(key, f"{key}={shown(entries[0][0]['input'])}: {', or '.join(reasons)}"))
    return mistakes


def unknown_option(group: str, option: str, words: Words) -> Mistake:
    """For ``model=transfromer_small``."""
    options = words.groups[group]
    near = nearest(option, options)
    hint = f"nearest: {group}={near} (of {', '.join(options)})" if near else f"there are {', '.join(options)}"
    return Mistake(group, f"{group}={option}: there is no such option; {hint}")


def unknown_key(key: str, value: object, words: Words) -> Mistake:
    """For a key that cannot be tried on the schema, such as ``hydra.job.name``."""
    return _unknown_key(key, value, {}, words)


def _unknown_key(key: str, value: object, values: Mapping[str, object], words: Words) -> Mistake:
    typed = f"{key}={shown(value)}"
    everywhere = dict(schema_keys(words.schema))
    if key in everywhere:
        section = key.rpartition(".")[0]
        kinds = [
            kind
            for kind in _sections_at(words.schema, section)
            if key.rpartition(".")[2] in kind.model_fields
        ]
        names = " or ".join(_kind_name(kind) for kind in kinds)
        chosen = values.get(section)
        here = chosen.get("kind", "this") if isinstance(chosen, Mapping) else "this"
        return Mistake(key, f"{typed}: only {section} of kind {names} has this key, not kind {here}")
    near = nearest_key(key, [*everywhere, *words.groups])
    return Mistake(
        key, f"{typed}: there is no such key; " + (f"nearest: {near}" if near else "--help lists all keys")
    )


def _missing_key(key: str, words: Words) -> Mistake:
    example = words.examples.get(key.partition(".")[0])
    return Mistake(key, f"{key}: is needed" + (f", for example: {example}" if example else ""), missing=True)


def _reason(key: str, details: ErrorDetails, words: Words) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind in ("literal_error", "union_tag_invalid"):
        expected = context["expected"] if kind == "literal_error" else context["expected_tags"]
        choices = [choice.strip(" '") for choice in expected.replace(" or ", ", ").split(",")]
        near = nearest(str(context.get("tag", details["input"])), choices)
        return f"must be one of {', '.join(choices)}" + (f"; nearest: {near}" if near else "")
    if kind == "union_tag_not_found":
        return "needs a kind"
    if kind in ("model_type", "model_attributes_type"):
        inner = [name for name, _ in schema_keys(words.schema) if name.startswith(f"{key}.")]
        return "is a section: set its keys" + (f", for example {inner[0]}=…" if inner else "")
    if kind == "tuple_type":
        return f"must be a list, written '{key}=[a,b]'"
    if kind == "string_pattern_mismatch":
        field = dict(schema_keys(words.schema)).get(key)
        return (
            f"must be {field.description}"
            if field and field.description
            else f"must match {context['pattern']}"
        )
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_type" and isinstance(details["input"], bool):
        return "must be a text (in YAML files no, yes and on need quotes)"
    return details["msg"].replace("Input ", "").replace("Tuple ", "List ").replace("a valid", "a").lower()


def _locate(schema: type[Section], location: tuple[int | str, ...]) -> tuple[str, list[type[Section]]]:
    """A pydantic location → the key as the user types it, and the sections that may stand there."""
    key, here = "", [schema]
    for part in location:
        if isinstance(part, int):
            key += f"[{part}]"
        elif len(here) > 1:
            here = [section for section in here if _kind_name(section) == part]
        elif here:
            key += f".{part}" if key else part
            field = here[0].model_fields.get(part)
            here = _sections(field.annotation) if field else []
    return key, here


def _sections_at(schema: type[Section], key: str) -> list[type[Section]]:
    here = [schema]
    for name in key.split(".") if key else []:
        here = [
            found
            for section in here
            if name in section.model_fields
            for found in _sections(section.model_fields[name].annotation)
        ]
    return here


def _sections(annotation: object) -> list[type[Section]]:
    """The sections that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for argument in get_args(annotation) for section in _sections(argument)]


def _kind_name(section: type[Section]) -> str:
    """The one value that a section's discriminator may have."""
    return next(
        (
            get_args(field.annotation)[0]
            for field in section.model_fields.values()
            if get_origin(field.annotation) is Literal
            and field.is_required()
            and len(get_args(field.annotation)) == 1
        ),
        "",
    )


def _is_list(annotation: object) -> bool:
    return get_origin(annotation) is tuple


def _plain_types(annotation: object) -> set[object]:
    if get_origin(annotation) is Literal:
        return {type(value) for value in get_args(annotation)}
    if _is_list(annotation):
        return {tuple}
    arguments = [argument for argument in get_args(annotation) if not isinstance(argument, FieldInfo)]
    return (
        {found for argument in arguments for found in _plain_types(argument)} if arguments else {annotation}
    )


def _leaves(key: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for name, part in value.items():
            yield from _leaves(f"{key}.{name}", part)
    else:
        yield key, value


def _with_section(key: str, reason: str) -> str:
    return f"{key}: {reason}" if key else reason
