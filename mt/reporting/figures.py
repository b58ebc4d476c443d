"""Common parts of the pictures of all reports."""

import base64
import io

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's palette for colour-blind readers."""
MARKS = "os^Dv*"
DOTS_PER_INCH = 130


def colour_of(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def mark_of(number: int) -> str:
    return MARKS[number % len(MARKS)]


def as_data_uri(figure: Figure) -> str:
    """Return the figure as a PNG in a data URI, for the src of an <img>."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure and its axes, given its size in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    quiet(axes)
    return figure, axes


def quiet(axes: Axes) -> None:
    """Remove the frame's upper and right lines and lighten the grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
