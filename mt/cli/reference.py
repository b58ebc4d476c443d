"""Texts about all settings, generated from the schema: ``--help`` and ``docs/settings.md``."""

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from mt.cli.commands import COMMANDS, Command
from mt.cli.config_files import Files
from mt.cli.error_messages import kind_of, schema_keys, sections_in
from mt.config import DecodingChoice
from mt.core.errors import InputError, brief, did_you_mean, format_value
from mt.core.installation import CONF, as_typed_here

WIDTH = 100
"""Maximum number of characters in a line of help."""
INDENT = 32
"""Number of characters before a description in a line of help."""
SCREEN = 50
"""Maximum number of lines of ``--help`` without a section."""
GENERAL = "general"
"""The name of the section for settings outside of sections."""
FLAGS = """
Write settings as KEY=VALUE; later ones win. Write lists as 'KEY=[a,b]', no value as null, and names
with a comma or a bracket in quotes of their own: 'KEY="a,b"'.

Flags:
  --help SECTION                the keys and options of a section, such as --help data
  --help all                    every key and option
  --cfg                         print the resolved settings and end
  --config-dir DIR              add config files of your own: DIR/experiment/mine.yaml
  --version                     print the version and end"""


def command_list() -> str:
    """Return the text of ``python -m mt``: a line for each command, with its summary."""
    summaries = {name: _title(CONF / f"{name}.yaml") for name in COMMANDS}
    summaries["settings"] = "Print every setting of every command (docs/settings.md)."
    lines = [f"  python -m mt {name:<11} {summary}" for name, summary in summaries.items()]
    usage = "Usage: python -m mt COMMAND [KEY=VALUE …]"
    return as_typed_here("\n".join([usage, "", *lines, "", "COMMAND --help lists the settings of a command."]) + "\n")


def help_text(command: Command, config_dir: Path | None = None, topic: str = "") -> str:
    """Return the text of ``--help`` for a command.

    Args:
        command: The command.
        config_dir: A folder with the user's own config files.
        topic: The name of a section or config group, whose settings and options are listed; a key, or the part of it
            before a dot; "all": everything; "": an overview that fits on a screen.

    Raises:
        InputError: There is no such section, group or key.
    """
    sections = _sections(command, Files(command.name, config_dir))
    if topic in sections:
        sections = {topic: sections[topic]}
    elif topic not in ("", "all"):
        settings = [setting for section in sections.values() for setting in section.settings]
        if not (chosen := [setting for setting in settings if f"{setting.key}.".startswith(f"{topic}.")]):
            hint = did_you_mean(topic, [*sections, *(setting.key for setting in settings)])
            raise InputError(f"--help {brief(topic)}: there is no such section{hint}; there are {', '.join(sections)}")
        sections = {topic: _Section(settings=chosen)}
    lines = [
        line
        for name, section in sections.items()
        for line in ("", f"{name}: {section.description}", *section.help_lines())
    ]
    if topic in ("", "all"):
        lines = [
            f"Usage: {command.typed} [KEY=VALUE …]",
            "",
            head_comment(CONF / f"{command.name}.yaml"),
            *lines,
            FLAGS,
        ]
        if not topic and "\n".join(lines).count("\n") >= SCREEN:
            lines = _overview(command, sections)
    return as_typed_here("\n".join(line.rstrip() for line in lines).lstrip("\n") + "\n")


def _overview(command: Command, sections: Mapping[str, "_Section"]) -> list[str]:
    """Return the lines of ``--help`` without a section: two examples, and a line for each section and general key."""
    head = head_comment(CONF / f"{command.name}.yaml").splitlines()
    examples = [line for line in head if line.startswith("  ")][:3]
    settings = {f"{setting.key}={setting.default}": setting.meaning for setting in sections[GENERAL].settings}
    names = {name: section.description for name, section in sections.items() if name != GENERAL}
    lines = [f"Usage: {command.typed} [KEY=VALUE …]", "", head[0], "", *examples, "", "Settings, with their defaults:"]
    for title, texts in (("", settings), ("Sections (--help SECTION lists the keys of one):", names)):
        lines += ["", title] if title and texts else []
        for start, text in texts.items():
            lines.append(
                f"  {start:<{INDENT - 2}}" + textwrap.shorten(text.partition(". ")[0], WIDTH - INDENT, placeholder=" …")
            )
    return [*lines, FLAGS]


