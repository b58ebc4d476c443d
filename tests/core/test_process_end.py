"""A wish to stop, from the first signal to the last."""

import signal
import threading

import pytest

from mt.core.errors import Interrupted
from mt.core.process_end import StopRequest


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
