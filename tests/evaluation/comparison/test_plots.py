"""What pictures show is what the tables say."""

import math
from pathlib import Path

import pytest
import torch

from mt.config import TrainConfig
from mt.evaluation.comparison.attention import AttentionEntropy, Scaling
from mt.evaluation.comparison.differences import Group
from mt.evaluation.comparison.plots import (
    by_group,
    chrf_differences,
    differences,
    entropies,
    every_attention,
    learning_curves,
    mean_attention,
    scaling,
    scores_with_intervals,
)
from mt.evaluation.comparison.verdict import PairedScores, Verdict
from mt.evaluation.runs import Run
from mt.evaluation.systems import Output, System
from mt.metrics.significance import SIGNIFICANCE_LEVEL, Interval, SeedTest
from mt.models.attention import AttentionMap
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


def test_dots_are_the_scores_of_the_systems():
    systems = [System(name, [_output(seed) for seed in (7, 9)]) for name in ("A", "B")]
    verdict = Verdict("A", "B", _paired(0), {}, [_paired(1), _paired(2)], SIGNIFICANCE_LEVEL)
    (axes,) = scores_with_intervals(systems, [verdict]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "B"]
    assert [dot.lines[0].get_xdata()[0] for dot in axes.containers] == [20, 30]
    ends = [dot.lines[2][0].get_segments()[0][:, 0].tolist() for dot in axes.containers]
    assert ends == [pytest.approx(pair) for pair in ([18.5, 22.5], [27, 31])]


