"""What pictures show is what the tables say."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mt.config import TrainConfig
from mt.evaluation.comparison.command import (
    plot_attention_heads,
    plot_differences,
    plot_groups,
    plot_learning_curves,
    plot_mean_attention,
)
from mt.evaluation.comparison.findings import Contrast, Group
from mt.evaluation.comparison.verdict import PairedScores
from mt.evaluation.runs import Run
from mt.evaluation.systems import Output, System
from mt.metrics.significance import SIGNIFICANCE_LEVEL, Interval, SeedTest
from mt.models.attention import AttentionMap
from mt.reporting.figures import plot_intervals
from mt.translation.results import SentenceAttention


def _output(seed, metrics=()):
    run = Run(Path("run"), TrainConfig.model_construct(seed=seed), {}, {}, list(metrics))
    return Output(Path("run"), [], run)


def _system(name, metrics=()):
    return System(name, [_output(1, metrics)])


def _paired(n):
    # The middle of the interval is not the score.
    ends = Interval(20 + n, 18.5 + n, 22.5 + n), Interval(30 + n, 27 + n, 31 + n), Interval(10, 8.0, 11.0)
    return [PairedScores("BLEU", "", *ends, 1, False, 9, True)]


def _findings(*over_seeds):
    """Of one verdict for each result over seeds."""
    verdicts = [Contrast("A", "B", _paired(0), seeds, SIGNIFICANCE_LEVEL, "", {}, [], [], []) for seeds in over_seeds]
    return SimpleNamespace(systems=[SimpleNamespace(name="A")], verdicts=verdicts)


def _points(axes):
    return [
        line.get_xdata().tolist() for line in axes.lines if line.get_linestyle() == "None" and line.get_marker() in "os"
    ]


def _ends(axes):
    return [segment[:, 0].tolist() for lines in axes.collections for segment in lines.get_segments()]


def test_plot_differences_shows_intervals_over_sentences_and_seeds():
    (axes,) = plot_differences(_findings({"BLEU": SeedTest(9.0, 0.2, -1.0, 19.0, 10.0)})).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["B, over sentences", "B, over seeds"]
    assert _points(axes) == [[10, 9]] and _ends(axes) == [pytest.approx([8, 11]), pytest.approx([-1, 19])]
    (axes,) = plot_differences(_findings({"BLEU": SeedTest(1.0, None, -math.inf, math.inf, math.inf)})).axes
    assert _points(axes) == [[10]]


def test_plot_learning_curves_over_minutes_and_tokens():
    metrics = [
        {"split": "valid", "bleu": 20.0, "seconds": 120, "target_tokens": 2_000_000},
        {"split": "valid", "bleu": None, "seconds": 150, "target_tokens": 2_500_000},
    ]
    panels = plot_learning_curves([_system("A", metrics)]).axes
    points = [[(*line.get_xdata(), *line.get_ydata()) for line in axes.lines] for axes in panels]
    assert points == [[(2, 20)], [(2, 20)]]


def test_plot_groups_shows_each_system():
    groups = [Group("1–5", 10, [20.0, 30.0], [1.0, 2.0]), Group("6–9", 5, [25.0, 15.0], [])]
    figure = plot_groups(["A", "B"], groups, "BLEU by length")
    (axes,) = figure.axes
    assert _points(axes) == [[20, 25], [30, 15]] and _ends(axes) == [[19, 21], [25, 25], [28, 32], [15, 15]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1–5 (10)", "6–9 (5)"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A", "B"]


def test_plot_intervals_with_score_outside_its_interval():
    (axes,) = plot_intervals(["a"], {"A": [Interval(5, 6, 7)]}, "x").axes
    assert _ends(axes) == [[5, 7]]


def test_plot_intervals_without_widths_has_no_lines():
    assert _ends(plot_intervals(["a"], {"A": [Interval(5, 5, 5)]}, "x").axes[0]) == []


def test_plot_intervals_height_grows_with_rows():
    sizes = [plot_intervals(["a"] * rows, {"A": [Interval(1, 0, 2)] * rows}, "x").get_size_inches() for rows in (2, 12)]
    assert 0.2 < (sizes[1][1] - sizes[0][1]) / 10 < 0.6


def test_plot_attention_shows_heads_and_mean():
    torch.manual_seed(0)
    layers = [torch.rand(1, 2, 3, 4) for _ in range(2)]
    maps = {f"decoder.layers.{n}.cross_attention": AttentionMap(weights, None) for n, weights in enumerate(layers)}
    attention = SentenceAttention(list("abcd"), list("xyz"), maps)
    axes, _ = plot_mean_attention("A", attention).axes  # and the scale of colors
    assert torch.allclose(torch.tensor(axes.images[0].get_array()), torch.cat(layers).mean(dim=(0, 1)))
    maps = plot_attention_heads(attention).axes
    assert (maps[0].get_title(), maps[1].get_title()) == ("layer 1, head 1", "layer 1, head 2")
    shown = [torch.tensor(axes.images[0].get_array()) for axes in maps]
    expected = [each for layer in layers for each in layer[0]]
    assert all(torch.allclose(ours, theirs) for ours, theirs in zip(shown, expected, strict=True))


def test_plot_mean_attention_size_grows_with_tokens():
    def inches(sources, targets):
        weights = {"cross_attention": AttentionMap(torch.rand(1, 2, targets, sources), None)}
        return plot_mean_attention("A", SentenceAttention(["a"] * sources, ["x"] * targets, weights)).get_size_inches()

    for side, larger in ((0, inches(30, 20)), (1, inches(20, 30))):
        grown = larger - inches(20, 20)
        assert 0.13 < grown[side] / 10 < 0.3 and grown[1 - side] == 0
