"""Settings that were removed after version 1.0.0, and their alternatives."""

from collections.abc import Mapping
from typing import Any

REMOVED = {
    "robustness": "run python -m mt robustness run=FIRST second=SECOND",
    "training.replay": "mix the corpora with data=mixture, or set training.start_share, against forgetting",
    **dict.fromkeys(
        ("metric.command", "metric.name", "metric.version", "metric.minutes"),
        "write the scores to a file for each system, a number per line, and set scores.NAME=[first.txt,second.txt]",
    ),
}
"""Dotted key → the alternative, for the message that refuses it."""


def without_removed(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the nested values of a recorded config without removed settings."""
    return {
        name: without_removed(value, f"{prefix}{name}.") if isinstance(value, Mapping) else value
        for name, value in values.items()
        if prefix + name not in REMOVED
    }
