"""A plugin of pytest that tells coverage which test is running, and in which phase of it."""

import coverage
import pytest


def switch(test: str) -> None:
    """Tells coverage which test what follows in this process belongs to.

    Args:
        test: As in pytest's PYTEST_CURRENT_TEST, ``tests/test_x.py::test_y (call)``.
    """
    if running := coverage.Coverage.current():
        running.switch_context(test)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    switch(f"{item.nodeid} (setup)")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    switch(f"{item.nodeid} (call)")
