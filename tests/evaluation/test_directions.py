"""Runs of several directions are scored in each of them."""

import json
import logging

import pytest

from mt.config import CompareConfig, EvaluationConfig, RobustnessConfig
from mt.core.errors import InputError
from mt.core.language import AskedDirection
from mt.evaluation.comparison.command import compare, evaluate
from mt.evaluation.robustness.command import measure_robustness
from mt.evaluation.systems import directions_to_score, open_systems
from mt.storage.run_folder import read_results, read_scored
from mt.training.command import train
from tests import toy

QUICK = {"studied_sentences": 2, "timed_sentences": 2, "randomization_trials": 100, "bootstrap_samples": 100}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("directions")
    toy.write_corpus(folder, "reverse", train=300)
    train(toy.config(folder, "both", data={"reverse": True}))
    train(toy.config(folder, "single"))
    return folder


def test_compare_runs_in_common_directions(folder, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    runs = {"first": str(folder / "runs" / "both"), "second": str(folder / "runs" / "single")}
    assert directions_to_score(CompareConfig(**runs)) == [AskedDirection("xx", "yy")]
    compare(CompareConfig(**runs, output=str(tmp_path), **QUICK))
    report = json.loads((tmp_path / "comparison.json").read_text())
    results = read_results(folder / "runs" / "both")["directions"]["xx-yy"]
    assert report["direction"] == "xx→yy"
    assert report["systems"][0]["scores"]["BLEU"]["mean"] == pytest.approx(results["bleu"])


def test_open_systems_selects_lines_of_direction(folder):
    lines = read_scored(folder / "runs" / "both")
    config = EvaluationConfig(run=str(folder / "runs" / "both"))
    for number, asked in enumerate(directions_to_score(config)):
        evaluation, (system,) = open_systems(config, asked)
        own = slice(40 * number, 40 * (number + 1))
        assert (evaluation.source_language, evaluation.target_language) == asked[:2]
        assert evaluation.sources == lines["source"][own] and evaluation.references == lines["reference"][own]
        assert system.first.hypotheses == lines["hypothesis"][own]
        (validation, _) = system.first.run.validations
        assert validation["bleu"] == validation[f"{evaluation.key}.bleu"]


def test_evaluate_prints_directions_and_mean(folder, tmp_path, capsys):
    output = tmp_path / "scores.json"
    evaluate(EvaluationConfig(run=str(folder / "runs" / "both"), output=str(output), bootstrap_samples=100))
    chrf = [own["scores"]["chrF2"]["score"] for own in json.loads(output.read_text())["directions"].values()]
    assert len(chrf) == 2
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("mean"))
    assert row.split()[2] == f"{sum(chrf) / 2:.2f}"


def test_evaluate_given_test_set_in_direction(folder):
    files = {"source": str(folder / "test.yy"), "references": str(folder / "test.xx")}
    run = str(folder / "runs" / "both")
    config = EvaluationConfig(run=run, **files, source_language="yy", target_language="xx", bootstrap_samples=100)
    evaluate(config)
    evaluation, (system,) = open_systems(config, *directions_to_score(config))
    assert system.first.asked == AskedDirection("yy", "xx") and evaluation.direction == "yy→xx"


def test_robustness_reports_each_direction(folder, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    measure_robustness(RobustnessConfig(run=str(folder / "runs" / "both"), output=str(tmp_path), sentences=3))
    languages = {}
    for key in ("xx-yy", "yy-xx"):
        report = json.loads((tmp_path / key / "robustness.json").read_text())
        languages[key] = f"{report['source_language']}-{report['target_language']}"
    assert languages == {"xx-yy": "xx-yy", "yy-xx": "yy-xx"}
    assert "mean loss of BLEU over 2 directions" in caplog.text


def test_evaluate_refuses_unknown_direction(folder):
    config = EvaluationConfig(run=str(folder / "runs" / "both"), target_language="zz")
    with pytest.raises(InputError, match="was not trained for"):
        evaluate(config)
