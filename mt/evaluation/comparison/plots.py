"""The report's pictures."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from mt.evaluation.comparison.attention import AttentionEntropy, Scaling, mean_cross_attention
from mt.evaluation.comparison.differences import Group
from mt.evaluation.comparison.verdict import Verdict
from mt.evaluation.formatting import error_bars
from mt.evaluation.systems import System
from mt.metrics.significance import Interval
from mt.reporting.figures import COLOURS, colour_of, mark_of, new_figure, quiet
from mt.reporting.heat_map import draw_heat_map, legible
from mt.translation.results import SentenceAttention


def scores_with_intervals(systems: Sequence[System], verdicts: Sequence[Verdict]) -> Figure:
    """Draw the BLEU of each system (the mean over its seeds) with its 95 % bootstrap interval over sentences."""
    intervals = [verdicts[0].test("BLEU").baseline, *(verdict.test("BLEU").system for verdict in verdicts)]
    rows = [(number, system.name, intervals[number]) for number, system in enumerate(systems)]
    return _intervals(rows, "test BLEU, 95 % interval")[0]


def _intervals(rows: Sequence[tuple[int, str, Interval]], label: str) -> tuple[Figure, Axes]:
    """Draw a dot with its interval for each row (number, name, interval). The number selects colour and mark."""
    figure, axes = new_figure(6.8, 1.1 + 0.4 * len(rows))
    for height, (number, _, interval) in enumerate(rows):
        axes.errorbar(
            interval.score,
            -height,
            xerr=error_bars([interval]),
            fmt=mark_of(number),
            capsize=5,
            color=colour_of(number),
        )
    axes.set_yticks([-height for height in range(len(rows))], [legible(name) for _, name, _ in rows])
    axes.set(ylim=(0.6 - len(rows), 0.4), xlabel=label)
    return figure, axes


def differences(verdicts: Sequence[Verdict]) -> Figure:
    """Draw the BLEU of each system minus the baseline's.

    Each has an interval over sentences and, where there are several seeds, one over seeds. If an interval does not
    reach zero, chance of that kind hardly explains the difference.
    """
    rows = []
    for number, verdict in enumerate(verdicts, 1):
        rows.append((number, f"{verdict.system}, over sentences", verdict.test("BLEU").difference))
        seeds = verdict.over_seeds.get("BLEU")
        if seeds and math.isfinite(seeds.low):
            rows.append((number, f"{verdict.system}, over seeds", Interval(seeds.difference, seeds.low, seeds.high)))
    figure, axes = _intervals(rows, f"BLEU minus that of {legible(verdicts[0].baseline)}, with intervals")
    axes.axvline(0, color="black", linewidth=0.8)
    return figure


def learning_curves(systems: Sequence[System]) -> Figure:
    """Draw validation BLEU and training loss against minutes of training and against target tokens."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    panels = figure.subplots(2, 2, sharex="col", sharey="row")
    for number, system in enumerate(systems):
        for seed, run in enumerate(system.runs):
            for axes_row, split, key in zip(panels, ("valid", "train"), ("bleu", "loss"), strict=True):
                lines = [line for line in run.metrics if line["split"] == split and line[key] is not None]
                for axes, abscissa, unit in zip(axes_row, ("seconds", "target_tokens"), (60, 1e6), strict=True):
                    axes.plot(
                        [line[abscissa] / unit for line in lines],
                        [line[key] for line in lines],
                        color=colour_of(number),
                        marker=mark_of(number) if key == "bleu" else None,
                        label=legible(system.name) if seed == 0 else None,
                    )
    panels[0][0].set_ylabel("validation BLEU")
    panels[1][0].set(xlabel="minutes of training", ylabel="training loss (what is minimised)")
    panels[1][1].set_xlabel("million target tokens")
    panels[0][0].legend()
    for axes in panels.flat:
        quiet(axes)
    return figure


def by_group(systems: Sequence[System], groups: Sequence[Group], label: str, measure: str) -> Figure:
    """Draw a line for each system over groups of sentences or words."""
    figure, axes = new_figure(6.8, 3.6)
    for number, system in enumerate(systems):
        shift = 0.06 * (number - (len(systems) - 1) / 2)
        axes.errorbar(
            [position + shift for position in range(len(groups))],
            [group.scores[number] for group in groups],
            yerr=[group.half_widths[number] if group.half_widths else 0 for group in groups],
            color=colour_of(number),
            marker=mark_of(number),
            capsize=3,
            label=legible(system.name),
        )
    axes.set_xticks(range(len(groups)), [f"{group.label}\n({group.count:,})" for group in groups])
    axes.set(xlabel=label, ylabel=measure)
    axes.legend()
    return figure


