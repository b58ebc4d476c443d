"""Missing runs are refused with the nearest run, before anything long is imported."""

from pathlib import Path

import pytest

from mt.storage.run_folder import is_hub_name, nearest_run
from tests.in_process import call


@pytest.fixture
def runs(tmp_path, monkeypatch):
    for name in ("runs/demo", "runs/large"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "model.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("runs/demoo", "did you mean runs/demo?"),
        ("demo", "did you mean runs/demo?"),
        ("runs/new", "give the folder of a run, such as runs/NAME"),
    ],
)
def test_nearest_run_hints_at_existing_run(runs, typed, hint):
    assert nearest_run(Path(typed)) == f"; {hint}"


def test_runs_is_not_an_owner_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_hub_name("Helsinki-NLP/opus-mt-en-fr") and not is_hub_name("runs/demo")


@pytest.mark.parametrize(
    "line",
    [
        "translate run=runs/demoo",
        "compare first=runs/large second=runs/demoo",
        "synthesize method=distillation run=[runs/large,runs/demoo] output=o.jsonl",
        "train training.init_from=runs/demoo",
    ],
)
def test_no_command_is_imported_for_a_missing_run(runs, line, monkeypatch):
    monkeypatch.setattr("mt.cli.command_line.load_function", None)
    done = call(*line.split(), folder=runs)
    assert done.returncode == 2
    assert done.stderr.endswith("=runs/demoo: no such folder or file; did you mean runs/demo?\n")


def test_a_run_that_exists_needs_its_base_no_more(runs, monkeypatch):
    started = []
    monkeypatch.setattr("mt.cli.command_line.load_function", lambda path: started.append)
    assert call("train", "name=demo", "training.init_from=runs/gone", folder=runs).returncode == 0
    assert started
