"""What all commands share: they read their command line, compose their configs and end in the same way."""

import contextlib
import io
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from hydra.core.plugins import Plugins
from hydra.plugins.completion_plugin import CompletionPlugin
from omegaconf import OmegaConf

from mt.cli.composition import Job, compose_jobs
from mt.cli.reference import completions, help_text
from mt.config import (
    ArgosExportConfig,
    CleaningConfig,
    CompareConfig,
    ExportConfig,
    HuggingFaceExportConfig,
    RobustnessConfig,
    Section,
    ServingConfig,
    SynthesisConfig,
    TrainConfig,
    TranslateConfig,
)
from mt.core.errors import InputError
from mt.core.process_end import end_with

Config = TypeVar("Config", bound=Section)

log = logging.getLogger(__name__)


def main(
    command: str,
    schema: type[Config],
    work: Callable[[Config], None],
    argv: Sequence[str] | None = None,
    explain: Callable[[Config], None] | None = None,
) -> None:
    """Runs a command on every config that its command line asks for, one after another, and exits.

    Args:
        command: The name of the config file in ``conf/`` that the command starts from.
        schema: The type that its config must have.
        work: What the command does with a config.
        argv: The words after the program's name; by default those of ``sys.argv``.
        explain: What the command does with a config instead if ``--explain`` is given; None if it has nothing to tell.

    Raises:
        SystemExit: With status 0 (done), 2 (the input or config is wrong), 1 (the work could not go on) or 128 + N
            (ended by signal N).
    """
    end_with(lambda: _run(command, schema, work, sys.argv[1:] if argv is None else argv, explain))


@dataclass
class _Flags:
    """The words of a command line that are not settings. They are those of Hydra, as far as they make sense here."""

    help: bool = False
    explain: bool = False
    show_config: bool = False
    multirun: bool = False
    config_dir: Path | None = None
    completion: str | None = None


def _parsed(arguments: Sequence[str]) -> tuple[_Flags, list[str]]:
    """Returns the flags of a command line and its other words. Raises InputError for a flag that lacks its value."""
    flags, words = _Flags(), []
    left = iter(arguments)
    for word in left:
        name, is_joined, joined = word.partition("=")
        if word in ("--help", "-h"):
            flags.help = True
        elif word == "--explain":
            flags.explain = True
        elif word in ("--multirun", "-m"):
            flags.multirun = True
        elif word in ("--cfg", "-c", "--cfg=job"):
            flags.show_config = True
        elif word == "job" and flags.show_config:
            pass  # Hydra's --cfg job; no other config can be shown
        elif name in ("--config-dir", "-cd"):
            folder = joined if is_joined else next(left, "")
            if not os.path.isdir(folder):
                raise InputError(f"{name}: no such folder: {folder}" if folder else f"{name} needs a folder")
            flags.config_dir = Path(folder)
        elif name in ("--shell-completion", "-sc"):
            flags.completion = joined if is_joined and name != "-sc" else next(left, "")
        else:
            words.append(word)
    return flags, words


def _run(
    command: str,
    schema: type[Config],
    work: Callable[[Config], None],
    arguments: Sequence[str],
    explain: Callable[[Config], None] | None = None,
) -> None:
    flags, words = _parsed(arguments)
    if flags.explain and explain is None:
        raise InputError("--explain is for training: there is nothing to choose here")
    if flags.completion is not None:
        print(_completion(command, flags), end="", flush=True)
        return
    if flags.help:
        print(help_text(command, flags.config_dir), end="", flush=True)
        return
    jobs = compose_jobs(command, schema, words, flags.multirun, flags.config_dir)
    if flags.show_config:
        documents = [OmegaConf.to_yaml(OmegaConf.create(job.config.model_dump(mode="json"))) for job in jobs]
        print("---\n".join(documents), end="", flush=True)
        return
    _refuse_shared_results(jobs)
    task = explain if explain and flags.explain else work
    for number, job in enumerate(jobs, start=1):
        if len(jobs) > 1:
            log.info("job %d of %d: %s", number, len(jobs), " ".join(job.swept))
        task(job.config)


def _completion(command: str, flags: _Flags) -> str:
    """Returns the text that ``--shell-completion`` prints, for a shell to complete our command lines.

    ``install=bash`` and ``uninstall=bash`` give Hydra's scripts, and ``query=bash``, which these scripts call, gives
    the completions of a command line. Other shells likewise.
    """
    action, _, shell = (flags.completion or "").partition("=")
    discovered = cast(list[type[CompletionPlugin]], Plugins.instance().discover(CompletionPlugin))
    plugins = {plugin.provides(): plugin for plugin in discovered}
    if action not in ("install", "uninstall", "query") or shell not in plugins:
        known = ", ".join(sorted(plugins))
        raise InputError(f"--shell-completion takes install=SHELL or uninstall=SHELL, where SHELL is one of {known}")
    if action == "query":
        line = os.environ.get("COMP_LINE", "")
        words = CompletionPlugin.strip_python_or_app_name(line).split(" ")
        return " ".join(completions(command, words, flags.config_dir)) + "\n"
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        plugin = plugins[shell](config_loader=None)  # type: ignore[arg-type]  # only a query would need it
        plugin.install() if action == "install" else plugin.uninstall()
    return text.getvalue()


def _refuse_shared_results(jobs: Sequence[Job[Config]]) -> None:
    """Raises InputError if two jobs would write to the same place or share standard input or output."""
    if len(jobs) < 2:
        return
    places: dict[str, Job[Config]] = {}
    for job in jobs:
        match job.config:
            case TrainConfig(folder=folder):
                place, key, hint = os.path.abspath(folder), "name", "'name=run-${seed}'"
            case TranslateConfig(output=None):
                raise InputError("several jobs need an output each, such as 'output=beam${decoding.beam_size}.txt'")
            case TranslateConfig(input=None):
                raise InputError("several jobs cannot share standard input: give input=FILE")
            case TranslateConfig(output=str(output)):
                place, key, hint = os.path.abspath(output), "output", "'output=beam${decoding.beam_size}.txt'"
            case CleaningConfig(output=output):
                place, key, hint = os.path.abspath(output), "output", "'output=cleaned-${data.cleaning}'"
            case ExportConfig(output=output):
                place, key, hint = os.path.abspath(output), "output", "'output=demo-${quantization}'"
            case SynthesisConfig(output=output):
                place, key, hint = os.path.abspath(output), "output", "'output=${method}.jsonl'"
            case HuggingFaceExportConfig(output=output):
                place, key, hint = os.path.abspath(output), "output", "'output=demo-${license}'"
            case ArgosExportConfig(output=output):
                place, key, hint = os.path.abspath(output), "output", "'output=demo-${quantization}.argosmodel'"
            case CompareConfig(output=None):
                raise InputError("several comparisons need an output each: output=…")
            case CompareConfig(output=str(output)):
                place, key, hint = os.path.abspath(output), "output", "'output=comparison-${device}'"
            case RobustnessConfig(output=None):
                raise InputError("several jobs need an output each, such as 'output=robustness-${sentences}'")
            case RobustnessConfig(output=str(output)):
                place, key, hint = os.path.abspath(output), "output", "'output=robustness-${sentences}'"
            case ServingConfig():
                raise InputError("a server does not end by itself: give one job, with run=[…] for several models")
            case config:
                raise TypeError(f"not a config of a command: {config}")
        if place in places:
            raise InputError(
                f"the jobs {' '.join(places[place].swept)} and {' '.join(job.swept)} would both write to {place}: make "
                f"{key} depend on the settings that differ, such as {hint}"
            )
        places[place] = job
