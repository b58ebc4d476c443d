"""The matplotlib figures of all reports: colors, markers, and heat maps, with target tokens from top to bottom and
source tokens from left to right.
"""

import base64
import io
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

logger = logging.getLogger(__name__)

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's palette for color-blind readers."""
MARKERS = "os^Dv*"
"""The matplotlib markers of data series."""
DOTS_PER_INCH = 130
"""Resolution of the PNG."""
PIXELS_PER_INCH = 90
"""Size of a figure on the page."""
Labels = tuple[Sequence[str], Sequence[str]]
"""The labels of the columns (source tokens) and of the rows (target tokens)."""

EAST_ASIAN_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei", "Droid Sans Fallback", "PingFang SC", "Hiragino Sans GB", "Arial Unicode MS",
    "Microsoft YaHei",
)  # fmt: skip


def color_of(series: int) -> str:
    """Return the color of a data series, given its number from 0. Colors repeat."""
    return COLORS[series % len(COLORS)]


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
    """Return an empty figure of this height, in inches, and its only axes, styled by ``style_axes``."""
    figure = Figure(figsize=(7.6, height), layout="constrained")
    axes = figure.add_subplot()
    style_axes(axes)
    return figure, axes


def style_axes(axes: Axes) -> None:
    """Remove the frame's upper and right lines and lighten the grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def plot_intervals(labels: Sequence[str], series: Mapping[str, Sequence[Any]], value_label: str) -> Figure:
    """Draw scores as points with their confidence intervals as horizontal lines.

    Args:
        labels: Labels of the rows, from top to bottom.
        series: Name of a series → one ``Interval`` of ``mt.metrics`` for each row. A series has one color and marker,
            and its name stands in the legend if there are several.
        value_label: Label of the horizontal axis.
    """
    distance = 0.6 / len(series)
    figure, axes = new_figure(1.4 + (0.12 + 0.14 * len(series)) * len(labels))
    for number, (name, intervals) in enumerate(series.items()):
        scores, low, high = np.array([astuple(interval) for interval in intervals]).T
        # A score need not lie inside the interval of its bootstrap samples: then one side has no line.
        widths = np.maximum(0, [scores - low, high - scores])
        axes.errorbar(
            scores,
            np.arange(len(labels)) + (number - (len(series) - 1) / 2) * distance,
            xerr=widths if widths.any() else None,
            fmt=MARKERS[number % len(MARKERS)],
            capsize=3,
            color=color_of(number),
            label=legible(name),
        )
    axes.set_yticks(range(len(labels)), [legible(label) for label in labels])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel(value_label)
    if len(series) > 1:
        figure.legend(loc="outside upper center", ncols=len(series), frameon=False)
    return figure


def heat_map(weights: Tensor, labels: Labels, title: str) -> Figure:
    """Draw attention weights (T, S), from 0 to 1, in a new figure with a color bar, and return the figure.

    ``labels`` are the S source tokens, then the T target tokens.
    """
    sources, targets = labels
    figure = Figure(figsize=(1.8 + 0.28 * len(sources), 1.5 + 0.26 * len(targets)), layout="constrained")
    axes = figure.add_subplot()
    figure.colorbar(draw_heat_map(axes, weights, labels, title), ax=axes, shrink=0.8)
    return figure


def draw_heat_map(axes: Axes, weights: Tensor, labels: Labels, title: str, font_size: float = 10) -> AxesImage:
    """Draw attention weights (T, S), from 0 to 1, into existing axes, and return the image, for a color bar.

    ``labels`` are the S source tokens, then the T target tokens.
    """
    _warn_of_missing_letters([label for side in labels for label in side])
    image = axes.imshow(weights.float().cpu().numpy(), vmin=0, vmax=1, cmap="Blues", aspect="auto")
    sources, targets = ([legible(label) for label in side] for side in labels)
    fonts = _fonts()
    axes.set_xticks(range(len(sources)), sources, rotation=60, ha="right", fontsize=font_size, family=fonts)
    axes.set_yticks(range(len(targets)), targets, fontsize=font_size, family=fonts)
    axes.set_title(title, fontsize=font_size)
    return image


def legible(text: str) -> str:
    """Escape text so that matplotlib shows it unchanged.

    Otherwise it would typeset $…$ as mathematics, and hide a label that begins with an underscore. The mark of a word's
    start becomes an underscore, because it is a thick bar beside rotated text.
    """
    escaped = text.replace("$", r"\$").replace("▁", "_")
    return f" {escaped}" if escaped.startswith("_") else escaped


@lru_cache
def _fonts() -> list[str]:
    """Return the names of matplotlib's own font and of the installed EAST_ASIAN_FONTS."""
    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in EAST_ASIAN_FONTS if name in installed)]


def _warn_of_missing_letters(labels: Sequence[str]) -> None:
    fonts = [font_manager.get_font(font_manager.findfont(name)) for name in _fonts()]
    letters = set("".join(labels))
    if not all(any(font.get_char_index(ord(letter)) for font in fonts) for letter in letters):
        _warn_once_of_missing_letters()


@lru_cache
def _warn_once_of_missing_letters() -> None:
    warnings.filterwarnings("ignore", message="Glyph .* missing from|Matplotlib currently does not support .* natively")
    logger.warning(
        "attention maps show boxes for letters that are not in %s; for Chinese, Japanese and Korean install a font "
        "such as Noto Sans CJK",
        ", ".join(_fonts()),
    )
