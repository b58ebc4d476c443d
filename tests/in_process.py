"""Command lines that run in the process of the test, in a fraction of the time of a new one."""

import contextlib
import io
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

import pytest

from mt.cli.command_line import run
from mt.core.process import ENDING, end_with


@contextlib.contextmanager
def replaced_work(work: Callable[[Any], None]) -> Iterator[None]:
    """Let commands call a function with their config instead of their own, whether the models that they name exist or
    not."""
    function = lambda config: work(getattr(config, "config", config))  # noqa: E731
    with (
        mock.patch("mt.cli.command_line._refuse_missing_models"),
        mock.patch("mt.cli.command_line.load_function", lambda path: function),
    ):
        yield


def call(*words: str, folder: Path, work: Callable[[Any], None] | None = None) -> CompletedProcess[str]:
    """Return the exit status and the output of ``python -m mt WORDS``, run in ``folder``.

    Args:
        words: The name of the command, its settings and flags.
        folder: The working folder.
        work: What to do with the config, instead of what the command does.
    """
    output, errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    root, package = logging.getLogger(), logging.getLogger("mt")
    handlers, levels = root.handlers[:], (root.level, package.level)
    numbers = list(ENDING)
    listeners = [signal.getsignal(number) for number in numbers]
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
            mock.patch("os._exit", sys.exit),  # which would end the tests
            replaced_work(work) if work else contextlib.nullcontext(),
            pytest.raises(SystemExit) as end,
        ):
            end_with(lambda: run(words))
    finally:
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        package.setLevel(levels[1])
        for number, listener in zip(numbers, listeners, strict=True):
            signal.signal(number, listener)
    output.flush()
    return CompletedProcess(words, end.value.code, output.buffer.getvalue().decode(), errors.getvalue())
