"""``python -m mt compare … robustness=true``: the comparison names, links and contains what the robustness is."""

import json
import logging
import re

import pytest

from mt.config import CompareConfig, RobustnessConfig
from mt.core.errors import InputError
from mt.evaluation.comparison.command import compare
from mt.evaluation.robustness.command import measure_robustness
from mt.storage.run_folder import read_config, write_config
from tests import toy

pytestmark = pytest.mark.slow

FAST = dict.fromkeys(("bootstrap_samples", "randomization_trials"), 120) | {"threads": 1, "device": "cpu"}
FAST |= dict.fromkeys(("studied_sentences", "timed_sentences"), 0)


@pytest.fixture(scope="module")
def compared(runs, tmp_path_factory):
    """The folder of a comparison with several seeds of the first system, and the folders of its runs."""
    place = tmp_path_factory.mktemp("beside")
    other = toy.copy_to_change(runs[0], place / "seed-3")
    write_config(other, read_config(other).model_copy(update={"seed": 3}))
    toy.record_checksums(other)
    output = place / "out"
    systems = (str(other), str(runs[0])), str(runs[1])
    compare(CompareConfig(first=systems[0], second=systems[1], robustness=True, output=str(output), **FAST))
    return output, runs


def test_the_measured_runs_are_the_first_of_each_side(compared):
    output, runs = compared
    numbers = json.loads((output / "comparison.json").read_text())["robustness"]
    assert numbers["runs"] == [str(runs[0]), str(runs[1])]  # in the order of their seeds, not as they were given
    measured = json.loads((output / numbers["json"]).read_text())
    assert [run["folder"] for run in measured["runs"]] == numbers["runs"]


def test_it_is_what_the_command_of_its_own_measures(compared, tmp_path):
    output, runs = compared
    alone = RobustnessConfig(run=str(runs[0]), second=str(runs[1]), output=str(tmp_path), threads=1, device="cpu")
    measure_robustness(alone)
    for name in ("robustness.json", "robustness.md", "robustness.html"):
        assert (tmp_path / name).read_text() == (output / name).read_text()


def test_page_and_text_link_the_page_and_tell_what_was_found(compared):
    output, runs = compared
    page, markdown = ((output / name).read_text() for name in ("report.html", "comparison.md"))
    words = json.loads((output / "comparison.json").read_text())["robustness"]["words"]
    assert re.findall(r"href=\"([^\"]*)", page) == ["robustness.html"] and (output / "robustness.html").is_file()
    assert "(robustness.html)" in markdown and len(words) == 3
    for said in words:
        assert said in page.replace("&#39;", "'") and said in markdown.replace("\\", "")
    assert f"Measured: {runs[0]} and {runs[1]}. Of each system&#39;s first seed." in page
    assert "of the first seed of each system: " in markdown


def test_without_it_nothing_is_measured(runs, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        compare(CompareConfig(first=str(runs[0]), second=str(runs[1]), output=str(tmp_path), **FAST))
    assert json.loads((tmp_path / "comparison.json").read_text())["robustness"] is None
    assert "robustness" not in (tmp_path / "comparison.md").read_text() + caplog.text
    assert "href" not in (tmp_path / "report.html").read_text()
    assert not list(tmp_path.glob("robustness*"))


def test_what_cannot_be_measured_is_refused_before_any_work(runs, tmp_path):
    theirs = tmp_path / "theirs.txt"
    theirs.write_bytes((runs[0] / "scored/test.hypothesis").read_bytes())
    output = tmp_path / "out"
    with pytest.raises(InputError, match="robustness=true: .*theirs.txt is a file of translations"):
        compare(CompareConfig(first=str(runs[0]), second=str(theirs), robustness=True, output=str(output), **FAST))
    assert not output.exists()
    with pytest.raises(ValueError, match="robustness=true is for two systems, and runs has 3"):
        CompareConfig(runs=("a", "b", "c"), robustness=True)


def test_no_earlier_report_links_new_files_if_it_is_stopped(runs, tmp_path, monkeypatch):
    config = CompareConfig(first=str(runs[0]), second=str(runs[1]), robustness=True, output=str(tmp_path), **FAST)
    names = "report.html", "comparison.md", "comparison.json", "robustness.html", "robustness.md", "robustness.json"
    for name in (*names, "mine.txt"):
        (tmp_path / name).write_text("earlier")

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mt.evaluation.comparison.command.measure_robustness", stopped)
    with pytest.raises(KeyboardInterrupt):
        compare(config)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_too_short_sentences_are_refused_before_an_earlier_report_is_removed(runs, tmp_path, monkeypatch):
    (tmp_path / "report.html").write_text("earlier")
    monkeypatch.setattr("mt.evaluation.robustness.variant_lines.MIN_WORDS", 10_000)
    with pytest.raises(InputError, match="no sentence of the test set has 10000 words or more"):
        compare(CompareConfig(first=str(runs[0]), second=str(runs[1]), robustness=True, output=str(tmp_path), **FAST))
    assert (tmp_path / "report.html").read_text() == "earlier"
