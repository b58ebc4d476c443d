"""The pictures of the page, by name."""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from mt.evaluation.comparison.differences import Group
from mt.evaluation.comparison.findings import Findings
from mt.evaluation.plots import interval_bars
from mt.evaluation.systems import System
from mt.metrics.significance import Interval
from mt.reporting.figures import colour_of, mark_of, quiet
from mt.reporting.heat_map import draw_heat_map, legible
from mt.reporting.pages import Picture, as_picture
from mt.translation.results import SentenceAttention

Maps = Mapping[int, Sequence[SentenceAttention | None]]
"""The attention of each system on some test sentences, by their number from 0."""


def draw_pictures(findings: Findings, systems: Sequence[System], maps: Maps) -> dict[str, Picture]:
    """Draw the pictures. The names of attention maps end with the numbers of sentence and system, from 0."""
    return {name: as_picture(figure) for name, figure in _figures(findings, systems, maps)}


def _figures(findings: Findings, systems: Sequence[System], maps: Maps) -> Iterator[tuple[str, Figure]]:
    yield "differences", differences(findings)
    if trained := [system for system in systems if system.runs]:
        yield "curves", learning_curves(trained)
    names = [system.name for system in systems]
    yield "length", by_group(names, findings.bleu_by_length, f"BLEU by length of the {findings.length_of}")
    if findings.word_f1_by_training_frequency:
        yield "frequency", by_group(names, findings.word_f1_by_training_frequency, "word F1 by count in training")
    for row, attentions in maps.items():
        for number, attention in enumerate(attentions):
            if attention:
                yield f"mean {row} {number}", mean_attention(names[number], attention)
                yield f"heads {row} {number}", every_attention(attention)


def differences(findings: Findings) -> Figure:
    """Draw the BLEU of each system minus the baseline's.

    Each has an interval over sentences and, where there are several seeds, one over seeds. If an interval does not
    reach zero, chance of that kind hardly explains the difference.
    """
    bars = {}
    for verdict in findings.verdicts:
        bars[f"{verdict.system}, over sentences"] = verdict.test("BLEU").difference
        seeds = verdict.over_seeds.get("BLEU")
        if seeds and math.isfinite(seeds.low):
            bars[f"{verdict.system}, over seeds"] = Interval(seeds.difference, seeds.low, seeds.high)
    label = f"BLEU minus that of {legible(findings.systems[0].name)}, with intervals"
    return interval_bars([*bars], {"": [*bars.values()]}, label)


def by_group(names: Sequence[str], groups: Sequence[Group], label: str) -> Figure:
    """Draw the scores of the systems over groups of sentences or words."""
    series = {}
    for number, name in enumerate(names):
        scores = [(group.scores[number], group.half_widths[number] if group.half_widths else 0) for group in groups]
        series[name] = [Interval(score, score - width, score + width) for score, width in scores]
    return interval_bars([f"{group.label} ({group.count:,})" for group in groups], series, f"{label} (number)")


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


def mean_attention(name: str, attention: SentenceAttention) -> Figure:
    """Draw the mean cross-attention of all heads and layers, with the pieces on both axes."""
    mean = torch.stack([heads.mean(dim=0) for heads in attention.cross()]).mean(dim=0)
    return _maps(attention, [[mean]], [[f"{legible(name)}, mean of all heads and layers"]], (3.2, 0.27, 0.22, 8))


def every_attention(attention: SentenceAttention) -> Figure:
    """Draw the cross-attention of every head, with a row for each layer."""
    layers = [[*heads] for heads in attention.cross()]
    titles = [[f"layer {depth}, head {head}" for head in range(len(heads))] for depth, heads in enumerate(layers)]
    return _maps(attention, layers, titles, (1.6, 0.15, 0.14, 5))


def _maps(
    attention: SentenceAttention,
    maps: Sequence[Sequence[Tensor]],
    titles: Sequence[Sequence[str]],
    sizes: tuple[float, float, float, float],
) -> Figure:
    """Draw a grid of maps, each (T, S).

    Args:
        sizes: The least width of a map, the width and height of a piece (all in inches), and the size of the font.
    """
    min_width, width, height, font_size = sizes
    sources, targets = attention.source_pieces, attention.target_pieces
    map_size = max(min_width, 0.9 + width * len(sources)), 0.9 + height * len(targets)
    figure = Figure(figsize=(map_size[0] * len(maps[0]), map_size[1] * len(maps)), layout="constrained")
    grid = figure.subplots(len(maps), len(maps[0]), squeeze=False)
    for axes_row, map_row, title_row in zip(grid, maps, titles, strict=True):
        for axes, weights, title in zip(axes_row, map_row, title_row, strict=True):
            draw_heat_map(axes, weights, (sources, targets), title, font_size)
    return figure
