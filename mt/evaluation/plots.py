"""The bar chart with error bars that all reports use."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple

import numpy as np
from matplotlib.figure import Figure

from mt.metrics.significance import Interval
from mt.reporting.figures import colour_of, new_figure
from mt.reporting.heat_map import legible


def interval_bars(labels: Sequence[str], series: Mapping[str, Sequence[Interval]], value_label: str) -> Figure:
    """Draw a horizontal bar chart with error bars.

    Args:
        labels: Labels of the groups of bars, from top to bottom.
        series: Name of a series → one score with its interval for each group. A series has one colour, and its name
            stands in the legend if there are several.
        value_label: Label of the horizontal axis.
    """
    height = 0.78 / len(series)
    figure, axes = new_figure(1.4 + (0.1 + 0.16 * len(series)) * len(labels))
    axes.set_axisbelow(True)
    for number, (name, intervals) in enumerate(series.items()):
        scores, low, high = np.array([astuple(interval) for interval in intervals]).T
        axes.barh(
            np.arange(len(labels)) + (number - (len(series) - 1) / 2) * height,
            scores,
            height,
            # A score need not lie inside the interval of its bootstrap samples: then one side has no error bar.
            xerr=np.maximum(0, [scores - low, high - scores]),
            error_kw={"linewidth": 1, "capsize": 2, "ecolor": "#444444"},
            color=colour_of(number),
            label=legible(name),
        )
    axes.set_yticks(range(len(labels)), [legible(label) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel(value_label)
    if len(series) > 1:
        figure.legend(loc="outside upper center", ncols=len(series), frameon=False)
    return figure
