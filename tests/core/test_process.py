"""While a command starts, a signal ends it; afterwards the handlers are those from before. OpenMP threads may sleep.
A wish to stop is remembered from the first signal to the last."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from mt.core import process
from mt.core.errors import Interrupted
from mt.core.process import StopRequest


def _handlers():
    return [signal.getsignal(number) for number in process.ENDING]


def test_handlers_are_restored_even_if_the_import_fails():
    before = _handlers()
    with pytest.raises(ImportError), process.ending_at_once():
        assert _handlers() == [process.end] * 3
        raise ImportError
    assert _handlers() == before


def test_ignored_signals_stay_ignored(monkeypatch):
    before = _handlers()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with process.ending_at_once():
        assert _handlers() == [signal.SIG_IGN, process.end, signal.SIG_IGN]
    for number, handler in zip(process.ENDING, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "said"), process.ENDING.items())
def test_code_that_swallows_every_exception_cannot_swallow_a_signal(number, said):
    script = (
        "import signal, mt.cli.main\n"
        "from mt.core.process import ending_at_once\n"
        "with ending_at_once():\n"
        f"    try: signal.raise_signal({int(number)})\n"
        "    except BaseException: pass\n"
        "print('continued')"
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
    process.limit_spinning()
    assert os.environ == expected


def test_commands_limit_active_waiting_before_torch():
    script = "import os, sys, mt.cli.main; print('torch' in sys.modules, os.environ['GOMP_SPINCOUNT'])"
    environment = {name: value for name, value in os.environ.items() if name not in process.WAIT_SETTINGS}
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


class Heard(Exception):
    pass


@pytest.fixture
def outside():
    """What a signal does where training does not listen."""

    def hear(number, frame):
        raise Heard(number)

    signal.signal(signal.SIGTERM, hear)
    return hear


def test_the_first_signal_is_remembered_and_the_handlers_come_back(outside):
    with pytest.raises(ValueError), StopRequest() as stop:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert stop.signal_number == signal.SIGINT
        raise ValueError
    assert signal.getsignal(signal.SIGTERM) is outside


def test_a_second_signal_on_the_way_out_changes_nothing(outside):
    with pytest.raises(Interrupted, match="saved"), StopRequest():
        signal.raise_signal(signal.SIGTERM)
        raise Interrupted(signal.SIGTERM, "saved")
    signal.raise_signal(signal.SIGTERM)


def test_a_signal_that_came_too_late_is_passed_on(outside):
    with pytest.raises(Heard), StopRequest():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is outside


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_are_ignored_stay_ignored_and_others_are_remembered(number):
    before = signal.getsignal(number)
    for handler, expected in ((signal.SIG_IGN, None), (lambda *arguments: None, number)):
        signal.signal(number, handler)
        with StopRequest() as stop:
            signal.raise_signal(number)
        assert stop.signal_number == expected
        assert signal.getsignal(number) is handler
    signal.signal(number, before)


def test_outside_of_the_main_thread_nothing_is_caught():
    """Only the main thread can, and web interfaces train in others."""
    stops = []

    def enter():
        with StopRequest() as stop:
            stops.append(stop)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert [stop.signal_number for stop in stops] == [None]