def test_differences_are_shown_over_sentences_and_over_seeds():
    verdict = Verdict("A", "B", _paired(0), {"BLEU": SeedTest(9.0, 0.2, -1.0, 19.0, 10.0)}, [], SIGNIFICANCE_LEVEL)
    (axes,) = differences([verdict]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["B, over sentences", "B, over seeds"]
    assert [dot.lines[0].get_xdata()[0] for dot in axes.containers] == [10, 9]
    ends = [dot.lines[2][0].get_segments()[0][:, 0].tolist() for dot in axes.containers]
    assert ends == [pytest.approx([8, 11]), pytest.approx([-1, 19])]
    undecided = Verdict(
        "A", "B", _paired(0), {"BLEU": SeedTest(1.0, None, -math.inf, math.inf, math.inf)}, [], SIGNIFICANCE_LEVEL
    )
    assert len(differences([undecided]).axes[0].containers) == 1


def test_curves_are_over_minutes_and_million_tokens():
    metrics = [
        {"split": "train", "loss": 5.0, "seconds": 60, "target_tokens": 1_000_000},
        {"split": "valid", "bleu": 20.0, "seconds": 120, "target_tokens": 2_000_000},
        {"split": "train", "loss": None, "seconds": 150, "target_tokens": 2_500_000},
    ]
    panels = learning_curves([_system("A", metrics)]).axes
    points = [[(*line.get_xdata(), *line.get_ydata()) for line in axes.lines] for axes in panels]
    assert points == [[(2, 20)], [(2, 20)], [(1, 5)], [(1, 5)]]


def test_every_system_has_its_own_line_over_the_groups():
    groups = [Group("1–5", 10, [20.0, 30.0], [1.0, 2.0]), Group("6–9", 5, [25.0, 15.0], [])]
    (axes,) = by_group([_system("A"), _system("B")], groups, "length", "BLEU").axes
    assert [list(line.lines[0].get_ydata()) for line in axes.containers] == [[20, 25], [30, 15]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["A", "B"]
    spans = [segment[:, 1].tolist() for line in axes.containers for segment in line.lines[2][0].get_segments()]
    assert spans == [[19, 21], [25, 25], [28, 32], [15, 15]]


def test_gains_are_right_of_zero():
    (axes,) = chrf_differences("B", [5.0, 6.0, 200.0, -3.0]).axes
    counts = {"left": 0.0, "right": 0.0}
    for bar in axes.patches:
        counts["right" if bar.get_x() > 0 else "left"] += bar.get_height()
    assert counts == {"left": 1, "right": 3}


def test_maps_show_every_head_and_their_mean():
    torch.manual_seed(0)
    layers = [torch.rand(1, 2, 3, 4) for _ in range(2)]
    maps = {f"decoder.layers.{n}.cross_attention": AttentionMap(weights, None) for n, weights in enumerate(layers)}
    attention = SentenceAttention(list("abcd"), list("xyz"), maps)
    (axes,) = mean_attention("A", attention).axes
    assert torch.allclose(torch.tensor(axes.images[0].get_array()), torch.cat(layers).mean(dim=(0, 1)))
    shown = [torch.tensor(axes.images[0].get_array()) for axes in every_attention(attention).axes]
    expected = [each for layer in layers for each in (*layer[0], layer[0].mean(dim=0))]
    assert all(torch.allclose(ours, theirs) for ours, theirs in zip(shown, expected, strict=True))


def test_entropies_stand_in_their_rows():
    spreads = [
        [AttentionEntropy("decoder.layers.0.cross_attention", [1.0, 2.0], [0.25, 0.5])],
        [AttentionEntropy("attention", [1.0], [1.0])],
    ]
    (axes,) = entropies([_system("A"), _system("B")], spreads).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A: decoder 0 cross", "B: attention"]
    assert axes.images[0].get_array().filled(-1).tolist() == [[0.25, 0.5], [1.0, -1]]
    assert [text.get_text() for text in axes.texts] == ["0.25", "0.50", "1.00"]


def test_the_room_for_a_piece_of_a_map_depends_on_neither_their_number_nor_the_side():
    def inches(sources, targets, draw):
        weights = {"cross_attention": AttentionMap(torch.rand(1, 2, targets, sources), None)}
        return draw(SentenceAttention(["a"] * sources, ["x"] * targets, weights)).get_size_inches()

    for draw, maps in ((lambda attention: mean_attention("A", attention), 1), (every_attention, 3)):
        smallest, wider, higher = inches(20, 20, draw), inches(30, 20, draw), inches(20, 30, draw)
        for side, larger in ((0, wider), (1, higher)):
            grown = (larger - smallest) / (maps if side == 0 else 1)
            assert 0.13 < grown[side] / 10 < 0.3 and grown[1 - side] == 0


def test_products_and_weights_of_attention_are_shown_before_and_after_scaling():
    found = Scaling(64, 8.0, 1.0, [0.75, 0.25], [0.5, 0.4], [-8.0, 8.0], [-1.0, 1.0])
    products, weights = scaling(found).axes
    assert [text.get_text() for text in products.get_legend().get_texts()] == [
        "q·k (deviation 8.0)",
        "q·k / √64 (deviation 1.0)",
    ]
    shown = [[bar.get_height() for bar in bars] for bars in weights.containers]
    assert shown == [found.raw_weights, found.scaled_weights]
    spans = [(bars[0].get_x(), bars[-1].get_x() + bars[-1].get_width()) for bars in products.containers]
    assert spans == [pytest.approx((-8, 8)), pytest.approx((-1, 1))]
    places = [[round(bar.get_x(), 6) for bar in bars] for bars in weights.containers]
    assert places == [[0.6, 1.6], [1.0, 2.0]]  # side by side
    colours = [bars[0].get_facecolor()[:3] for axes in (products, weights) for bars in axes.containers]
    assert colours[:2] == colours[2:] and colours[0] != colours[1]


def test_the_room_for_a_head_and_for_a_row_does_not_depend_on_their_number():
    def inches(heads, rows):
        spreads = [
            AttentionEntropy(f"decoder.layers.{row}.attention", [1.0] * heads, [0.5] * heads) for row in range(rows)
        ]
        return entropies([_system("A")], [spreads]).get_size_inches()

    one, other = inches(2, 3), inches(12, 23)
    assert 0.4 < (other[0] - one[0]) / 10 < 1 and 0.2 < (other[1] - one[1]) / 20 < 0.5
    with_intervals = [
        differences([Verdict("A", "B", _paired(0), {}, [], SIGNIFICANCE_LEVEL)] * many).get_size_inches()
        for many in (2, 12)
    ]
    assert 0.2 < (with_intervals[1][1] - with_intervals[0][1]) / 10 < 0.6
