"""What holds for every test."""

import gc
import os
import signal
from pathlib import Path

# Nothing is garbage until the tests begin, and to look for it takes a quarter of the time of their imports.
gc.disable()

# Before PyTorch is imported. Tests run side by side, and commands in processes of their own: with a thread for each
# core, all of them would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from tests.processes import end_all  # noqa: E402

# How long an example takes depends on the machine and says nothing about the code. `make test` draws the same examples
# in each run: it fails because of a change, never by chance. `make test-all` draws others each time.
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.register_profile("quick", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("quick")

# Tests run side by side, and their models are too small to be shared out; results are then the same everywhere, too.
torch.set_num_threads(1)


LONGEST_FIRST = (
    "distributed/test_workers.py", "faults/test_campaign.py", "training/test_trainer.py", "training/test_resume.py",
    "test_wheel.py", "evaluation/comparison/test_command.py", "synthesis/test_command.py",
    "training/test_start_from_marian.py", "training/test_fine_tuning.py",
)  # fmt: skip
"""Files that take minutes. A file is one worker's: begun last, it would leave the other workers with nothing to do."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


def pytest_collection_finish() -> None:
    gc.freeze()  # the modules and the tests
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _blank_attention_maps():
    """Runs that are trained in this process show blank pictures of their attention: to draw them takes as long as all
    the rest of such short runs. test_figures.py and test_monitor.py draw them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.reporting.figures.heat_map", lambda *what: Figure(figsize=(1, 1)))
        yield


@pytest.fixture(scope="session")
def shared_runs(tmp_path_factory: pytest.TempPathFactory):
    """Finished toy runs, see tests/shared_runs.py."""
    from tests.shared_runs import SharedRuns

    base = tmp_path_factory.getbasetemp()
    return SharedRuns((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-runs")


@pytest.fixture(autouse=True)
def _leaves_nothing_behind():
    """Neither processes nor signal handlers, which interrupted training keeps to its end."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    end_all()
    for number, handler in handlers.items():
        signal.signal(number, handler)
