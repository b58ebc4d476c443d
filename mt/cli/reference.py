"""Texts about all settings, generated from the schema: ``--help`` and ``docs/settings.md``."""

import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from mt.cli.commands import COMMANDS, Command
from mt.cli.config_files import Files
from mt.cli.mistakes import kind_of, schema_keys, sections_in
from mt.config import DecodingChoice, Section
from mt.core.errors import format_value
from mt.core.installation import CONF, as_typed_here

WIDTH = 120
"""Maximum number of characters in a line of help."""
INDENT = 40
"""Number of characters before a description in a line of help."""


def command_list() -> str:
    """Return the text of ``python -m mt``: a line for each command, with its summary."""
    summaries = {name: _title(CONF / f"{name}.yaml") for name in COMMANDS}
    summaries["settings"] = "Print every setting of every command (docs/settings.md)."
    lines = [f"  python -m mt {name:<11} {summary}" for name, summary in summaries.items()]
    return "\n".join(["Usage: python -m mt COMMAND [--help] [key=value …]", "", *lines]) + "\n"


def help_text(command: Command, config_dir: Path | None = None) -> str:
    """Return the text of ``--help`` for a command: its examples, config groups with their options, and keys with their
    defaults.

    Args:
        command: The command.
        config_dir: A folder with the user's own config files.
    """
    files = Files(command.name, config_dir)
    lines = [head_comment(CONF / f"{command.name}.yaml")]
    if defaults := files.group_defaults():
        lines += ["", "Choices (GROUP=OPTION; * is the default):"]
    for group, default in defaults.items():
        name = f"{group}="
        for option, file in files.options(group).items():
            lines.append(f"  {name:<11} {'*' if option == default else ' '} {option:<22} {_title(file)}")
            name = ""
    lines += ["", "Keys (KEY=VALUE, with defaults, which choices may change; … if a key has no default):"]
    for section, settings in _by_section(command.schema).items():
        lines += ["", f"{section}:"] if section else []
        for setting in settings:
            start, text = f"  {setting.key}={setting.default}", setting.meaning.partition("\n\n")[0]
            indent = " " * INDENT
            first, *more = textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent) or [indent]
            lines += [f"{start:<{INDENT}}{first.lstrip()}"] if len(start) < INDENT else [start, first]
            lines += more
    return as_typed_here("\n".join(line.rstrip() for line in lines) + "\n")


def settings_page() -> str:
    """Return the content of ``docs/settings.md``: tables of every setting of every command."""
    lines = [
        "# Settings",
        "",
        "<!-- Made from the schema in mt/config by `python -m mt settings > docs/settings.md`. -->",
        "",
        "Every setting of every command, with its default and the values that it takes. Settings are typed as",
        "`key=value`. An option of a group, as `model=transformer_tiny`, sets several keys: see its file in `conf/`.",
    ]
    for command in COMMANDS.values():
        files = Files(command.name)
        lines += ["", f"## `{command.typed}`", "", _title(CONF / f"{command.name}.yaml")]
        for group, default in files.group_defaults().items():
            lines += ["", f"Options of `{group}=`" + (f" (default: `{default}`):" if default else ":"), ""]
            lines += [f"- `{name}`: {_title(file)}" for name, file in files.options(group).items()]
        for section, settings in _by_section(command.schema).items():
            lines += ["", f"### {section}"] if section else []
            lines += ["", "| key | default | values | meaning |", "|---|---|---|---|"]
            for setting in settings:
                meaning = " ".join(setting.meaning.split()).replace("|", "\\|")
                values = ", ".join(setting.values)
                lines.append(f"| `{setting.key}` | `{setting.default}` | {values} | {meaning} |")
    return "\n".join(lines) + "\n"


def head_comment(file: Path) -> str:
    """Return the comment at the top of a config file, without "# " and without the lines for programs (@package,
    Example).
    """
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith(("# @package", "# Example: ")):
            lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines)


def _title(file: Path) -> str:
    """Return the first line of the comment at the top of a config file, or "" if there is no comment."""
    return head_comment(file).partition("\n")[0]


@dataclass
class _Setting:
    """A setting as a row of a table: its key, with its default and description."""

    key: str
    default: str
    meaning: str
    """The description, in one or more paragraphs, after the kinds of the section that have the setting, if not all have
    it."""
    values: dict[str, None] = field(default_factory=dict)
    """The possible values, or the limits of a number, as Markdown. A dict, because it keeps their order without
    duplicates."""
    kinds: list[str] = field(default_factory=list)
    """The kinds of the section that have the setting. "" if it is of one kind only."""


def _by_section(schema: type[Section]) -> dict[str, list[_Setting]]:
    """Return the settings by top-level section, required settings first. Settings outside of sections are under "".

    If several kinds of a section have a setting with the same description, it is one row.
    """
    tables: dict[str, dict[tuple[str, str], _Setting]] = {"": {}}
    for name, top in schema.model_fields.items():
        kinds = sections_in(top.annotation)
        section = (f"{name} ({top.description})" if top.description else name) if kinds else ""
        fields = [(kind, key, info) for kind in kinds for key, info in schema_keys(kind, f"{name}.")]
        for kind, key, info in fields or [(schema, name, top)]:
            default = "null" if issubclass(kind, DecodingChoice) else "…" if info.is_required() else None
            meaning = info.description or inspect.getdoc(kind) or ""
            setting = _Setting(key, default or format_value(info.default), meaning)
            setting = tables.setdefault(section, {}).setdefault((key, meaning), setting)
            setting.kinds.append(kind_of(kind)[1])
            setting.values |= dict.fromkeys([*(f"`{choice}`" for choice in _choices(info.annotation)), *_limits(info)])
        for setting in tables[section].values():
            if any(setting.kinds) and len(setting.kinds) < len(kinds):
                setting.meaning = f"({', '.join(setting.kinds)}) {setting.meaning}"
    return {
        name: sorted(settings.values(), key=lambda setting: setting.default != "…") for name, settings in tables.items()
    }


def _choices(annotation: object) -> list[str]:
    """Return the possible values of a type as typed, if it is a bool or a choice. Return [] for other types."""
    if annotation is bool:
        return ["true", "false"]
    if get_origin(annotation) is Literal:
        return [format_value(value) for value in get_args(annotation)]
    return [value for argument in get_args(annotation) for value in _choices(argument)]


def _limits(part: object) -> Iterator[str]:
    """Yield the limits of a number, such as "≥ 1". Limits far beyond any use are left out.

    Args:
        part: The field of a setting, its type, or a part of its type.
    """
    parts = [part.annotation] if isinstance(part, FieldInfo) else get_args(part)
    for inner in (*parts, *getattr(part, "metadata", ()), *getattr(part, "__metadata__", ())):
        yield from _limits(inner)
    for name, sign in {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}.items():
        limit = getattr(part, name, None)
        if isinstance(limit, int | float) and (limit == 0 or 1e-6 < abs(limit) <= 1e6):
            yield f"{sign} {limit:,}"
