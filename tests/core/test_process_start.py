"""While a command starts, a signal ends it; afterwards the handlers are those from before. OpenMP threads may sleep."""

import os
import signal
import subprocess
import sys

import pytest

from mt.core import process_start


def _handlers():
    return [signal.getsignal(number) for number in process_start.ENDING]


def test_handlers_are_restored_even_if_the_import_fails():
    before = _handlers()
    with pytest.raises(ImportError), process_start.ending_at_once():
        assert _handlers() == [process_start.end] * 3
        raise ImportError
    assert _handlers() == before


def test_ignored_signals_stay_ignored(monkeypatch):
    before = _handlers()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with process_start.ending_at_once():
        assert _handlers() == [signal.SIG_IGN, process_start.end, signal.SIG_IGN]
    for number, handler in zip(process_start.ENDING, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "said"), process_start.ENDING.items())
def test_code_that_swallows_every_exception_cannot_swallow_a_signal(number, said):
    script = (
        "import signal, mt.cli.main\n"
        "from mt.core.process_start import ending_at_once\n"
        "with ending_at_once():\n"
        f"    try: signal.raise_signal({int(number)})\n"
        "    except BaseException: pass\n"
        "print('went on')"
    )
    restored = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, **restored)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", f"{said}\n".encode())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"GOMP_SPINCOUNT": "5000"}),
        ({"GOMP_SPINCOUNT": "1"}, {"GOMP_SPINCOUNT": "1"}),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE"}),
        ({"KMP_BLOCKTIME": "0"}, {"KMP_BLOCKTIME": "0"}),
    ],
)
def test_active_waiting_is_limited_unless_the_user_chose_something(monkeypatch, given, expected):
    monkeypatch.setattr(os, "environ", given.copy())
    process_start.limit_spinning()
    assert os.environ == expected


def test_commands_limit_active_waiting_before_torch():
    script = "import os, sys, mt.cli.main; print('torch' in sys.modules, os.environ['GOMP_SPINCOUNT'])"
    environment = {name: value for name, value in os.environ.items() if name not in process_start.WAIT_SETTINGS}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "False 5000\n"


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_the_descriptor_of_a_closed_stream(tmp_path, closed):
    """Otherwise what a library or a child process writes to standard error would be written into the file."""
    script = (
        "import os, subprocess, sys, mt.cli.main\n"
        "with open('file', 'w') as file:\n"
        "    print('kept', file=file)\n"
        "    print('lost', file=sys.stderr, flush=True)\n"
        "    os.write(2, b'lost')\n"
        "    subprocess.run(['sh', '-c', 'echo lost >&2'], check=True)\n"
    )
    (tmp_path / "script.py").write_text(script)
    command = f"{sys.executable} script.py {closed}"
    status = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.getcwd()}, timeout=60
    )
    assert (status.returncode, (tmp_path / "file").read_text()) == (0, "kept\n")
