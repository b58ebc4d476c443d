"""The dotted keys of a schema, such as ``training.schedule.warmup``, and their types."""

import difflib
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from mt.config.fields import Section


def schema_keys(schema: type[Section], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every full key of a schema with its field. Where a section may be of several kinds, those of every
    kind."""
    for name, field in schema.model_fields.items():
        kinds = sections_in(field.annotation)
        if not kinds or is_list(field.annotation):
            yield prefix + name, field
        else:
            for kind in kinds:
                yield from schema_keys(kind, f"{prefix}{name}.")


@cache
def text_keys(schema: type[Section]) -> frozenset[str]:
    """Return the keys whose value is always a text, so that 2024 or true can only mean these letters."""
    types: dict[str, list[set[object]]] = {}
    for key, field in schema_keys(schema):
        types.setdefault(key, []).append(_plain_types(field.annotation))
    return frozenset(
        key for key, kinds in types.items() if all(str in kind and kind <= {str, tuple, type(None)} for kind in kinds)
    )


def takes_list(schema: type[Section], key: str) -> bool:
    """Return whether a key's value may be a list."""
    return any(tuple in _plain_types(field.annotation) for name, field in schema_keys(schema) if name == key)


def nearest_key(key: str, keys: list[str]) -> str | None:
    """Return the key that was probably meant. The last part counts most: ``warmup`` finds
    ``training.schedule.warmup``."""
    section, _, name = key.rpartition(".")

    def likeness(choice: str) -> float:
        choice_section, _, choice_name = choice.rpartition(".")
        names = difflib.SequenceMatcher(None, name, choice_name).ratio()
        sections = difflib.SequenceMatcher(None, section, choice_section).ratio()
        return names + 0.3 * sections if names >= 0.6 else 0.0

    best = max(keys, key=likeness)
    return best if likeness(best) > 0 else None


def sections_in(annotation: object) -> list[type[Section]]:
    """Return the sections that a type annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for argument in get_args(annotation) for section in sections_in(argument)]


def kind_key(section: type[Section]) -> str | None:
    """Return the key that tells the kinds of a section apart (``kind``, ``architecture``); None if there is only one
    kind."""
    return next(
        (
            name
            for name, field in section.model_fields.items()
            if get_origin(field.annotation) is Literal and field.is_required() and len(get_args(field.annotation)) == 1
        ),
        None,
    )


def kind_name(section: type[Section]) -> str:
    """Return the value of that key, such as ``files``."""
    key = kind_key(section)
    return str(get_args(section.model_fields[key].annotation)[0]) if key else ""


def is_list(annotation: object) -> bool:
    return get_origin(annotation) is tuple


def _plain_types(annotation: object) -> set[object]:
    if get_origin(annotation) is Literal:
        return {type(value) for value in get_args(annotation)}
    if is_list(annotation):
        return {tuple}
    if get_origin(annotation) is Annotated:
        return _plain_types(get_args(annotation)[0])
    arguments = get_args(annotation)
    return {plain for argument in arguments for plain in _plain_types(argument)} if arguments else {annotation}
