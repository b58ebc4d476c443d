"""What pictures show is what the tables say."""

import pytest

from mt.comparison.plots import scores_with_intervals
from mt.comparison.systems import Run, System
from mt.comparison.verdict import LEVEL, Verdict
from mt.config import TrainConfig
from mt.scoring import Interval, PairedScores


def test_dots_are_the_scores_and_rows_the_seeds():
    systems = [
        System(name, [Run(None, TrainConfig.model_construct(seed=seed), {}, {}, [], [], [], []) for seed in (7, 9)])
        for name in ("A", "B")
    ]
    # The middle of the interval is not the score.
    pairs = [
        [PairedScores("BLEU", Interval(20 + n, 20.5 + n, 2), Interval(30 + n, 29 + n, 2), 1, 1, "", "")] for n in (0, 1)
    ]
    (axes,) = scores_with_intervals(systems, [Verdict("A", "B", pairs, LEVEL, "")]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "A, seed 7",
        "A, seed 9",
        "B, seed 7",
        "B, seed 9",
    ]
    assert [dot.lines[0].get_xdata()[0] for dot in axes.containers] == [20, 21, 30, 31]
    ends = [dot.lines[2][0].get_segments()[0][:, 0].tolist() for dot in axes.containers]
    assert ends == [pytest.approx(pair) for pair in ([18.5, 22.5], [19.5, 23.5], [27, 31], [28, 32])]
