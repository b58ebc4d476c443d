"""Runs a command line: reads its flags, composes its config, and starts the command."""

import os
from collections import deque
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from omegaconf import OmegaConf

from mt.cli.commands import COMMANDS, Command
from mt.cli.composition import compose_job
from mt.cli.reference import command_list, help_text, settings_page
from mt.config import TRANSFORMERS, Section, TrainConfig, as_folders, flat_values, split_update
from mt.core.errors import InputError, did_you_mean
from mt.core.process import load_function
from mt.storage.run_folder import is_hub_name, nearest_run

MODEL_KEYS = ("run", "first", "second", "reverse", "training.init_from", "choice")
"""Keys of runs and models to read."""


def run(words: Sequence[str]) -> None:
    """Run a command line.

    Args:
        words: The name of a command, its settings and flags. Without words, the commands are listed.

    Raises:
        InputError: There is no such command, or its settings are wrong.
    """
    name, *arguments = words or ["--help"]
    if "--version" in words:
        print("mt-trainer", version("mt-trainer"), flush=True)
    elif name in COMMANDS:
        run_command(COMMANDS[name], arguments)
    elif name in ("--help", "-h"):
        print(command_list(), end="", flush=True)
    elif name == "settings":
        print(settings_page(), end="", flush=True)
    else:
        hint = did_you_mean(name, list(COMMANDS))
        raise InputError(f"{name}: there is no such command{hint}; python -m mt lists them")


def run_command(command: Command, arguments: Sequence[str]) -> None:
    """Run a command. Flags such as ``--help`` only print text.

    Args:
        command: The command.
        arguments: Settings and flags.

    Raises:
        InputError: A flag or setting is wrong.
    """
    flags, words = _split_flags(arguments)
    folder = flags.get("config_dir")
    if folder is not None and not os.path.isdir(folder):
        raise InputError(f"--config-dir: no such folder: {folder}" if folder else "--config-dir needs a folder")
    config_dir = Path(folder) if folder else None
    if "help" in flags:
        print(help_text(command, config_dir, flags["help"]), end="", flush=True)
        return
    job = compose_job(command.name, command.schema, words, config_dir)
    if "cfg" in flags:
        print(OmegaConf.to_yaml(OmegaConf.create(job.config.model_dump(mode="json"))), end="", flush=True)
        return
    _refuse_missing_models(job.config)
    function = load_function(command.work)
    function(job if command.takes_origins else job.config)


FLAGS = {
    "--help": "help",
    "-h": "help",
    "--cfg": "cfg",
    "-c": "cfg",
    "--config-dir": "config_dir",
    "-cd": "config_dir",
}
"""Flag → the name under which ``_split_flags`` returns it."""


def _split_flags(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Split the words of a command line.

    Returns:
        The values of the flags by the names in FLAGS: the folder of --config-dir, the section of --help, or ""; and all
        other words.
    """
    flags: dict[str, str] = {}
    words = []
    remaining = deque(arguments)
    while remaining:
        word = remaining.popleft()
        flag, is_joined, value = word.partition("=")
        name = FLAGS.get(flag)
        if name is None:
            words.append(word)
            continue
        takes_next = remaining and (name == "config_dir" or name == "help" and remaining[0].isidentifier())
        flags[name] = remaining.popleft() if takes_next and not is_joined else value
    return flags, words


def _refuse_missing_models(config: Section) -> None:
    """Raise InputError if a run or model to read does not exist. A run that is resumed needs no others."""
    if isinstance(config, TrainConfig) and config.folder.exists():
        return
    for key, value in flat_values(config.model_dump()):
        for name in as_folders(value or ()) if key in MODEL_KEYS else ():
            path = name.removeprefix(TRANSFORMERS)
            run, _ = split_update(path)
            if not os.path.exists(path) and not run.exists() and not is_hub_name(path):
                raise InputError(f"{key}={name}: no such folder or file{nearest_run(run)}")
