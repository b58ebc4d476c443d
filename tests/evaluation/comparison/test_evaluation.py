"""``python -m mt evaluate``: scores are sacreBLEU's, on the run's own test set and on another one."""

import json

import pytest
from sacrebleu.metrics import BLEU

from mt.translation.translator import Translator
from tests.in_process import call
from tests.training.runs import read_lines

OTHER_SET = ["source=valid.xx", "references=valid.yy"]


def _scores(folder, *words):
    done = call("evaluate", *words, f"output={folder / 'scores.json'}", folder=folder)
    assert done.returncode == 0, done.stderr
    content = json.loads((folder / "scores.json").read_text())
    for name, score in content["scores"].items():
        assert f"{name:<6} {score['score']:.2f}".split() == done.stdout[done.stdout.index(name) :].split()[:2]
        assert score["low"] < score["score"] < score["high"] and score["signature"] in done.stdout
    return content, done.stderr


def test_evaluate_scores_run_on_its_test_set(shared_runs):
    run = shared_runs["transformer-1"]
    content, _ = _scores(shared_runs.folder, f"run={run}")
    (test,) = (line for line in read_lines(run) if line["split"] == "test")
    keys = {"BLEU": "bleu", "chrF2": "chrf", "TER": "ter"}
    assert {key: content["scores"][name]["score"] for name, key in keys.items()} == {
        key: test[key] for key in keys.values()
    }
    assert content["lines"] == 40


def test_evaluate_scores_run_and_file_on_another_test_set(shared_runs):
    run, folder = shared_runs["transformer-1"], shared_runs.folder
    hypotheses = Translator.load(run).translate((folder / "valid.xx").read_text().splitlines())
    expected = BLEU().corpus_score(hypotheses, [(folder / "valid.yy").read_text().splitlines()]).score
    content, _ = _scores(folder, f"run={run}", *OTHER_SET)
    assert content["scores"]["BLEU"]["score"] == pytest.approx(expected)
    (folder / "theirs.txt").write_text("".join(f"{line}\n" for line in [*hypotheses[:-1], ""]))
    _, log = _scores(folder, "run=theirs.txt", *OTHER_SET, "target_language=yy")
    assert "theirs.txt has 1 empty line of 40, first line 40" in log


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["references=train.yy", "source=valid.xx"], "source=valid.xx has 40 lines and references=train.yy has 600"),
        (
            ["source=valid.xx"],
            "source=valid.xx is for a test set of your own: add references=FILE, or leave source out",
        ),
        (["references=valid.yy"], "source must be set"),
    ],
)
def test_evaluate_reports_missing_or_unequal_files(shared_runs, words, message):
    done = call("evaluate", f"run={shared_runs['transformer-1']}", *words, folder=shared_runs.folder)
    assert done.returncode == 2 and message in done.stderr
