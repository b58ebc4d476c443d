"""The report's picture."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from mt.evaluation.formatting import error_bars
from mt.evaluation.robustness.measures import Result
from mt.reporting.figures import colour_of, new_figure
from mt.reporting.heat_map import legible


def losses(runs: Sequence[str], results: Sequence[Result]) -> Figure:
    """Draw the loss of BLEU of each variant against the clean sentences: a bar for each run, with its interval."""
    figure, axes = new_figure(7.6, 1.2 + (0.1 + 0.14 * len(runs)) * len(results))
    axes.set_axisbelow(True)
    height = 0.78 / len(runs)
    for number, run in enumerate(runs):
        intervals = [result.runs[number].loss for result in results]
        axes.barh(
            [row + (number - (len(runs) - 1) / 2) * height for row in range(len(results))],
            [loss.score for loss in intervals],
            height,
            xerr=error_bars(intervals),
            error_kw={"linewidth": 1, "capsize": 2, "ecolor": "#444444"},
            color=colour_of(number),
            label=legible(run),
        )
    axes.set_yticks(range(len(results)), [result.variant.name for result in results])
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("loss of BLEU against the clean sentences, with 95 % intervals")
    if len(runs) > 1:
        figure.legend(loc="outside upper center", ncols=len(runs), frameon=False)
    return figure
