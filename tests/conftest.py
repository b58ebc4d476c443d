"""What holds for every test."""

import signal

import pytest
from hypothesis import settings

from tests.processes import end_all

# How long an example takes depends on the machine and says nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _leaves_nothing_behind():
    """Neither processes nor signal handlers, which interrupted training keeps to its end."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    end_all()
    for number, handler in handlers.items():
        signal.signal(number, handler)
