"""The dotted keys of a schema, such as ``training.schedule.warmup``."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from mt.config.fields import Section


def schema_keys(schema: type[Section], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
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


def sections_in(annotation: object) -> list[type[Section]]:
    """Return the section classes in a type annotation: one for each kind of section that a value may be."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for argument in get_args(annotation) for section in sections_in(argument)]


def kind_of(section: type[Section]) -> tuple[str, str]:
    """Return the key that distinguishes the kinds of a section, and its value in this kind: ("kind", "files"). Return
    ("", "") if there is only one kind."""
    for key in ("kind", "architecture"):
        if key in section.model_fields and section.model_fields[key].is_required():
            return key, get_args(section.model_fields[key].annotation)[0]
    return "", ""


def sections_at(schema: type[Section], key: str) -> list[type[Section]]:
    """Return the section classes, one for each kind, of a key such as ``data`` or ``data.corpora[0]``. Return an empty
    list if the key is not that of a section."""
    sections = [schema]
    for name in re.sub(r"\[\d+\]", "", key).split(".") if key else []:
        fields = [section.model_fields[name] for section in sections if name in section.model_fields]
        sections = [section for field in fields for section in sections_in(field.annotation)]
    return sections


def location_key(schema: type[Section], location: tuple[int | str, ...]) -> str:
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


def schema_defaults(schema: type[Section], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested mappings with the default of every key that has one.

    Args:
        schema: The schema of a config or section.
        values: The values that are set. They tell the kinds of sections. A section of unknown kind is left out.
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


def nearest_key(key: str, keys: list[str]) -> str | None:
    """Return the one of ``keys`` that is most similar to a misspelled key, or None if none is similar.

    The last part of a key counts most: for ``warmup``, it is ``training.schedule.warmup``.
    """
    name_and_section = key.rpartition(".")[::-2]

    def similarity(choice: str) -> list[float]:
        pairs = zip(name_and_section, choice.rpartition(".")[::-2], strict=True)
        return [difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs]

    best = max(keys, key=similarity)
    return best if similarity(best)[0] >= 0.6 else None
