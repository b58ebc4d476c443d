"""Every setting of a command, from the schema: for ``--help``, for ``docs/settings.md``, and for a shell's
completion."""

import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from mt.cli.commands import COMMANDS, Command
from mt.cli.config_files import Files
from mt.cli.keys import kind_of, schema_keys, sections_in
from mt.config.decoding import DecodingChoice
from mt.config.fields import Section
from mt.core.installation import CONF, as_typed_here
from mt.core.wording import format_value

WIDTH = 120
"""Columns of a line of help."""
INDENT = 40
"""Columns before a description."""


def command_list() -> str:
    """Return the commands, a line each."""
    summaries = {name: _title(CONF / f"{name}.yaml") for name in COMMANDS}
    summaries["settings"] = "Print every setting of every command (docs/settings.md)."
    lines = [f"  python -m mt {name:<11} {summary}" for name, summary in summaries.items()]
    return "\n".join(["Usage: python -m mt COMMAND [--help] [key=value …]", "", *lines]) + "\n"


def help_text(command: Command, config_dir: Path | None = None) -> str:
    """Return the help of a command: its usual uses, its groups with their options, and every key with its default."""
    files = Files(command.name, config_dir)
    lines = [head_comment(CONF / f"{command.name}.yaml")]
    if defaults := files.group_defaults():
        lines += ["", "Choices (GROUP=OPTION; * is taken unless told otherwise):"]
    for group, default in defaults.items():
        names = [f"{group}=", *[""] * len(files.options(group))]
        for name, (option, file) in zip(names, files.options(group).items(), strict=False):
            lines.append(f"  {name:<11} {'*' if option == default else ' '} {option:<22} {_title(file)}")
    lines += ["", "Keys (KEY=VALUE, here with their defaults before any choice; a key without a default shows …):"]
    for section, settings in _by_section(command.schema).items():
        lines += ["", f"{section}:"] if section else []
        for setting in settings:
            start, text = f"  {setting.key}={setting.default}", setting.label + setting.meaning.partition("\n\n")[0]
            indent = " " * INDENT
            first, *more = textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent) or [indent]
            lines += [f"{start:<{INDENT}}{first.lstrip()}"] if len(start) < INDENT else [start, first]
            lines += more
    return as_typed_here("\n".join(line.rstrip() for line in lines) + "\n")


def settings_page() -> str:
    """Return ``docs/settings.md``."""
    lines = [
        "# Settings",
        "",
        "<!-- Made from the schema in mt/config by `python -m mt settings > docs/settings.md`. -->",
        "",
        "Every setting of every command, with its default and the values that it takes. Settings are typed as",
        "`key=value`. A group such as `model=transformer_tiny` sets several keys at once; the files in `conf/` say",
        "which.",
    ]
    for command in COMMANDS.values():
        files = Files(command.name)
        lines += ["", f"## `{command.typed}`", "", _title(CONF / f"{command.name}.yaml")]
        for group, default in files.group_defaults().items():
            lines += ["", f"Options of `{group}=`" + (f" (`{default}` unless given):" if default else ":"), ""]
            lines += [f"- `{name}`: {_title(file)}" for name, file in files.options(group).items()]
        for section, settings in _by_section(command.schema).items():
            lines += ["", f"### {section}"] if section else []
            lines += ["", "| key | default | values | meaning |", "|---|---|---|---|"]
            for setting in settings:
                meaning = " ".join((setting.label + setting.meaning).split()).replace("|", "\\|")
                values = ", ".join(setting.values)
                lines.append(f"| `{setting.key}` | `{setting.default}` | {values} | {meaning} |")
    return "\n".join(lines) + "\n"


def completions(command: Command, words: list[str], config_dir: Path | None = None) -> list[str]:
    """Return the completions of the last of ``words``: groups with their options, and keys with their values."""
    word = words[-1] if words else ""
    files = Files(command.name, config_dir)
    candidates = [f"{group}={option}" for group in files.group_defaults() for option in files.options(group)]
    for key, field_info in schema_keys(command.schema):
        candidates += [f"{key}={value}" for value in _choices(field_info.annotation)] or [f"{key}="]
    if "=" not in word:
        candidates = [text.partition("=")[0] + "=" for text in candidates]
    return sorted({text for text in candidates if text.startswith(word)})


def head_comment(file: Path) -> str:
    """Return the comment at the top of a config file, without the lines that are meant for programs."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith(("# @package", "# Example: ")):
            lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines)


def _title(file: Path) -> str:
    """Return the first line of a config file's head comment; "" if it has none, as files of the user's own may."""
    return head_comment(file).partition("\n")[0]


@dataclass
class _Setting:
    """One line of the tables."""

    key: str
    default: str
    meaning: str
    """Its description, in one or more paragraphs."""
    values: dict[str, None] = field(default_factory=dict)
    """Its choices, or the limits of its number."""
    kinds: list[str] = field(default_factory=list)
    """The kinds of its section that have it; empty if all do."""

    @property
    def label(self) -> str:
        return f"({', '.join(self.kinds)}) " if any(self.kinds) else ""


def _by_section(schema: type[Section]) -> dict[str, list[_Setting]]:
    """Return the settings of each top-level section, the needed ones first; those outside of sections under "". The
    kinds of a section share a setting if they describe it alike."""
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
            setting.kinds = setting.kinds if len(setting.kinds) < len(kinds) else []
    return {name: sorted(settings.values(), key=lambda each: each.default != "…") for name, settings in tables.items()}


def _choices(annotation: object) -> list[str]:
    """Return the values of a key that has few."""
    if annotation is bool:
        return ["true", "false"]
    if get_origin(annotation) is Literal:
        return [format_value(value) for value in get_args(annotation)]
    return [value for argument in get_args(annotation) for value in _choices(argument)]


def _limits(part: object) -> Iterator[str]:
    """Yield the limits that a user may meet; those far beyond any use are left out."""
    parts = [part.annotation] if isinstance(part, FieldInfo) else get_args(part)
    for inner in (*parts, *getattr(part, "metadata", ()), *getattr(part, "__metadata__", ())):
        yield from _limits(inner)
    for name, sign in {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}.items():
        limit = getattr(part, name, None)
        if isinstance(limit, int | float) and (limit == 0 or 1e-6 < abs(limit) <= 1e6):
            yield f"{sign} {limit:,}"
