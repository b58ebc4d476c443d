"""Finished toy runs to compare: two architectures, two seeds each."""

import pytest


@pytest.fixture(scope="session")
def runs(shared_runs):
    """Run folders by name, ``transformer-1``, ``transformer-2``, ``rnn-1``, ``rnn-2``; not to be changed."""
    return shared_runs
