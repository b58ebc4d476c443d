"""The text of ``--help``, made of the comments in ``conf/``: what stands there is what one can set."""

import re
from collections.abc import Iterator
from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf

from mt.composition import group_defaults, group_options
from mt.installation import CONF, as_typed_here
from mt.mistakes import shown

KEY_LINE = re.compile(r"^(?P<indent> *)(?P<key>\w+):(?P<value>.*?)(?: +# (?P<comment>.*))?$")


def help_text(config_name: str) -> str:
    """What the command does, its usual uses, its groups with their options, every key with its default."""
    defaults = group_defaults(config_name)
    lines = [_head(CONF / f"{config_name}.yaml")]
    if defaults:
        lines += ["", "Choices (GROUP=OPTION; * is taken unless told otherwise):"]
    for group, default in defaults.items():
        for number, option in enumerate(group_options(group)):
            name = f"{group}=" if number == 0 else ""
            star = "*" if option == default else " "
            lines.append(f"  {name:<11} {star} {option:<18} {_head(CONF / group / f'{option}.yaml').splitlines()[0]}")
    lines += ["", "Keys (KEY=VALUE; a key without a default shows …):"]
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        composed = hydra.compose(config_name)
    own = key_comments(CONF / f"{config_name}.yaml")
    lines += [_entry(key, composed, comment) for key, comment in own.items()]
    for group, default in defaults.items():
        if default is not None:
            lines += ["", *_group_keys(group, default, composed)]
    return as_typed_here("\n".join(line.rstrip() for line in lines) + "\n")


def key_comments(file: Path) -> dict[str, str]:
    """Every key of a config file that has a value (``optimizer.kind``), with the comment on its line."""
    comments: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        found = KEY_LINE.match(line)
        if not found or found["key"] == "defaults":
            continue
        indent = len(found["indent"])
        path = [(depth, name) for depth, name in path if depth < indent] + [(indent, found["key"])]
        if found["value"].strip():
            comments[".".join(name for _, name in path)] = found["comment"] or ""
    return comments


def _group_keys(group: str, default: str, composed: DictConfig) -> Iterator[str]:
    """The keys of a group's default option, then of each option of another kind the keys that only it has."""
    default_file = _whole_file(CONF / group / f"{default}.yaml")
    usual = key_comments(default_file)
    yield from (_entry(f"{group}.{key}", composed, comment) for key, comment in usual.items())
    for file in (CONF / group / f"{option}.yaml" for option in group_options(group)):
        if _whole_file(file) == file != default_file:
            values = OmegaConf.create({group: OmegaConf.load(file)})
            for key, comment in key_comments(file).items():
                if key not in usual:
                    yield _entry(f"{group}.{key}", values, f"({file.stem}) {comment}")


def _whole_file(file: Path) -> Path:
    """The file itself, or the one it builds on: that one has every key, with what it means."""
    parent = re.search(r"^defaults:\n  - (\w+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return _whole_file(file.with_stem(parent.group(1))) if parent else file


def _entry(key: str, values: DictConfig, comment: str) -> str:
    parent, _, name = key.rpartition(".")
    node = OmegaConf.select(values, parent) if parent else values
    unset = OmegaConf.is_missing(node, name) or OmegaConf.is_interpolation(node, name)
    value = "…" if unset else shown(node[name])
    return f"  {f'{key}={value}':<44} {comment}"


def _head(file: Path) -> str:
    """The comment at the top of a config file, without the lines that are meant for programs."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith(("# @package", "# Example: ")):
            lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines)
