"""Common parts of the pictures of all reports."""

import base64
import io
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's palette for colour-blind readers."""
MARKS = "os^Dv*"
DOTS_PER_INCH = 130
PIXELS_PER_INCH = 90
"""On the page."""


def colour_of(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def mark_of(number: int) -> str:
    return MARKS[number % len(MARKS)]


@dataclass(frozen=True)
class Picture:
    """An image of a page."""

    uri: str
    """A PNG, for the src of an <img>."""
    width: int
    """Width in pixels on the page."""


def as_picture(figure: Figure) -> Picture:
    """Return a figure as an image of a page."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    uri = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    return Picture(uri, round(figure.get_figwidth() * PIXELS_PER_INCH))


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
