"""A plugin of pytest that tells coverage which test is running, and in which phase of it."""

import coverage
import pytest


def _switch(item: pytest.Item, phase: str) -> None:
    if running := coverage.Coverage.current():
        running.switch_context(f"{item.nodeid}|{phase}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _switch(item, "setup")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    _switch(item, "call")
