"""The two entry points as a shell sees them: output, messages, exit codes."""

import errno
import gc
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
import yaml

from mt.cli.commands import COMMANDS
from mt.cli.config_files import Files
from mt.cli.error_messages import schema_keys
from mt.cli.reference import help_text
from mt.core.errors import InputError, Interrupted, RunError, WorkerDiedError
from mt.core.process import load_function
from tests.in_process import call
from tests.processes import run

ROOT = Path(__file__).resolve().parents[2]


def call_process(*words, folder):
    done = run(*words, cwd=folder, env=dict(os.environ))
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def write_command(body, folder):
    """A script with the command line of translate.py whose work is ``body``."""
    script = folder / "command.py"
    script.write_text(
        "import errno, os, signal, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from mt.cli import command_line\n"
        "from mt.core.errors import InputError, Interrupted, RunError\n"
        "from mt.core.process import end_with\n"
        f"def command(config):\n    {body}\n"
        "command_line._refuse_missing_models = lambda config: None\n"
        "command_line.load_function = lambda path: command\n"
        "end_with(lambda: command_line.run(['translate', *sys.argv[1:]]))\n",
        encoding="utf-8",
    )
    return str(script)


def call_command(body, *words, folder):
    return call_process(write_command(body, folder), *words, folder=folder)


def test_every_command_is_listed(tmp_path):
    lists = [call(*words, folder=tmp_path) for words in ((), ("--help",))]
    for done in lists:
        assert (done.returncode, done.stderr) == (0, "")
        listed = re.findall(r"^  python -m mt (\w+) +\S.*$", done.stdout, re.MULTILINE)
        assert listed == [*COMMANDS, "settings"]
        assert max(map(len, done.stdout.splitlines())) <= 140


