"""The report's picture."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from mt.evaluation.robustness.measures import Result
from mt.reporting.figures import COLOURS, new_figure
from mt.reporting.heat_map import legible


def losses(runs: Sequence[str], results: Sequence[Result]) -> Figure:
    """Draws how much BLEU each variant loses against the clean sentences: a bar for each run, with its interval."""
    figure, axes = new_figure(7.6, 1.2 + (0.1 + 0.14 * len(runs)) * len(results))
    axes.set_axisbelow(True)
    height = 0.78 / len(runs)
    for place, run in enumerate(runs):
        of_run = [result.of_runs[place].loss for result in results]
        axes.barh(
            [row + (place - (len(runs) - 1) / 2) * height for row in range(len(results))],
            [loss.score for loss in of_run],
            height,
            # The loss of the whole test set need not lie inside the interval of its samples' losses.
            xerr=[
                [max(0.0, loss.score - loss.low) for loss in of_run],
                [max(0.0, loss.high - loss.score) for loss in of_run],
            ],
            error_kw={"linewidth": 1, "capsize": 2, "ecolor": "#444444"},
            color=COLOURS[place],
            label=legible(run),
        )
    axes.set_yticks(range(len(results)), [result.variant.name for result in results])
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("loss of BLEU against the clean sentences, with 95 % intervals")
    if len(runs) > 1:
        figure.legend(loc="outside upper center", ncols=len(runs), frameon=False)
    return figure
