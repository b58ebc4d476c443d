"""Says what is wrong with a config: the key as one types it, the value, why, and the nearest right one."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from mt.config import Section

LONGEST_SHOWN = 200
"""Characters of a value that a message shows."""


@dataclass(frozen=True)
class Mistake:
    """One thing to mend."""

    key: str
    """The full key; empty where no key is to blame."""
    line: str
    """What to tell the user."""
    kind: Literal["wrong", "missing", "contradiction"] = "wrong"
    """Of a contradiction the key is the section that it lies in."""


@dataclass(frozen=True)
class Words:
    """What may be written on a command line, to find the nearest right word among."""

    schema: type[Section]
    groups: Mapping[str, list[str]]
    """Group name → its options."""
    examples: Mapping[str, str]
    """Top key → a command line in which everything needed beneath it stands."""


def nearest(word: str, choices: Sequence[str], likeness: float = 0.6) -> str | None:
    """The choice that was probably meant, if any is as alike as that (0 to 1)."""
    return next(iter(difflib.get_close_matches(word, choices, n=1, cutoff=likeness)), None)


def nearest_key(key: str, keys: list[str]) -> str | None:
    """As ``nearest``, but the last part counts most: ``warmup`` finds ``training.schedule.warmup``."""
    section, _, name = key.rpartition(".")

    def likeness(choice: str) -> float:
        choice_section, _, choice_name = choice.rpartition(".")
        names = difflib.SequenceMatcher(None, name, choice_name).ratio()
        sections = difflib.SequenceMatcher(None, section, choice_section).ratio()
        return names + 0.3 * sections if names >= 0.6 else 0.0

    best = max(keys, key=likeness)
    return best if likeness(best) > 0 else None


def shown(value: object) -> str:
    """A value as one would type it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{shown(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(shown(part) for part in value) + "]"
    return str(value)


def brief(text: str) -> str:
    """A text for a message, without its middle if it is long."""
    if len(text) <= LONGEST_SHOWN:
        return text
    half = LONGEST_SHOWN // 2
    return f"{text[:half]} … {text[-half:]} ({len(text):,} characters)"


def schema_keys(schema: type[Section], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every full key of a schema with its field; where a section may be of several kinds, of every kind."""
    for name, field in schema.model_fields.items():
        kinds = _sections(field.annotation)
        if not kinds or _is_list(field.annotation):
            yield prefix + name, field
        else:
            for kind in kinds:
                yield from schema_keys(kind, f"{prefix}{name}.")


@cache
def text_keys(schema: type[Section]) -> frozenset[str]:
    """The keys whose value is always a text, so that 2024 or true can only mean these letters."""
    types: dict[str, list[set[object]]] = {}
    for key, field in schema_keys(schema):
        types.setdefault(key, []).append(_plain_types(field.annotation))
    return frozenset(
        key for key, each in types.items() if all(str in one and one <= {str, tuple, type(None)} for one in each)
    )


def takes_list(schema: type[Section], key: str) -> bool:
    """Whether a key's value may be a list."""
    return any(tuple in _plain_types(field.annotation) for name, field in schema_keys(schema) if name == key)


def find_mistakes(error: ValidationError, values: Mapping[str, object], words: Words) -> list[Mistake]:
    """Everything that the schema found wrong with ``values``.

    Pydantic's locations hold the kind of a section (``data.files.train``) and one entry for each type that
    a value may have; here one key that the user can type has one line.
    """
    found: dict[str, list[ErrorDetails]] = {}
    for details in error.errors():
        found.setdefault(_locate(words.schema, details["loc"])[0], []).append(details)
    for key in list(found):
        if any(other.startswith((f"{key}.", f"{key}[")) for other in found):
            del found[key]  # a list whose items are wrong is called too short
    mistakes: list[Mistake] = []
    for key, errors in found.items():
        first = errors[0]
        if first["type"] == "extra_forbidden":
            mistakes += [_unknown_key(full, value, values, words) for full, value in _leaves(key, first["input"])]
        elif first["type"] == "missing":
            mistakes.append(Mistake(key, f"{key}: is needed", "missing"))
        elif first["type"] == "value_error" and _locate(words.schema, first["loc"])[1]:
            said = re.sub(rf"\S{{{LONGEST_SHOWN},}}", lambda word: brief(word.group()), str(first["ctx"]["error"]))
            reasons = said.split("\n")
            mistakes += [Mistake(key, _in_section(key, reason), "contradiction") for reason in reasons]
        elif first["type"] in ("union_tag_invalid", "union_tag_not_found"):
            mistakes.append(_wrong_kind(key, first, words))
        else:
            reasons = [_reason(key, details, words) for details in errors]
            line = f"{key}={brief(shown(first['input']))}: {' or '.join(dict.fromkeys(reasons))}"
            mistakes.append(Mistake(key, line))
    return _with_examples(mistakes, words)


def _in_section(section: str, reason: str) -> str:
    """What a section says of itself, which may begin with one of its keys and the value."""
    if not section:
        return reason
    return f"{section}.{reason}" if re.match(r"[\w.]+=", reason) else f"{section}: {reason}"


def unknown_option(group: str, option: str, words: Words) -> Mistake:
    """For ``model=transfromer_small``."""
    options = words.groups[group]
    alike = nearest(option, options)
    near = [alike] if alike else [choice for choice in options if option in choice.split("_")]
    there = ", ".join(options)
    hint = f"nearest: {group}={' or '.join(near)} (of {there})" if near else f"there are {there}"
    return Mistake(group, f"{group}={brief(option)}: there is no such option; {hint}")


def unknown_key(key: str, value: object, words: Words) -> Mistake:
    """For a key that cannot be tried on the schema, such as ``hydra.job.name``."""
    return _unknown_key(key, value, {}, words)


def _with_examples(mistakes: list[Mistake], words: Words) -> list[Mistake]:
    """Adds to the last missing key of each section a command line that has them all."""
    last = {mistake.key.partition(".")[0]: mistake for mistake in mistakes if mistake.kind == "missing"}
    examples = {last[section].key: line for section, line in words.examples.items() if section in last}
    return [
        replace(mistake, line=f"{mistake.line}, for example: {examples[mistake.key]}")
        if mistake.kind == "missing" and mistake.key in examples
        else mistake
        for mistake in mistakes
    ]


def _unknown_key(key: str, value: object, values: Mapping[str, object], words: Words) -> Mistake:
    typed = f"{brief(key)}={brief(shown(value))}"
    section, _, name = key.rpartition(".")
    everywhere = [full for full, _ in schema_keys(words.schema)]
    if key in everywhere:
        kinds = [_kind_name(kind) for kind in _sections_at(words.schema, section) if name in kind.model_fields]
        return Mistake(key, f"{typed}: only {section} of kind {' or '.join(kinds)} has this key")
    if "[" in section:
        everywhere = [
            f"{section}.{field}" for kind in _sections_at(words.schema, section) for field in kind.model_fields
        ]
    near = nearest_key(key, everywhere if section else [*everywhere, *words.groups])
    return Mistake(key, f"{typed}: there is no such key; " + (f"nearest: {near}" if near else "--help lists all keys"))


def _wrong_kind(key: str, details: ErrorDetails, words: Words) -> Mistake:
    context = details["ctx"]
    full = f"{key}.{context['discriminator'].strip(chr(39))}"
    kinds = [_kind_name(kind) for kind in _sections_at(words.schema, key)]
    if "tag" not in context:
        return Mistake(full, f"{full}: is needed, one of {', '.join(kinds)}", "missing")
    return Mistake(full, f"{full}={brief(shown(context['tag']))}: {_one_of(kinds, context['tag'])}")


def _one_of(choices: Sequence[str], value: object) -> str:
    near = nearest(str(value), choices, likeness=0.4)
    if len(choices) == 1:
        return f"must be {choices[0]}"
    return f"must be one of {', '.join(choices)}" + (f"; nearest: {near}" if near else "")


def _reason(key: str, details: ErrorDetails, words: Words) -> str:
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    field = dict(schema_keys(words.schema)).get(key)
    inner = [name for name, _ in schema_keys(words.schema) if name.startswith(f"{key}.")]
    match kind:
        case "literal_error":
            return _one_of(re.findall(r"'([^']*)'", context["expected"]), value)
        case "model_type" | "model_attributes_type":
            return f"is a section: set its keys, such as {inner[0]}=…" if inner else "must be a section: {key:value,…}"
        case "tuple_type":
            return f"must be a list, written '{key}=[a,b]'"
        case "string_pattern_mismatch" if field and field.description:
            return f"must be {field.description}"
        case "string_type" if isinstance(value, bool):
            return "must be a text (in YAML files no, yes and on need quotes)"
        case "string_type":
            return "must be a text"
        case "string_too_short":
            return "must not be empty"
        case "string_unicode":
            return "must be a text in UTF-8"
        case "int_parsing_size":
            return "has too many digits"
        case "float_type" if isinstance(value, int):  # beyond the largest float
            return "has too many digits"
        case "int_type" | "int_parsing" | "int_from_float":
            return "must be a whole number"
        case "float_type" | "float_parsing":
            return "must be a number"
        case "bool_type" | "bool_parsing":
            return "must be true or false"
        case "value_error":
            return str(context["error"])
        case _:
            return re.sub("^(Input|String|Tuple) should", "must", details["msg"])


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
    """The sections, of every kind, that may stand at a key (``data``, ``data.corpora[0]``)."""
    here = [schema]
    for name in re.sub(r"\[\d+\]", "", key).split(".") if key else []:
        fields = [section.model_fields[name] for section in here if name in section.model_fields]
        here = [found for field in fields for found in _sections(field.annotation)]
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
            if get_origin(field.annotation) is Literal and field.is_required() and len(get_args(field.annotation)) == 1
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
    if get_origin(annotation) is Annotated:
        return _plain_types(get_args(annotation)[0])
    arguments = get_args(annotation)
    return {found for argument in arguments for found in _plain_types(argument)} if arguments else {annotation}


def _leaves(key: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for name, part in value.items():
            yield from _leaves(f"{key}.{name}", part)
    else:
        yield key, value
