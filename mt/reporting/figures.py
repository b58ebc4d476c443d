"""Colours, markers and helpers for the matplotlib figures of all reports."""

import base64
import io
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's palette for colour-blind readers."""
MARKERS = "os^Dv*"
DOTS_PER_INCH = 130
"""Resolution of the PNG."""
PIXELS_PER_INCH = 90
"""Size of a figure on the page."""


def colour_of(series: int) -> str:
    """Return the colour of a data series, given its number from 0. Colours repeat."""
    return COLOURS[series % len(COLOURS)]


def marker_of(series: int) -> str:
    """Return the matplotlib marker of a data series, given its number from 0. Markers repeat."""
    return MARKERS[series % len(MARKERS)]


@dataclass(frozen=True)
class Picture:
    """An image in the HTML page of a report."""

    uri: str
    """A PNG as a data URI, for the src of an <img>."""
    width: int
    """Width in pixels on the page."""


def as_picture(figure: Figure) -> Picture:
    """Draw a figure as an image for the HTML page of a report."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    uri = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    return Picture(uri, round(figure.get_figwidth() * PIXELS_PER_INCH))


def new_figure(height: float) -> tuple[Figure, Axes]:
    """Return an empty figure of this height, in inches, and its only axes, styled by ``quiet``."""
    figure = Figure(figsize=(7.6, height), layout="constrained")
    axes = figure.add_subplot()
    quiet(axes)
    return figure, axes


def quiet(axes: Axes) -> None:
    """Remove the frame's upper and right lines and lighten the grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
