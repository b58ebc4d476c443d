"""Texts about all settings, generated from the schema: ``--help`` and ``docs/settings.md``."""

import inspect
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

from mt.cli.commands import COMMANDS, Command
from mt.cli.config_files import Files
from mt.cli.error_messages import kind_of, schema_keys, sections_in
from mt.config import DecodingChoice
from mt.core.errors import InputError, did_you_mean, format_value
from mt.core.installation import CONF, as_typed_here

WIDTH = 100
"""Maximum number of characters in a line of help."""
INDENT = 32
"""Number of characters before a description in a line of help."""
GENERAL = "general"
"""The name of the section for settings outside of sections."""
FLAGS = """
Write settings as KEY=VALUE; later ones win. Write lists as 'KEY=[a,b]', no value as null, and names
with a comma or a bracket in quotes of their own: 'KEY="a,b"'.

Flags:
  --help SECTION                the keys and options of a section
  --help all                    every key and option
  --cfg                         print the resolved settings and end
  --config-dir DIR              add config files of your own: DIR/experiment/mine.yaml
  --version                     print the version and end"""


def command_list() -> str:
    """Return the text of ``python -m mt``: a line for each command, with its summary."""
    summaries = {name: _title(CONF / f"{name}.yaml") for name in COMMANDS}
    summaries["settings"] = "Print every setting of every command (docs/settings.md)."
    lines = [f"  python -m mt {name:<11} {summary}" for name, summary in summaries.items()]
    return as_typed_here("\n".join(["Usage: python -m mt COMMAND [--help] [KEY=VALUE …]", "", *lines]) + "\n")


def help_text(command: Command, config_dir: Path | None = None, topic: str = "") -> str:
    """Return the text of ``--help`` for a command.

    Args:
        command: The command.
        config_dir: A folder with the user's own config files.
        topic: The name of a section or config group, whose settings and options are listed; "all": everything; "": an
            overview that fits on a screen, with three lines of examples and one line for each section.

    Raises:
        InputError: There is no such section or group.
    """
    sections = _sections(command, Files(command.name, config_dir))
    head = head_comment(CONF / f"{command.name}.yaml")
    lines = [f"Usage: {command.typed} [KEY=VALUE …]", "", head]
    if topic in sections:
        lines = sections[topic].lines()
    elif topic == "all":
        lines += [line for name, section in sections.items() for line in ("", f"{name}:", *section.lines())]
    elif topic:
        hint = did_you_mean(topic, list(sections))
        raise InputError(f"--help {topic}: there is no such section{hint}; there are {', '.join(sections)}")
    else:
        title, *others = head.splitlines()
        examples = [line for line in others if line.startswith("  ")][:3]
        names = [(f"  {name}", section.description) for name, section in sections.items() if name != GENERAL]
        lines[2:] = [title, "", *examples, "", "Settings, with their defaults:"]
        lines += map(_shortened, sections[GENERAL].entries)
        lines += ["", "Sections (--help SECTION lists the settings of one):", *map(_shortened, names)]
    return as_typed_here("\n".join([*lines, FLAGS]) + "\n")


def settings_page() -> str:
    """Return the content of ``docs/settings.md``: contents, the general settings of each command, and all sections.
    Commands whose sections are equal share one."""
    parts: dict[str, str] = {}
    owners: dict[tuple[str, str], list[str]] = {}
    for command in COMMANDS.values():
        for name, section in _sections(command, Files(command.name)).items():
            text = "\n".join(["", "```text", *section.lines(), "```"])
            if name == GENERAL:
                parts[f"`{command.typed}`"] = f"\n{_title(CONF / f'{command.name}.yaml')}\n{text}"
            else:
                owners.setdefault((name, text.replace("\n* ", "\n  ")), []).append(command.name)
    parts |= {f"{name} ({', '.join(commands)})": text for (name, text), commands in owners.items()}
    contents = []
    for heading in parts:
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")  # as GitHub makes it
        contents.append(f"- [{heading}](#{anchor})")
    return "\n".join([PAGE_HEAD, *contents, *(f"\n## {heading}\n{text}" for heading, text in parts.items())]) + "\n"


PAGE_HEAD = """# Settings

<!-- Made from the schema in mt/config by `python -m mt settings > docs/settings.md`. -->

This page lists every setting of every command, with its default and the values that it accepts. Write settings as
`key=value`; a key with … has no default. Some sections also have options, such as `model=transformer_tiny`. An
option sets several keys: see its file in `conf/`. `python train.py --help model` prints one section, and marks the
default option.
"""


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


class _Section(NamedTuple):
    """A section of settings with its options, or a config group without settings, such as ``experiment``."""

    description: str
    entries: list[tuple[str, str]]
    """Settings (``  seed=1``) and options (``* model=auto``, with an asterisk for the default), with descriptions."""

    def lines(self) -> list[str]:
        """Return the entries as lines, with descriptions beside the settings and options."""
        lines = []
        for start, text in self.entries:
            indent = " " * INDENT
            wrapped = textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent) or [""]
            if len(start) < INDENT:
                wrapped[0] = f"{start:<{INDENT}}{wrapped[0].lstrip()}"
            else:
                lines.append(start)
            lines += wrapped
        return lines


def _shortened(entry: tuple[str, str]) -> str:
    """Return an entry of a section as one line, with the beginning of its description."""
    start, text = entry
    return f"{start:<{INDENT}}" + textwrap.shorten(text, WIDTH - INDENT, placeholder=" …")


def _sections(command: Command, files: Files) -> dict[str, _Section]:
    """Return the sections and config groups of a command by name. Settings outside of sections are under GENERAL.

    Settings without a default come first. If several kinds of a section have a setting with the same description, it is
    one entry.
    """
    sections = {GENERAL: _Section("", [])}
    for group, default in files.group_defaults().items():
        entries = [
            (f"{'*' if option == default else ' '} {group}={option}", _title(file))
            for option, file in files.options(group).items()
        ]
        sections[group] = _Section("Presets of several sections.", entries)
    for name, top in command.schema.model_fields.items():
        section_kinds = sections_in(top.annotation)
        kinds_of_entry: dict[tuple[str, str], list[str]] = {}
        fields = [(kind, key, info) for kind in section_kinds for key, info in schema_keys(kind, f"{name}.")]
        for kind, key, info in fields or [(command.schema, name, top)]:
            default = "null" if issubclass(kind, DecodingChoice) else format_value(info.default)
            default = "…" if info.is_required() else default
            meaning = info.description or inspect.getdoc(kind) or ""
            kinds_of_entry.setdefault((f"  {key}={default}", meaning), []).append(kind_of(kind)[1])
        entries = [
            (start, f"({', '.join(kinds)}) {meaning}" if len(kinds) < len(section_kinds) else meaning)
            for (start, meaning), kinds in kinds_of_entry.items()
        ]
        if section_kinds:
            options = sections[name].entries if name in sections else []
            sections[name] = _Section(top.description or "", options)
        section = sections[name if section_kinds else GENERAL]
        section.entries.extend(sorted(entries, key=lambda entry: not entry[0].endswith("=…")))
    return sections
