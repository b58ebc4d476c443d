"""The entry points: ``python -m mt COMMAND``, ``train.py``, ``translate.py``, and the installed scripts ``mt-train``,
``mt-translate`` and ``mt-compare``."""

import functools
import sys
from typing import NoReturn

from mt.core.process import end, end_with, handle_ending, limit_spinning, load_function, open_standard_streams

open_standard_streams()
handle_ending(end)  # before anything that takes long to import
limit_spinning()  # before torch is imported


def main(*command: str) -> NoReturn:
    """Run a command line, and end the process with its exit status.

    Args:
        *command: The name of the command. Without it, the first word of the process's command line is the name.
    """
    end_with(lambda: load_function("mt.cli.command_line:run")([*command, *sys.argv[1:]]))


train = functools.partial(main, "train")
translate = functools.partial(main, "translate")
compare = functools.partial(main, "compare")