def test_a_command_that_does_not_exist_is_refused_with_the_nearest(tmp_path):
    done = call("tran", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tran: there is no such command; did you mean train?; python -m mt lists them\n"


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_the_functions_of_a_command_exist(command):
    assert callable(load_function(command.work))
    assert gc.isenabled()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_help_all_lists_every_key_and_option(command):
    text = help_text(command, topic="all")
    words = " ".join(text.split())
    for key, field in schema_keys(command.schema):
        assert f"  {key}=" in text
        if not key.startswith("data."):  # the kinds of data describe their keys in words of their own
            assert " ".join((field.description or "").split()[:4]) in words
    files = Files(command.name)
    for group, default in files.group_defaults().items():
        for option in files.options(group):
            assert f"\n{'*' if option == default else ' '} {group}={option} " in text


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_help_fits_on_a_screen(command):
    lines = help_text(command).splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= 100
    assert lines[0] == f"Usage: {command.typed} [KEY=VALUE …]"
    assert command.schema.model_fields.keys() <= {re.split("[ =]", line[2:])[0] for line in lines}


@pytest.mark.parametrize(
    ("topic", "listed"),
    [
        ("data", ["* data=tatoeba_en_fr", "  data.max_length=128"]),
        ("experiment", ["  experiment=demo"]),
        ("general", ["  runs=runs", "  seed=1"]),
    ],
)
def test_help_of_a_section_lists_its_keys_and_options(topic, listed, tmp_path):
    done = call("train", "--help", topic, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    starts = [line[:2] + line[2:].partition(" ")[0] for line in done.stdout.splitlines()]
    assert set(listed) <= set(starts) and "  training.accumulate=1" not in starts
    assert call("train", f"--help={topic}", "seed=2", folder=tmp_path).stdout == done.stdout


def test_help_of_an_unknown_section_suggests_the_nearest(tmp_path):
    done = call("train", "-h", "dta", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("--help dta: there is no such section; did you mean data?; there are general, data, ")


@pytest.mark.parametrize("words", [["--version"], ["train", "seed=2", "--version"]])
def test_version_is_printed(words, tmp_path):
    done = call(*words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"mt-trainer {version('mt-trainer')}\n")


def test_the_config_can_be_printed_and_nothing_is_left_behind(tmp_path):
    done = call("train", "--cfg", "seed=2", "name=7", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == ["name: '7'", "runs: runs", "seed: 2"]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def own_files(tmp_path):
    """A folder with a user's own experiment, and a model that builds on one of ours."""
    for group, name, text in (
        (
            "experiment",
            "mine",
            "# @package _global_\n# my own\ndefaults:\n  - override /model: wide\n  - _self_\nseed: 7\n",
        ),
        ("model", "wide", "# wider\ndefaults: [transformer_tiny, _self_]\nwidth: 512\n"),
    ):
        (tmp_path / "a b" / group).mkdir(parents=True)
        (tmp_path / "a b" / group / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path / "a b"


@pytest.mark.parametrize("flag", [["--config-dir", "{}"], ["--config-dir={}"], ["-cd", "{}"]])
def test_config_files_of_the_users_own(own_files, flag, tmp_path):
    words = [word.format(own_files) for word in flag]
    done = call("train", *words, "experiment=mine", "--cfg", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    values = yaml.safe_load(done.stdout)
    assert (values["name"], values["seed"]) == ("mine", 7)
    assert (values["model"]["width"], values["model"]["feed_forward"]) == (512, 256)
    options = call("train", *words, "--help", "experiment", folder=tmp_path).stdout
    assert "=mine " in options and "my own" in options and "=demo " in options
    done = call("train", *words, "experiment=mien", folder=tmp_path)
    assert done.returncode == 2 and "did you mean experiment=mine?" in done.stderr


def raised_from(cause, error, link="__cause__"):
    """Return an error of a library that was raised from another one."""
    setattr(error, link, cause)
    return error


NO_SPACE = OSError(errno.ENOSPC, "No space", "runs/a")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (InputError("no such folder"), 2, "no such folder"),
        (RunError("diverged"), 1, "diverged"),
        (WorkerDiedError("another worker has died"), 1, "another worker has died"),
        (Interrupted(signal.SIGTERM, "state saved"), 143, "state saved"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (NO_SPACE, 1, "disk is full (runs/a)"),
        (raised_from(NO_SPACE, ValueError("generation failed")), 1, "disk is full (runs/a)"),
        (OSError(errno.EDQUOT, "Quota"), 1, "disk is full"),
        (OSError(errno.EFBIG, "File too large", "runs/a"), 1, "File too large (runs/a)"),
        (PermissionError(errno.EACCES, "Permission denied", "runs/a"), 1, "Permission denied (runs/a)"),
        (MemoryError(), 1, "out of memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 1, "out of memory"),
        (
            OSError(errno.EMFILE, "Too many open files", "a.tsv"),
            1,
            "Too many open files (a.tsv): allow more with ulimit",
        ),
        (
            raised_from(OSError(errno.EMFILE, ""), InputError("a.tsv: corrupted"), "__context__"),
            1,
            "Too many open files: allow more",
        ),
        (torch.OutOfMemoryError("CUDA"), 1, "out of memory"),
        (OSError(errno.ENAMETOOLONG, "", "x" * 5000), 2, "name too long for this system"),
        (InputError("a\x1b[31m\u202e\udcff é"), 2, "a\\x1b[31m\\u202e\\udcff é\n"),
        (
            InputError(f"no such file: {'x' * 5000} (gone)"),
            2,
            f"no such file: {'x' * 100} … {'x' * 100} (5,000 characters) (gone)\n",
        ),
    ],
    ids=lambda value: f"{type(value).__name__} {value}"[:40],
)
def test_every_expected_end_has_its_status_and_one_message(error, status, message, tmp_path):
    def fail(config):
        raise error

    done = call("translate", "run=x", folder=tmp_path, work=fail)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr and len(done.stderr.splitlines()) == 1 and len(done.stderr) < 400


CTRL_C = "signal.signal(signal.SIGINT, signal.getsignal(signal.SIGTERM)); os.kill(os.getpid(), signal.SIGINT)"
"""Also where the shell of the tests ignores Ctrl-C."""


def test_a_second_ctrl_c_does_not_disturb_the_cleanup(tmp_path):
    """Some launchers pass on the Ctrl-C that the terminal has sent to all processes already."""
    again = f"try:\n        {CTRL_C}\n    finally:\n        os.kill(os.getpid(), signal.SIGINT); print('cleaned up')"
    done = call_command(again, "run=x", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "cleaned up\n", "interrupted\n")


def test_a_late_second_ctrl_c_ends_a_cleanup_that_takes_long(tmp_path):
    again = (
        "import time, mt.core.process as here; here.CLEANUP_SECONDS = 0.0\n    "
        f"try:\n        {CTRL_C}\n    finally:\n        os.kill(os.getpid(), signal.SIGINT); time.sleep(600)"
    )
    done = call_command(again, "run=x", folder=tmp_path)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_an_interrupted_command_does_not_wait_for_its_threads(tmp_path):
    """The interpreter would abort the process if one of them were inside of a library in C++."""
    busy = f"import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); {CTRL_C}"
    done = call_command(busy, "run=x", folder=tmp_path)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_another_worker_leaves_it_to_the_first_to_tell_and_does_not_end_before(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    ended_from_outside = (
        "def end(*_): open('ended', 'w').close(); os.kill(os.getpid(), signal.SIGTERM)\n    "
        "signal.signal(signal.SIGALRM, end); signal.alarm(1)\n    "
        "raise InputError('no such folder')"
    )
    done = call_command(ended_from_outside, "run=x", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "") and (tmp_path / "ended").exists()
    not_known_to_all = (
        "import mt.core.process as here; here.FIRST_ERROR_SECONDS = 1e6\n    "
        "from mt.core.errors import WorkerDiedError; raise WorkerDiedError('another worker has died')"
    )
    done = call_command(not_known_to_all, "run=x", folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    alone_with_it = (
        "import mt.core.process as here; here.FIRST_ERROR_SECONDS = 0.0\n    raise InputError('no such folder')"
    )
    done = call_command(alone_with_it, "run=x", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "no such folder\n")


@pytest.mark.parametrize(
    "body",
    [
        "{}['key']",
        # Raised again, a cause leads back to itself.
        "try:\n        try: {}['key']\n        except KeyError as cause: raise ValueError from cause\n    "
        "except ValueError as error: raise error.__cause__ from None",
    ],
)
def test_a_bug_shows_its_traceback(tmp_path, body):
    done = call_command(body, "run=x", folder=tmp_path)
    assert done.returncode == 1 and "Traceback" in done.stderr and "KeyError" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--config-dir", "gone"], "--config-dir: no such folder: gone\n"),
        (["--config-dir"], "--config-dir needs a folder\n"),
        ([f"--config-dir={'x' * 300}"], f"--config-dir: no such folder: {'x' * 100} … {'x' * 100} (300 characters)\n"),
    ],
)
def test_config_dir_reports_missing_folder(words, message, tmp_path):
    done = call("train", *words, folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, message)


def test_sigterm_is_not_caught_by_except_exception(tmp_path):
    body = "try: os.kill(os.getpid(), signal.SIGTERM)\n    except Exception: pass"
    assert call_command(body, "run=x", folder=tmp_path).returncode == 143


def test_closed_output_ends_without_error(tmp_path):
    shell = f"{shlex.quote(sys.executable)} {shlex.quote(write_command('pass', tmp_path))} run=x >&-"
    done = subprocess.run(shell, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_logs_go_to_standard_error(tmp_path):
    body = "import logging as l; l.getLogger('mt.x').info('note'); l.getLogger('lib').info('noise'); print(1)"
    done = call_command(body, "run=x", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "note\n")


def test_broken_pipe_ends_without_error(tmp_path):
    script = write_command("[print('line', flush=True) for _ in range(10**6)]", tmp_path)
    process = subprocess.Popen([sys.executable, script, "run=x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"line\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.parametrize(
    ("number", "module"),
    [(signal.SIGINT, "omegaconf"), (signal.SIGTERM, "torch._C"), (signal.SIGINT, "mt.translation.lines")],
)
def test_a_signal_while_a_command_starts_ends_it_at_once(tmp_path, number, module):
    """Wherever it comes: while the config, PyTorch or the command itself is imported. Python tells what it has
    imported."""
    shutil.copytree(ROOT / "tests/releases/1.0.0/transformer", tmp_path / "run")
    words = [sys.executable, "-X", "importtime", ROOT / "translate.py", f"run={tmp_path / 'run'}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Tests that run in the background inherit an ignored SIGINT.
    process = subprocess.Popen(words, **pipes, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert process.stderr is not None
    while process.stderr.readline().split()[-1] != module.encode():
        pass
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode in (128 + number, -number)
    assert b"Traceback" not in said
