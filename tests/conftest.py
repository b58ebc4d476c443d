"""What holds for every test."""

import signal

import pytest
import torch
from hypothesis import settings

from tests.processes import end_all

# How long an example takes depends on the machine and says nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Tests run side by side, and their models are too small to be shared out; results are then the same everywhere, too.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _leaves_nothing_behind():
    """Neither processes nor signal handlers, which interrupted training keeps to its end."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    end_all()
    for number, handler in handlers.items():
        signal.signal(number, handler)
