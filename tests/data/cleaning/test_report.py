"""Histograms of the scores of cleaning rules: counts and plots."""

from types import SimpleNamespace

import numpy as np
import pytest

from mt.data.cleaning.command import BINS, plot_histogram, score_histogram

SCORES = np.array([*np.linspace(-4, 4, 999), np.nan])
DROPPED = SCORES > 2
RANDOM = np.array([-99.0, 3.0, 99.0])


@pytest.mark.parametrize("random", [RANDOM, None])
def test_score_histogram_counts_and_plots_scores(random):
    findings = SimpleNamespace(
        rules=["other", "length"],
        by_split={"train": np.where(DROPPED, 2, np.arange(len(SCORES)) % 2)},
        scores={"length": np.append(SCORES, [0.5] * 100)},  # those of the held-out pairs come last
        random_scores={} if random is None else {"length": random},
    )
    histogram = score_histogram(findings, "length")
    edges = np.array(histogram["edges"])
    assert len(edges) == BINS + 1 and (edges[0], edges[-1]) == pytest.approx((-4, 4), abs=0.01)
    expected = [np.histogram(np.clip(scores, edges[0], edges[-1]), edges)[0].tolist() for scores in (
        SCORES[:-1], SCORES[DROPPED], RANDOM)]  # fmt: skip
    counts = [histogram["pairs"], histogram["found"], histogram["random"]]
    assert counts == expected[: 2 if random is None else 3] + [None] * (random is None)
    assert sum(counts[0]) == 999 and sum(counts[1]) == DROPPED.sum() == 250

    (axes,) = plot_histogram(histogram).axes
    assert [patch.get_data().values.tolist() for patch in axes.patches] == [each for each in counts if each]
    labels = ["all pairs", "dropped by this rule: 250", "matched at random"][: len(axes.patches)]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == labels


def test_score_histogram_without_scores_is_empty():
    scores = {"length": np.full(2, np.nan)}
    findings = SimpleNamespace(rules=["length"], by_split={"train": np.zeros(2)}, scores=scores, random_scores={})
    histogram = score_histogram(findings, "length")
    assert histogram["pairs"] == histogram["found"] == [0] * BINS
    assert len(plot_histogram(histogram).axes) == 1
