"""The plots of the report."""

import numpy as np
from matplotlib.figure import Figure

from mt.data.cleaning.findings import Histogram
from mt.reporting.figures import COLOURS, new_figure

SCORES = {
    "language": "how much likelier another language is than the right one (logarithm)",
    "length": "standard deviations of the ratio of lengths from what is usual for the length",
    "translation": "how much more probable each side makes the words of the other (logarithm)",
}
"""The labels of the horizontal axes."""


def plot_histogram(histogram: Histogram) -> Figure:
    """Plot the scores of all training pairs and of those that the rule drops, on a logarithmic scale."""
    figure, axes = new_figure(7.6, 2.8)
    edges = np.array(histogram.edges)
    dropped = f"dropped by it: {sum(histogram.found):,}"
    axes.stairs(histogram.pairs, edges, fill=True, color=COLOURS[4], alpha=0.6, label="all pairs")
    axes.stairs(histogram.found, edges, fill=True, color=COLOURS[1], label=dropped)
    if histogram.random:
        axes.stairs(histogram.random, edges, color="black", label="matched at random")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
    axes.set_title(histogram.rule, loc="left", fontsize="medium")
    axes.set_xlabel(SCORES[histogram.rule])
    axes.set_ylabel("pairs")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0)
    return figure
