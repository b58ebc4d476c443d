"""Scores of other metrics and of people: read line by line, judged as BLEU is, doubted where they look wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

from mt.config import CompareConfig
from mt.core.errors import InputError
from mt.evaluation.comparison.command import compare
from mt.evaluation.comparison.verdict import block_counts, find_score_warnings, judge, read_scores
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.metrics.metric import Chrf
from tests import toy
from tests.in_process import call

REFERENCES = toy.sentences(40, 3)
SPOILT = [f"za {line}" if number % 2 else line for number, line in enumerate(REFERENCES)]
WORSE = [f"za za {line}" if number % 3 else line for number, line in enumerate(REFERENCES)]
GOOD = [f"{line} za" if number == 7 else line for number, line in enumerate(REFERENCES)]
EVALUATION = EvaluationSet(None, REFERENCES, None, "yy")


def _write(path, lines):
    toy.write_lines(path, lines)
    return str(path)


def _config(folder, scores, systems=("a", "b", "c"), **values):
    """Settings with the metric ``comet``. ``scores`` holds the lines of a file for each system, or lists of them."""
    files = [
        tuple(_write(folder / f"{number}.{seed}", lines) for seed, lines in enumerate(outputs))
        for number, outputs in enumerate(scores)
    ]
    return CompareConfig(runs=systems[: len(scores)], scores={"comet": files}, **values)


def _systems(*outputs):
    return [System(name, [Output(Path(name), lines)]) for name, lines in zip("abcd", outputs, strict=False)]


def _cautions(tmp_path, scores, systems, **values):
    given = read_scores(_config(tmp_path, [[lines] for lines in scores], **values), EVALUATION)
    return list(find_score_warnings(EVALUATION, systems, given))


def _chrf(lines):
    return Chrf("yy").segment_scores(lines, REFERENCES)


@pytest.mark.parametrize(
    ("third", "expected"),
    [
        ("nan", "line 3 “nan” is not a number"),
        ("inf", "line 3 “inf” is not a number"),
        ("1e999", "line 3 “1e999” is not a number of at most 1,000,000"),
        ("-1000001", "line 3 “-1000001” is not a number of at most 1,000,000"),
        ("", "line 3 is empty"),
        ("0,85", "line 3 “0,85” is not a number"),
        ("1_0", "line 3 “1_0” is not a number"),
        ("٣", "line 3 “٣” is not a number"),
        ("\N{REPLACEMENT CHARACTER}", "is not a number"),
        ("x" * 900, "(900 characters)"),
    ],
)
def test_read_scores_reports_line_without_number(tmp_path, third, expected):
    lines = [0.5] * 40
    config = _config(tmp_path, [[lines], [[*lines[:2], third, *lines[3:]]]])
    with pytest.raises(InputError, match=r"1\.0: line 3 ") as refused:
        read_scores(config, EVALUATION)
    assert expected in str(refused.value) and "on line n" in str(refused.value)


@pytest.mark.parametrize("count", [0, 39, 41])
def test_read_scores_requires_one_score_per_sentence(tmp_path, count):
    config = _config(tmp_path, [[[0.5] * 40], [[0.5] * count]])
    with pytest.raises(InputError, match=rf"1\.0 has {count} scores, but there are 40 test sentences"):
        read_scores(config, EVALUATION)


def test_read_scores_accepts_number_formats(tmp_path):
    lines = ["\N{BYTE ORDER MARK}0.5", " .25", "-1e-3\r", "+2.", "7", *["0"] * 35]
    (given,) = read_scores(_config(tmp_path, [[lines], [[0] * 40]]), EVALUATION)
    assert given.scores[Path("a")][:5].tolist() == [0.5, 0.25, -0.001, 2.0, 7.0]
    assert given.decimals == 4 and given.signature.startswith("mean of the scores in ")


def test_read_scores_keeps_order_of_listed_outputs(tmp_path):
    scores = [[[3] * 40, [1] * 40], [[2] * 40, [4] * 40]]
    given = read_scores(_config(tmp_path, scores, (("a2", "a1"), ("b1", "b2"))), EVALUATION)
    sorted_by_seed = [
        System("a", [Output(Path("a1"), SPOILT), Output(Path("a2"), SPOILT)]),
        System("b", [Output(Path("b1"), REFERENCES), Output(Path("b2"), REFERENCES)]),
    ]
    counts = block_counts(EVALUATION, sorted_by_seed, given)
    means = [given[0].score(system[given[0]].sum(axis=1)).tolist() for system in counts]
    assert means == [[1, 3], [2, 4]]
    (verdict,) = judge("AB", counts, 100, 1000)
    assert verdict.over_seeds["comet"].difference == 1 and not verdict.is_significant("comet")


def test_segment_scores_are_summed_by_source(tmp_path):
    evaluation = EvaluationSet([f"source {number // 8}" for number in range(40)], REFERENCES, "xx", "yy")
    given = read_scores(_config(tmp_path, [[[1] * 40], [[2] * 40]]), evaluation)
    (verdict,) = judge("AB", block_counts(evaluation, _systems(SPOILT, WORSE), given), 100, 1000)
    assert verdict.test("comet").differing_blocks == 5 and verdict.test("comet").p == 2 / 2**5


def test_better_setting_reverses_gain(tmp_path):
    noise = np.arange(40) % 3
    for better, gain in (
        ({"comet": "lower"}, 1),
        ({"all": "lower"}, 1),
        ({}, -1),
        ({"all": "lower", "comet": "higher"}, -1),
    ):
        given = read_scores(_config(tmp_path, [[3 + noise], [2 + noise]], better=better), EVALUATION)
        (verdict,) = judge("AB", block_counts(EVALUATION, _systems(SPOILT, REFERENCES), given), 100, 1000)
        assert verdict.test("comet").gain == gain and verdict.is_significant("comet")


# Warnings


def test_find_score_warnings_accepts_good_scores(tmp_path):
    systems = _systems(SPOILT, GOOD, WORSE)
    scores = [np.round(_chrf(system.first.hypotheses)) for system in systems]
    assert _cautions(tmp_path, scores, systems) == []


def test_find_score_warnings_reports_constant_scores(tmp_path):
    (expected,) = _cautions(tmp_path, [[0.25] * 40, _chrf(WORSE)], _systems(SPOILT, WORSE))
    assert expected == "comet: every sentence of a has the same score, 0.25"


def test_find_score_warnings_reports_equal_scores(tmp_path):
    scores = [_chrf(SPOILT)] * 2
    (expected,) = _cautions(tmp_path, scores, _systems(SPOILT, WORSE))
    assert expected == "comet: a and b have the same scores, and their translations differ"
    assert _cautions(tmp_path, scores, _systems(SPOILT, SPOILT)) == []


def test_find_score_warnings_reports_swapped_files(tmp_path):
    systems = _systems(SPOILT, GOOD)
    (expected,) = _cautions(tmp_path, [_chrf(GOOD), _chrf(SPOILT)], systems)
    assert expected == (
        "comet: a and b: mostly the sentences that are worse in chrF2 have the better score; check the order of the "
        "files, and better=higher or lower"
    )
    errors = [100 - np.array(_chrf(lines)) for lines in (SPOILT, GOOD)]
    assert _cautions(tmp_path, errors, systems, better={"all": "lower"}) == []
    assert "better=higher or lower" in _cautions(tmp_path, errors, systems)[0]


def test_find_score_warnings_accepts_uncorrelated_scores(tmp_path):
    random = np.random.default_rng(1)
    for _ in range(100):
        assert _cautions(tmp_path, random.normal(size=(2, 40)), _systems(SPOILT, WORSE)) == []


# The whole command


def test_compare_corrects_given_scores_with_other_metrics(tmp_path):
    for name, lines in (("a", SPOILT), ("b", REFERENCES), ("ref", REFERENCES)):
        _write(tmp_path / name, lines)
    _write(tmp_path / "a.comet", np.array(_chrf(SPOILT)) / 100)
    _write(tmp_path / "b.comet", np.array(_chrf(REFERENCES)) / 100)
    _write(tmp_path / "a.errors", [number % 2 for number in range(40)])
    _write(tmp_path / "b.errors", [0] * 40)
    words = (
        "first=a second=b references=ref target_language=yy output=o bootstrap_samples=100 randomization_trials=1000"
    )
    scores = "scores.comet=[a.comet,b.comet]", "scores.errors=[a.errors,b.errors]", "better.errors=lower"
    done = call("compare", *words.split(), *scores, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "o/comparison.json").read_text())
    (verdict,) = found["verdicts"]
    assert list(verdict["corrected_p"]) == ["BLEU", "chrF2", "TER", "comet", "errors"]
    signatures = {test["metric"]: test["signature"] for test in verdict["over_sentences"]}
    assert signatures["comet"] == "mean of the scores in a.comet, b.comet"
    gain = float(np.mean(_chrf(REFERENCES)) - np.mean(_chrf(SPOILT))) / 100
    assert f", comet (+{gain:.4f}) and errors (−0.5000)." in verdict["words"]
    assert found["cautions"] == [
        "b and the reference are the same",
        "comet: every sentence of b has the same score, 1",
        "errors: every sentence of b has the same score, 0",
    ]
    page, text = ((tmp_path / "o" / name).read_text() for name in ("report.html", "comparison.md"))
    for report in (page, text):
        assert "one family of 5 tests, BLEU, chrF2, TER, comet, errors of b." in report
        assert "errors (lower is better): mean of the scores in a.errors, b.errors" in report
    assert "| comet | errors |" in text and "| errors | " in text


def test_compare_with_wrong_scores_writes_no_report(tmp_path):
    paths = {name: _write(tmp_path / name, REFERENCES) for name in ("a", "b", "ref")}
    config = _config(
        tmp_path, [[[1] * 40], [[1] * 39]], (paths["a"], paths["b"]), references=paths["ref"], target_language="yy",
        output=str(tmp_path / "o"),
    )  # fmt: skip
    with pytest.raises(InputError, match="39 scores"):
        compare(config)
    assert not (tmp_path / "o").exists()
