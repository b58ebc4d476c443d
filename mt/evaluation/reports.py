"""The common parts of the reports on comparisons and robustness: their folder, and the bar chart with error bars."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mt.core.errors import InputError
from mt.core.files import resolved
from mt.metrics.significance import Interval
from mt.reporting.figures import colour_of, legible, new_figure


def report_folder(output: str | None, default: Path, inner: str) -> Path:
    """Return the folder for a report: the folder ``inner`` of the setting ``output`` or, if that is None, of
    ``default``. It is not created.

    Raises:
        InputError: The path is a file, or its symbolic links lead in a circle.
    """
    folder = Path(output) if output else default
    resolved(folder)  # raises InputError if links lead in a circle
    if folder.exists() and not folder.is_dir():
        raise InputError(f"output={folder} is a file, but a report needs a folder; set output=FOLDER")
    return folder / inner


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
