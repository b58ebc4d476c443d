"""An interrupted translation of lines goes on where it was."""

import os

import pytest

from mt.config import TranslateConfig
from mt.core.errors import Interrupted
from mt.documents.command import translate
from mt.translation.translator import Translator
from tests import toy

LINES = [*toy.sentences(9, seed=3), "", "ba https://example.org/7"]


@pytest.fixture
def command(tmp_path, shared_runs, monkeypatch):
    """Translates in windows of four lines, up to a number of windows; returns how many were translated."""
    monkeypatch.setattr("mt.translation.windows.WINDOW_LINES", 4)
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    (tmp_path / "reference.txt").write_text("".join(f"{line}\n" for line in LINES[::-1]))
    folder, hypotheses, score = str(shared_runs["transformer-1"]), Translator.hypotheses, Translator.score

    def run(windows=100, output="out.txt", **decoding):
        done = []

        def counted(method):
            def call(*arguments, **options):
                if len(done) == windows:
                    raise Interrupted(15, "terminated")
                done.append(method)
                return method(*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            patch.setattr(Translator, "hypotheses", counted(hypotheses))
            patch.setattr(Translator, "score", counted(score))
            reference = decoding.pop("reference", None)
            config = {
                "run": folder, "input": str(tmp_path / "in.txt"), "device": "cpu",
                "threads": 1, "output": str(tmp_path / output), "reference": reference, "decoding": decoding,
            }  # fmt: skip
            translate(TranslateConfig.model_validate(config))
        return len(done)

    return run


@pytest.mark.parametrize("kind", ["translated", "aligned", "n-best", "scored"])
def test_an_interrupted_command_goes_on_with_the_next_window(tmp_path, command, kind):
    alignments, whole_alignments = tmp_path / "links", tmp_path / "whole-links"
    settings = {
        "translated": {},
        "aligned": {"alignments": str(alignments)},
        "n-best": {"n_best": 2},
        "scored": {"reference": str(tmp_path / "reference.txt")},
    }[kind]
    other_path = {"alignments": str(whole_alignments)} if kind == "aligned" else {}
    assert command(output="whole.txt", **settings | other_path) == 3
    with pytest.raises(Interrupted):
        command(2, **settings)
    with (tmp_path / "out.txt.partial").open("a") as partial:
        partial.write("of the next window, when the process was killed\nba")
    assert command(**settings) == 1
    assert (tmp_path / "out.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()
    if kind == "aligned":
        assert alignments.read_bytes() == whole_alignments.read_bytes()
    assert not list(tmp_path.glob("*.partial*"))


def test_another_command_begins_anew(tmp_path, command):
    with pytest.raises(Interrupted):
        command(2)
    with pytest.raises(Interrupted):
        command(0, beam_size=1)  # other settings
    assert not list(tmp_path.glob("*.partial*"))
    with pytest.raises(Interrupted):
        command(1)
    (tmp_path / "in.txt").write_text("ba\n" * len(LINES))
    assert command() == 3
    assert len(set((tmp_path / "out.txt").read_text().splitlines())) == 1


def test_a_damaged_record_or_output_begins_anew(tmp_path, command):
    with pytest.raises(Interrupted):
        command(2)
    os.truncate(tmp_path / "out.txt.partial", 3)
    with pytest.raises(Interrupted):
        command(2)
    (tmp_path / "out.txt.partial.json").write_text("{")
    assert command() == 3
