"""What holds for every test."""

import os
import signal

# Before PyTorch is imported. Tests run side by side, and commands in processes of their own: with a thread for each
# core, all of them would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

from tests.processes import end_all  # noqa: E402

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
