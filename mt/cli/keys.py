"""The dotted keys of a schema, such as ``training.schedule.warmup``."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from mt.config.fields import Section


def schema_keys(schema: type[Section], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every full key of a schema with its field. Where a section may be of several kinds, those of every
    kind."""
    for name, field in schema.model_fields.items():
        kinds = sections_in(field.annotation)
        if not kinds or get_origin(field.annotation) is tuple:
            yield prefix + name, field
        else:
            for kind in kinds:
                yield from schema_keys(kind, f"{prefix}{name}.")


def sections_in(annotation: object) -> list[type[Section]]:
    """Return the sections that a type annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for argument in get_args(annotation) for section in sections_in(argument)]


def kind_of(section: type[Section]) -> tuple[str, str]:
    """Return the key that tells the kinds of a section apart, and its value: ("kind", "files"). Both are empty if there
    is only one kind."""
    for key in ("kind", "architecture"):
        if key in section.model_fields and section.model_fields[key].is_required():
            return key, get_args(section.model_fields[key].annotation)[0]
    return "", ""


def sections_at(schema: type[Section], key: str) -> list[type[Section]]:
    """Return the sections, of every kind, that may stand at a key (``data``, ``data.corpora[0]``)."""
    sections = [schema]
    for name in re.sub(r"\[\d+\]", "", key).split(".") if key else []:
        fields = [section.model_fields[name] for section in sections if name in section.model_fields]
        sections = [section for field in fields for section in sections_in(field.annotation)]
    return sections


def location_key(schema: type[Section], location: tuple[int | str, ...]) -> str:
    """Return the key of pydantic's location of an error. The location also holds the kind of a section
    (``data.files.train``) and one of the types that a value may have."""
    key, sections = "", [schema]
    for part in location:
        if isinstance(part, int):
            key += f"[{part}]"
        elif len(sections) > 1:
            sections = [section for section in sections if kind_of(section)[1] == part]
        elif sections:
            key += f".{part}" if key else part
            field = sections[0].model_fields.get(part)
            sections = sections_in(field.annotation) if field else []
    return key


def schema_defaults(schema: type[Section], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default of every key that has one. Of a section's kinds, take the one in ``values``."""
    defaults: dict[str, Any] = {}
    for name, field in schema.model_fields.items():
        kinds = sections_in(field.annotation)
        part = values[name] if isinstance(values.get(name), Mapping) else {}
        for kind in kinds:
            kind_key, kind_name = kind_of(kind)
            if len(kinds) == 1 or part.get(kind_key) == kind_name:
                defaults[name] = schema_defaults(kind, part)
        if not kinds and not field.is_required():
            defaults[name] = field.default
    return defaults


def nearest_key(key: str, keys: list[str]) -> str | None:
    """Return the key that was probably meant. Its last part counts most: ``warmup`` finds
    ``training.schedule.warmup``."""
    section, _, name = key.rpartition(".")

    def similarity(choice: str) -> tuple[float, float]:
        choice_section, _, choice_name = choice.rpartition(".")
        pairs = ((name, choice_name), (section, choice_section))
        by_name, by_section = (difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)
        return by_name, by_section

    best = max(keys, key=similarity)
    return best if similarity(best)[0] >= 0.6 else None
