"""Plain values of a config before they are checked: nested dicts, and the schema's defaults for interpolations."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from mt.cli.keys import kind_key, kind_name, sections_in
from mt.config.fields import Section


def defaults(schema: type[Section], config: object) -> dict[str, Any]:
    """Return the schema's default for every key that has one; of a section's kinds, those of the one in ``config``."""
    values: dict[str, Any] = {}
    for name, field in schema.model_fields.items():
        part = config._get_node(name) if isinstance(config, DictConfig) else None
        kinds = sections_in(field.annotation)
        chosen = [kind for kind in kinds if len(kinds) == 1 or _is_of_kind(part, kind)]
        if chosen:
            values[name] = defaults(chosen[0], part)
        elif not kinds and not field.is_required():
            default = field.default
            values[name] = list(default) if isinstance(default, tuple) else default
    return values


def _is_of_kind(part: object, section: type[Section]) -> bool:
    return isinstance(part, DictConfig) and OmegaConf.select(part, kind_key(section) or "") == kind_name(section)


def select_like(pattern: Any, values: Any) -> Any:
    """Return the part of ``values`` whose keys are in ``pattern``, and are not missing there."""
    if not isinstance(pattern, dict) or not isinstance(values, dict):
        return values
    return {str(key): select_like(part, values[key]) for key, part in pattern.items() if part != "???"}


def remove(values: dict[str, Any], key: str, sections_too: bool) -> bool:
    """Remove a dotted key and return whether it was there. Remove a whole section only with ``sections_too``."""
    *sections, name = key.split(".")
    for section in sections:
        values = values.get(section, {}) if isinstance(values, dict) else {}
    if not isinstance(values, dict) or name not in values or (isinstance(values[name], dict) and not sections_too):
        return False
    del values[name]
    return True


def add(values: dict[str, Any], key: str, value: object) -> None:
    """Add a value at a key, which may lie deep, if there is none yet."""
    *sections, name = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values.setdefault(name, value)
