"""Attention as a picture, whatever script the tokens are in."""

import io
import warnings

import torch

from mt.reporting import figures as module
from mt.reporting.figures import heat_map


def test_missing_letters_are_reported_once(caplog, monkeypatch):
    monkeypatch.setattr(module, "_fonts", lambda: ["DejaVu Sans"])
    module._warn_once_of_missing_letters.cache_clear()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Glyph .* missing from")
        for sources in (["▁bread", "é"], ["▁रोटी", "ขนม"], ["▁रोटी"]):
            weights = torch.rand(2, len(sources))
            heat_map(weights, (sources, ["$x_{$", "_y"]), "title").savefig(io.BytesIO())
            expected = [record.message for record in caplog.records]
            assert expected == [] or sources[0] == "▁रोटी"
    assert len(expected) == 1 and "boxes for letters that are not in DejaVu Sans" in expected[0]


def test_heat_map_rows_are_target_tokens():
    weights = torch.tensor([[0.1, 0.9, 0.0], [0.2, 0.3, 0.5]])
    axes, color_bar = heat_map(weights, (["a", "b", "c"], ["x", "y"]), "title").axes
    assert torch.equal(torch.tensor(axes.images[0].get_array()), weights)
    assert axes.images[0].get_clim() == color_bar.get_ylim() == (0, 1)  # so that maps can be compared
    assert (axes.get_title(), axes.get_aspect()) == ("title", "auto")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]