def settings_page() -> str:
    """Return the content of ``docs/settings.md``: contents, the general settings of each command, and all sections.
    Commands whose sections are equal share one."""
    contents: list[str] = []
    commands: list[str] = []
    owners: dict[tuple[str, str], list[str]] = {}
    for command in COMMANDS.values():
        files = Files(command.name)
        title = _title(CONF / f"{command.name}.yaml")
        contents.append(f"- [`{command.typed}`](#{_anchor(command.typed)}): {title}")
        commands += ["", f"## `{command.typed}`", "", title]
        defaults = [f"`{group}={option}`" for group, option in files.group_defaults().items() if option]
        commands += ["", f"Default options: {', '.join(defaults)}."] if defaults else []
        for name, section in _sections(command, files).items():
            if name == GENERAL:
                commands += ["", section.page_text()]
            else:
                owners.setdefault((name, section.page_text()), []).append(command.name)
    headings = {key: f"{key[0]} ({', '.join(names)})" for key, names in owners.items()}
    contents += [f"- [{heading}](#{_anchor(heading)})" for heading in headings.values()]
    sections = [f"\n## {headings[key]}\n\n{key[1]}" for key in owners]
    return "\n".join([PAGE_HEAD, *contents, *commands, *sections]) + "\n"


PAGE_HEAD = """# Settings

<!-- Made from the schema in mt/config by `python -m mt settings > docs/settings.md`. -->

This page lists every setting of every command, with its default and the values that it accepts. Write settings as
`key=value`. Some sections have options, such as `model=transformer_tiny`: an option sets several keys, which stand in
its file in `conf/`. `python train.py --help data` prints one section.
"""


def _anchor(heading: str) -> str:
    """Return the anchor of a heading on GitHub."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


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
    """A setting: its key, with its default and description."""

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


@dataclass
class _Section:
    """A section of settings with its options, or a config group without settings, such as ``experiment``."""

    description: str = ""
    options: dict[str, str] = field(default_factory=dict)
    """The options of the config group, such as ``model=transformer_tiny``, with their descriptions."""
    default: str | None = None
    """The option by default."""
    settings: list[_Setting] = field(default_factory=list)

    def help_lines(self) -> Iterator[str]:
        """Yield the lines of ``--help`` for the options and settings. The default option has an asterisk."""
        indent = " " * INDENT
        entries = [(f"{'*' if key == self.default else ' '} {key}", text) for key, text in self.options.items()]
        for setting in self.settings:
            entries.append((f"  {setting.key}={setting.default}", setting.meaning.partition("\n\n")[0]))
        for start, text in entries:
            lines = textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)
            if lines and len(start) < INDENT:
                lines[0] = f"{start:<{INDENT}}{lines[0].lstrip()}"
            else:
                yield start
            yield from lines

    def page_text(self) -> str:
        """Return the options and settings as lists in Markdown."""
        options = [f"- `{option}`: {meaning}" for option, meaning in self.options.items()]
        settings = []
        for setting in self.settings:
            default = "no default" if setting.default == "…" else f"default `{setting.default}`"
            values = ", ".join(setting.values)
            meaning = " ".join(setting.meaning.split())
            settings.append(f"- `{setting.key}` ({default}{'; ' if values else ''}{values}): {meaning}")
        return "\n\n".join(filter(None, (self.description, "\n".join(options), "\n".join(settings))))


def _sections(command: Command, files: Files) -> dict[str, _Section]:
    """Return the sections and config groups of a command by name. Settings outside of sections are under GENERAL.

    Required settings come first. If several kinds of a section have a setting with the same description, it is listed
    once.
    """
    sections = {GENERAL: _Section()}
    for name, top in command.schema.model_fields.items():
        kinds = sections_in(top.annotation)
        section = sections.setdefault(name, _Section(top.description or "")) if kinds else sections[GENERAL]
        fields = [(kind, key, info) for kind in kinds for key, info in schema_keys(kind, f"{name}.")]
        settings: dict[tuple[str, str], _Setting] = {}
        for kind, key, info in fields or [(command.schema, name, top)]:
            default = "null" if issubclass(kind, DecodingChoice) else "…" if info.is_required() else None
            meaning = info.description or inspect.getdoc(kind) or ""
            setting = settings.setdefault((key, meaning), _Setting(key, default or format_value(info.default), meaning))
            setting.kinds.append(kind_of(kind)[1])
            setting.values |= dict.fromkeys([*(f"`{choice}`" for choice in _choices(info.annotation)), *_limits(info)])
        for setting in settings.values():
            if any(setting.kinds) and len(setting.kinds) < len(kinds):
                setting.meaning = f"({', '.join(setting.kinds)}) {setting.meaning}"
        section.settings = sorted([*section.settings, *settings.values()], key=lambda setting: setting.default != "…")
    for group, default in files.group_defaults().items():
        options = {f"{group}={option}": _title(file) for option, file in files.options(group).items()}
        section = sections.setdefault(group, _Section("Preset of several sections."))
        section.options, section.default = options, default and f"{group}={default}"
    return sections


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
