"""Every setting of a command, from the schema: for ``--help``, for ``docs/settings.md``, and for a shell's
completion."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from mt.cli.commands import COMMANDS, Command
from mt.cli.config_files import Files
from mt.cli.keys import kind_key, kind_name, schema_keys, sections_in
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
    lines = [f"  python -m mt {command.name:<11} {command.summary}" for command in COMMANDS.values()]
    lines += [f"  python -m mt {'settings':<11} Print every setting of every command (docs/settings.md)."]
    return "\n".join(["Usage: python -m mt COMMAND [--help] [key=value …]", "", *lines]) + "\n"


def help_text(command: Command, config_dir: Path | None = None) -> str:
    """Return the help of a command: its usual uses, its groups with their options, and every key with its default."""
    files = Files(command.name, config_dir)
    lines = [command.summary, head_comment(CONF / f"{command.name}.yaml")]
    if defaults := files.group_defaults():
        lines += ["", "Choices (GROUP=OPTION; * is taken unless told otherwise):"]
    for group, default in defaults.items():
        for number, (option, file) in enumerate(files.options(group).items()):
            name = f"{group}=" if number == 0 else ""
            star = "*" if option == default else " "
            lines.append(f"  {name:<11} {star} {option:<22} {_title(file)}")
    lines += ["", "Keys (KEY=VALUE, here with their defaults before any choice; a key without a default shows …):"]
    schema = command.schema
    for section, entries in _by_section(schema).items():
        lines += ["", f"{_heading(section, schema)}:"] if section else []
        for entry in entries:
            of_kind = f"({', '.join(entry.kinds)}) " if entry.kinds else ""
            text = of_kind + entry.meaning.partition("\n\n")[0]
            first, *more = textwrap.wrap(text, WIDTH - INDENT) or [""]
            start = f"  {entry.key}={entry.default}"
            lines += [f"{start:<{INDENT}}{first}"] if len(start) < INDENT else [start, " " * INDENT + first]
            lines += [" " * INDENT + line for line in more]
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
        schema, files = command.schema, Files(command.name)
        lines += ["", f"## `{command.typed}`", "", command.summary]
        for group, default in files.group_defaults().items():
            lines += ["", f"Options of `{group}=`" + (f" (`{default}` unless given):" if default else ":"), ""]
            lines += [f"- `{name}`: {_title(file)}" for name, file in files.options(group).items()]
        for section, entries in _by_section(schema).items():
            lines += ["", f"### {_heading(section, schema)}"] if section else []
            kinds = sections_in(schema.model_fields[section].annotation) if section else []
            if len(kinds) > 1:
                lines += ["", *(f"- {kind_key(kind)}=`{kind_name(kind)}`: {_first_words(kind)}" for kind in kinds)]
            lines += ["", "| key | default | values | meaning |", "|---|---|---|---|"]
            for entry in entries:
                of_kind = f" ({', '.join(entry.kinds)})" if entry.kinds else ""
                meaning = " ".join(entry.meaning.split()).replace("|", "\\|")
                lines.append(f"| `{entry.key}`{of_kind} | `{entry.default}` | {entry.values} | {meaning} |")
    return "\n".join(lines) + "\n"


def completions(command: Command, words: list[str], config_dir: Path | None = None) -> list[str]:
    """Return the completions of the last of ``words``: groups with their options, and keys with their values."""
    word = words[-1] if words else ""
    files = Files(command.name, config_dir)
    candidates = [f"{group}={option}" for group in files.group_defaults() for option in files.options(group)]
    for key, field in schema_keys(command.schema):
        candidates += [f"{key}={value}" for value in _choices(field.annotation)] or [f"{key}="]
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


@dataclass(frozen=True)
class _Entry:
    """The line of one key."""

    key: str
    values: str
    """The choices of the key, or the limits of its number, in a cell of a table."""
    kinds: list[str]
    """The kinds of its section that have it; empty if all do."""
    default: str
    meaning: str
    """Its description, in one or more paragraphs."""


def _by_section(schema: type[Section]) -> dict[str, list[_Entry]]:
    """Return the keys of each top-level section; those outside of sections under ""."""
    entries: dict[str, list[_Entry]] = {"": []}
    for name, field in schema.model_fields.items():
        kinds = sections_in(field.annotation)
        if not kinds:
            entries[""].append(_Entry(name, _values(field), [], _default(field), field.description or ""))
            continue
        fields: dict[str, dict[str, FieldInfo]] = {}
        for kind in kinds:
            for key, inner in schema_keys(kind, f"{name}."):
                fields.setdefault(key, {})[kind_name(kind)] = inner
        entries[name] = []
        for key, by_kind in fields.items():
            first = next(iter(by_kind.values()))
            default, values, meaning = _default(first), _values(first), _meaning(by_kind)
            if len(kinds) > 1 and key == f"{name}.{kind_key(kinds[0])}":
                names = [kind_name(kind) for kind in kinds]
                values = ", ".join(f"`{kind}`" for kind in names)
                meaning = f"One of {', '.join(names)}. {name}=… sets it."
            elif issubclass(kinds[0], DecodingChoice):
                default = "null"  # the model's own
            entries[name].append(
                _Entry(key, values, [] if len(by_kind) == len(kinds) else list(by_kind), default, meaning)
            )
    return entries


def _meaning(by_kind: dict[str, FieldInfo]) -> str:
    """Return the description of a key; where the kinds of its section describe it differently, each of them."""
    kinds: dict[str, list[str]] = {}
    for kind, field in by_kind.items():
        kinds.setdefault(field.description or "", []).append(kind)
    if len(kinds) == 1:
        return next(iter(kinds))
    return " ".join(f"{', '.join(names)}: {description}" for description, names in kinds.items())


def _heading(section: str, schema: type[Section]) -> str:
    is_choice = issubclass(sections_in(schema.model_fields[section].annotation)[0], DecodingChoice)
    return f"{section} (null: what the model's own model.yaml says)" if is_choice else section


def _first_words(section: type[Section]) -> str:
    """Return the first paragraph of a section's docstring."""
    return " ".join((section.__doc__ or "").partition("\n\n")[0].split())


def _default(field: FieldInfo) -> str:
    return "…" if field.is_required() else format_value(field.default)


def _choices(annotation: object) -> list[str]:
    """Return the values of a key that has few."""
    if annotation is bool:
        return ["true", "false"]
    if get_origin(annotation) is Literal:
        return [format_value(value) for value in get_args(annotation)]
    return [value for argument in get_args(annotation) for value in _choices(argument)]


def _values(field: FieldInfo) -> str:
    """Return the choices of a key and the limits of its number, in a cell of a table."""
    choices = [f"`{choice}`" for choice in _choices(field.annotation)]
    return ", ".join(dict.fromkeys([*choices, *_limits([field.annotation, *field.metadata])]))


def _limits(parts: list[object]) -> Iterator[str]:
    """Yield the limits that a user may meet; those far beyond any use are left out."""
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    for part in parts:
        if isinstance(part, FieldInfo):
            yield from _limits(list(part.metadata))
        elif get_origin(part) is not None:
            yield from _limits([*get_args(part), *getattr(part, "__metadata__", ())])
        for name, sign in signs.items():
            limit = getattr(part, name, None)
            if isinstance(limit, int | float) and (limit == 0 or 1e-6 < abs(limit) <= 1e6):
                yield f"{sign} {limit:,}"
