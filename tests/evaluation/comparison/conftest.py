"""Finished toy runs to compare, two architectures with two seeds each; and comparisons that take little time."""

import json
from unittest import mock

import pytest

from mt.config import CompareConfig
from mt.evaluation.comparison.command import compare
from mt.reporting.figures import Picture

LITTLE = {"timed_sentences": 0, "studied_sentences": 0, "bootstrap_samples": 100, "randomization_trials": 1000}


@pytest.fixture(scope="session")
def runs(shared_runs):
    """Run folders by name, ``transformer-1``, ``transformer-2``, ``rnn-1``, ``rnn-2``; not to be changed."""
    return shared_runs


def compare_quickly(output, first, second, **values):
    """Returns the JSON, the page and the Markdown. With empty pictures, because drawing takes most of the time.

    A system is a path, or a list of them.
    """
    runs = [[str(path) for path in (system if isinstance(system, list) else [system])] for system in (first, second)]
    with mock.patch("mt.evaluation.comparison.command.as_picture", return_value=Picture("data:image/png;base64,", 100)):
        compare(CompareConfig(runs=runs, output=str(output), **LITTLE | values))
    pages = [(output / name).read_text() for name in ("report.html", "comparison.md")]
    return json.loads((output / "comparison.json").read_text()), *pages
