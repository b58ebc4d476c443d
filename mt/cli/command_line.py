"""A command line: its flags, its settings, and the jobs that it asks for."""

import contextlib
import io
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from hydra.core.plugins import Plugins
from hydra.plugins.completion_plugin import CompletionPlugin
from omegaconf import OmegaConf

from mt.cli.commands import COMMANDS, Command, load_function
from mt.cli.composition import Job, compose_jobs
from mt.cli.reference import command_list, completions, help_text, settings_page
from mt.config import Section
from mt.core.errors import InputError
from mt.core.wording import brief, nearest

log = logging.getLogger(__name__)


def run(words: Sequence[str]) -> None:
    """Run a command line, whose first word names the command; without one, list the commands.

    Raises:
        InputError: There is no such command, or its settings are wrong.
    """
    name, *arguments = words or ["--help"]
    if name in COMMANDS:
        run_command(COMMANDS[name], arguments)
    elif name in ("--help", "-h"):
        print(command_list(), end="", flush=True)
    elif name == "settings":
        print(settings_page(), end="", flush=True)
    else:
        suggestion = nearest(name, list(COMMANDS))
        hint = f"; nearest: {suggestion}" if suggestion else ""
        raise InputError(f"{brief(name)}: there is no such command{hint}; python -m mt lists them")


def run_command(command: Command, arguments: Sequence[str], work: Callable[[Any], None] | None = None) -> None:
    """Run every job that the arguments of a command ask for, one after another.

    Args:
        command: The command.
        arguments: Settings and flags.
        work: What to do with a config, instead of what the command does.
    """
    flags, words = _split_flags(arguments)
    folder = flags.get("config_dir")
    if folder is not None and not os.path.isdir(folder):
        raise InputError(f"--config-dir: no such folder: {folder}" if folder else "--config-dir needs a folder")
    if "explain" in flags and command.explain is None:
        raise InputError("--explain is for training: there is nothing to choose here")
    config_dir = Path(folder) if folder else None
    if "completion" in flags:
        text = _completion(command, flags["completion"], config_dir)
    elif "help" in flags:
        text = help_text(command, config_dir)
    else:
        jobs = compose_jobs(command.name, command.schema, words, "multirun" in flags, config_dir)
        text = "---\n".join(OmegaConf.to_yaml(OmegaConf.create(job.config.model_dump(mode="json"))) for job in jobs)
    if flags.keys() & {"completion", "help", "cfg"}:
        print(text, end="", flush=True)
        return
    _refuse_shared_results(command, jobs)
    for number, job in enumerate(jobs, start=1):
        if len(jobs) > 1:
            log.info("job %d of %d: %s", number, len(jobs), " ".join(job.swept))
        function = work or load_function(("explain" in flags and command.explain) or command.work)
        function(job.resolved if command.takes_origins and not work else job.config)


SWITCHES = {"--help": "help", "-h": "help", "--multirun": "multirun", "-m": "multirun", "--explain": "explain"}
SWITCHES |= dict.fromkeys(("--cfg", "-c", "--cfg=job"), "cfg")
FLAGS_WITH_VALUE = {"--config-dir": "config_dir", "-cd": "config_dir"}
FLAGS_WITH_VALUE |= {"--shell-completion": "completion", "-sc": "completion"}
"""The flags of Hydra, as far as they make sense here, by the name under which they are kept."""


def _split_flags(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the flags of a command line with their values, and its other words."""
    flags: dict[str, str] = {}
    words = []
    remaining = iter(arguments)
    for word in remaining:
        name, is_joined, value = word.partition("=")
        if word in SWITCHES:
            flags[SWITCHES[word]] = ""
        elif name in FLAGS_WITH_VALUE:
            flags[FLAGS_WITH_VALUE[name]] = value if is_joined else next(remaining, "")
        elif word != "job" or "cfg" not in flags:  # Hydra's --cfg job; no other config can be shown
            words.append(word)
    return flags, words


def _completion(command: Command, request: str, config_dir: Path | None) -> str:
    """Return the text that ``--shell-completion`` prints, for a shell to complete our command lines.

    ``install=bash`` and ``uninstall=bash`` give Hydra's scripts, and ``query=bash``, which these scripts call, gives
    the completions of a command line. Other shells likewise.
    """
    action, _, shell = request.partition("=")
    discovered = cast(list[type[CompletionPlugin]], Plugins.instance().discover(CompletionPlugin))
    plugins = {plugin.provides(): plugin for plugin in discovered}
    if action not in ("install", "uninstall", "query") or shell not in plugins:
        known = ", ".join(sorted(plugins))
        raise InputError(f"--shell-completion takes install=SHELL or uninstall=SHELL, where SHELL is one of {known}")
    if action == "query":
        line = os.environ.get("COMP_LINE", "")
        words = CompletionPlugin.strip_python_or_app_name(line).split(" ")
        return " ".join(completions(command, words, config_dir)) + "\n"
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        plugin = plugins[shell](config_loader=None)  # type: ignore[arg-type]  # only a query would need it
        plugin.install() if action == "install" else plugin.uninstall()
    return text.getvalue()


def _refuse_shared_results(command: Command, jobs: Sequence[Job[Section]]) -> None:
    """Raise InputError if two jobs would write to the same path or share standard input or output."""
    if len(jobs) < 2:
        return
    if command.output is None:
        raise InputError("a server does not end by itself: give one job, with run=[…] for several models")
    key = command.sweep_example.partition("=")[0]
    outputs: dict[str, Job[Section]] = {}
    for job in jobs:
        output = getattr(job.config, command.output)
        if output is None:
            raise InputError(f"several jobs need an {key} each, such as '{command.sweep_example}'")
        if command.input and getattr(job.config, command.input) is None:
            raise InputError(f"several jobs cannot share standard input: give {command.input}=FILE")
        other = outputs.setdefault(path := os.path.abspath(output), job)
        if other is not job:
            both = f"the jobs {' '.join(other.swept)} and {' '.join(job.swept)} would both write to {path}"
            raise InputError(
                f"{both}: make {key} depend on the settings that differ, such as '{command.sweep_example}'"
            )
