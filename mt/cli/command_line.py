"""What all commands share: they read their command line, compose their configs and end in the same way."""

import contextlib
import errno
import io
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar, cast

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
from mt.core.errors import InputError, Interrupted, RunError, WorkerDied, is_out_of_memory
from mt.core.terminal import VisibleFormatter
from mt.core.wording import brief, shorten_words

Config = TypeVar("Config", bound=Section)

log = logging.getLogger(__name__)

CANNOT_BE_WRITTEN = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EFBIG,
    errno.EIO,
    errno.EMFILE,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
}
LEADERS_HEAD_START = 60.0
"""Seconds that a worker other than the first waits before it logs an error. By then torchrun would have ended it if the
first worker had met the same error, so it is the only one that did."""
CLOSED_PIPE_STATUS = 141
"""The exit status that a shell reports for a filter whose reader has gone (128 + SIGPIPE)."""


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


def end_with(work: Callable[[], None]) -> NoReturn:
    """Calls ``work`` and then ends the process, with the exit statuses of ``main``."""
    _log_to_stderr()
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    status = _exit_status(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the exit status is settled
    sys.exit(status)


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


def _exit_status(work: Callable[[], None]) -> int:
    """Does the work and returns the exit status.

    Whatever the user can mend is logged as one message without a traceback. A bug is raised on.
    """
    try:
        work()
        if sys.stdout is not None:  # None if it was closed when the process started
            sys.stdout.flush()
        return 0
    except InputError as error:
        return _log_what_all_meet(error, 2)
    except WorkerDied as error:
        return _log_if_leader(error, 1)
    except RunError as error:
        return _log_what_all_meet(error, 1)
    except Interrupted as error:
        return _log_if_leader(error, 128 + error.signal_number)
    except KeyboardInterrupt:
        return _log_if_leader("interrupted", 130)
    except BrokenPipeError:
        # The interpreter flushes standard output once more at exit, which would print another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE_STATUS
    except Exception as error:
        for cause in _causes(error):
            if isinstance(cause, OSError) and cause.errno == errno.ENAMETOOLONG:
                return _log_error(f"{brief(str(cause.filename))}: the name is too long for this system", 2)
            if reason := _trouble_outside(cause):
                return _log_error(reason, 1)
        raise


def _is_leader() -> bool:
    """Returns whether this is the first of the workers on this machine, or the only one."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _log_what_all_meet(message: object, status: int) -> int:
    """Logs an error that every worker may meet, and returns ``status``.

    The first worker logs it at once. The others wait, because torchrun ends all workers when one ends, and log it only
    if they have not been ended after LEADERS_HEAD_START.
    """
    if not _is_leader():
        try:
            time.sleep(LEADERS_HEAD_START)
        except (Interrupted, KeyboardInterrupt):
            return status
    return _log_error(message, status)


def _log_if_leader(message: object, status: int) -> int:
    """Logs a message in the first worker only, which receives the same event, and returns ``status``."""
    return _log_error(message, status) if _is_leader() else status


def _terminate(number: int, frame: FrameType | None) -> None:
    """Handles SIGTERM wherever nothing has to be saved first."""
    raise Interrupted(number, "terminated")


def _log_error(message: object, status: int) -> int:
    log.error("%s", shorten_words(str(message)))
    return status


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error and those that it was raised from, because libraries wrap the errors of the system."""
    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:  # a cause that was raised again leads back to itself
        yield cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__


def _trouble_outside(error: BaseException) -> str | None:
    """Returns the message for an error that is the fault of the machine and not of the program; None for a bug."""
    where = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(error):
        return f"disk is full{where}: make room and start the same command again"
    if number in CANNOT_BE_WRITTEN:
        return f"{os.strerror(number)}{where}"
    if is_out_of_memory(error):
        return "out of memory: reduce batch_tokens or use a smaller model"
    return None


def stderr_handler() -> logging.Handler:
    """Returns a handler that writes messages to standard error, with nothing in them that would control a terminal."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(VisibleFormatter("%(message)s"))
    return handler


def _log_to_stderr() -> None:
    """Sends log messages to standard error, since standard output is for results. Libraries log warnings only."""
    logging.basicConfig(handlers=[stderr_handler()], level=logging.WARNING, force=True)
    logging.getLogger("mt").setLevel(logging.INFO if _is_leader() else logging.ERROR)