def chrf_differences(system: str, differences: Sequence[float]) -> Figure:
    """Draw a histogram of the sentences' differences in chrF2. The system is better to the right of zero."""
    figure, axes = new_figure(6.8, 3.2)
    limit = 60.0
    axes.hist(np.clip(differences, -limit, limit), bins=61, range=(-limit, limit), color=COLOURS[2])
    axes.axvline(0, color="black", linewidth=0.8)
    label = f"gain in chrF2 by {legible(system)} (beyond ±{limit:.0f} in the last bars)"
    axes.set(yscale="symlog", xlabel=label, ylabel="sentences")
    return figure


def mean_attention(name: str, attention: SentenceAttention) -> Figure:
    """Draw the mean cross-attention of all heads and layers, with the pieces on both axes."""
    title = "" if len(attention.cross()) == 1 and len(attention.cross()[0]) == 1 else ", mean of all heads and layers"
    return _maps(attention, [[mean_cross_attention(attention)]], [[legible(name) + title]], labelled=True)


def every_attention(attention: SentenceAttention) -> Figure:
    """Draw the cross-attention of every head, with a row for each layer and the mean of its heads at the end."""
    layers = [[*heads, heads.mean(dim=0)] for heads in attention.cross()]
    titles = [
        [*(f"layer {depth}, head {head}" for head in range(len(maps) - 1)), f"layer {depth}, mean"]
        for depth, maps in enumerate(layers)
    ]
    return _maps(attention, layers, titles, labelled=False)


def _maps(
    attention: SentenceAttention, maps: Sequence[Sequence[Tensor]], titles: Sequence[Sequence[str]], labelled: bool
) -> Figure:
    """Draw a grid of maps, each (T, S)."""
    sources, targets = attention.source_pieces, attention.target_pieces
    across, down = (0.27, 0.22) if labelled else (0.15, 0.14)
    size = max(3.2 if labelled else 1.6, 0.9 + across * len(sources)), 0.9 + down * len(targets)
    figure = Figure(figsize=(size[0] * len(maps[0]), size[1] * len(maps)), layout="constrained")
    grid = figure.subplots(len(maps), len(maps[0]), squeeze=False)
    for axes_row, map_row, title_row in zip(grid, maps, titles, strict=True):
        for axes, weights, title in zip(axes_row, map_row, title_row, strict=True):
            draw_heat_map(axes, weights, (sources, targets), title, font_size=8 if labelled else 5)
    return figure


def entropies(systems: Sequence[System], attentions: Sequence[Sequence[AttentionEntropy]]) -> Figure:
    """Draw the entropy of each head as a share of the largest possible one.

    Dark heads attend to one piece, bright ones to all pieces equally.
    """
    rows = [
        (f"{system.name}: {_short(entropy.attention)}", entropy.share_of_possible)
        for system, of_system in zip(systems, attentions, strict=True)
        for entropy in of_system
    ]
    heads = max(len(values) for _, values in rows)
    figure, axes = new_figure(4.2 + 0.6 * heads, 1.1 + 0.3 * len(rows))
    table = np.full((len(rows), heads), np.nan)
    for number, (_, values) in enumerate(rows):
        table[number, : len(values)] = values
        for head, value in enumerate(values):
            axes.text(head, number, f"{value:.2f}", ha="center", va="center", color="white" if value < 0.6 else "black")
    axes.grid(False)
    axes.imshow(table, vmin=0, vmax=1, cmap="viridis", aspect="auto")
    axes.set_yticks(range(len(rows)), [legible(name) for name, _ in rows])
    axes.set_xticks(range(heads), [f"head {head}" for head in range(heads)])
    return figure


def scaling(results: Scaling) -> Figure:
    """Draw the distribution of q·k before and after the division by √d, and the mean softmax weights of each."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    scores, weights = figure.subplots(1, 2, width_ratios=(3, 2))
    ranks = np.arange(1, len(results.raw_weights) + 1)
    scaled = f"q·k / √{results.key_width}"
    for product, sample, deviation, shares, colour, shift in (
        ("q·k", results.raw_sample, results.raw_deviation, results.raw_weights, COLOURS[1], -0.2),
        (scaled, results.scaled_sample, results.scaled_deviation, results.scaled_weights, COLOURS[0], 0.2),
    ):
        label = f"{product} (deviation {deviation:.1f})"
        scores.hist(sample, bins=120, density=True, alpha=0.6, label=label, color=colour)
        weights.bar(ranks + shift, shares, width=0.4, label=f"softmax of {product}", color=colour)
    scores.set(xlabel="score", ylabel="density")
    weights.set(xticks=ranks, xlabel="key, the likeliest first", ylabel="mean weight")
    for axes in (scores, weights):
        axes.legend()
        quiet(axes)
    return figure


def _short(attention: str) -> str:
    """Shorten a module name: ``decoder.layers.0.cross_attention`` becomes ``decoder 0 cross``."""
    return attention.replace(".layers", "").replace("_attention", "").replace(".", " ")
