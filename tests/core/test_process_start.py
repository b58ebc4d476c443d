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
        assert _handlers() == [process_start._end] * 2
        raise ImportError
    assert _handlers() == before


def test_an_ignored_ctrl_c_stays_ignored(monkeypatch):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # conftest.py restores it
    with process_start.ending_at_once():
        assert _handlers() == [signal.SIG_IGN, process_start._end]


@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, b"interrupted\n"), (signal.SIGTERM, b"terminated\n")])
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
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", said)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"GOMP_SPINCOUNT": "5000"}),
        ({"GOMP_SPINCOUNT": "1"}, {"GOMP_SPINCOUNT": "1"}),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE"}),
        ({"KMP_BLOCKTIME": "0"}, {"KMP_BLOCKTIME": "0"}),
    ],
)
def test_commands_limit_active_waiting_before_torch_unless_the_user_chose_something(given, expected):
    script = (
        "import os, sys, mt.cli.main, mt.core.process_start\n"
        "assert 'torch' not in sys.modules\n"
        "print({name: os.environ[name] for name in mt.core.process_start.WAIT_SETTINGS if name in os.environ})"
    )
    environment = {name: value for name, value in os.environ.items() if name not in process_start.WAIT_SETTINGS} | given
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == f"{expected}\n"
