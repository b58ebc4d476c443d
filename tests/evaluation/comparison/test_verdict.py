"""Verdicts: the significance tests over sentences and over seeds (``judge``), and their sentences (``conclude``)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mt.config import TrainConfig
from mt.evaluation.comparison.findings import conclude
from mt.evaluation.comparison.verdict import PairedScores, Verdict, block_counts, judge, system_scores
from mt.evaluation.runs import Run
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.metrics.metric import Bleu, TextMetric
from mt.metrics.registry import METRICS, metrics_for
from mt.metrics.significance import SIGNIFICANCE_LEVEL, Interval, SeedTest
from mt.storage.model_description import ModelDescription
from tests import toy
from tests.calibration import FAMILIES, most_allowed, share_of_families_called_different

REFERENCES = toy.sentences(60, 3)


def _with_errors(rows, error="za "):
    return [error + line if number in rows else line for number, line in enumerate(REFERENCES)]


BAD, GOOD = _with_errors(range(0, 60, 3)), _with_errors([7])


def _system(name, *outputs, files=False):
    run = None if files else Run(Path(name), TrainConfig.model_construct(seed=1), {}, {}, [])
    model = None if files else ModelDescription.model_construct()
    return System(name, [Output(Path(name), list(lines), run, model) for lines in outputs])


def _counts(outputs, *others, sources=None):
    evaluation = EvaluationSet(sources or REFERENCES, REFERENCES, "xx", "yy")
    return block_counts(evaluation, [_system("A", *outputs), *(_system("B", *each) for each in others)])


def _judge(baseline, system, sources=None):
    (verdict,) = judge("AB", _counts(baseline, system, sources=sources), 200, 2000)
    return verdict


@pytest.mark.parametrize(("differing", "is_significant"), [(1, False), (5, False), (6, False), (7, True)])
def test_judge_needs_enough_differing_sentences(differing, is_significant):
    verdict = _judge([_with_errors(range(differing))], [REFERENCES])
    assert [test.p for test in verdict.over_sentences] == [2 / 2**differing] * 3
    assert verdict.corrected_p == dict.fromkeys(("BLEU", "chrF2", "TER"), min(1, 6 / 2**differing))
    assert verdict.is_significant("BLEU") == is_significant


def test_judge_finds_no_difference_between_equal_outputs():
    verdict = _judge([BAD], [BAD])
    assert all(test.p == 1 and test.difference == Interval(0, 0, 0) for test in verdict.over_sentences)


def test_judge_swaps_sentences_of_one_source_together():
    sources = [f"source {number // 3}" for number in range(60)]
    verdict = _judge([_with_errors(range(9))], [REFERENCES], sources)
    assert verdict.test("BLEU").differing_blocks == 3 and verdict.test("BLEU").p == 2 / 2**3


def test_blocks_without_sources_are_equal_references():
    assert EvaluationSet(None, ["a b", "c d", "a b"], None, "yy").blocks().tolist() == [0, 1, 0]


def test_judge_corrects_all_metrics_of_all_systems_as_one_family():
    """Holm by hand: nine p-values, the three smallest of B, then those of C, then those of D."""
    counts = _counts([REFERENCES], *([_with_errors(range(n))] for n in (12, 8, 6)))
    verdicts = judge("ABCD", counts, 200, 2000)
    corrected = {verdict.system: list(verdict.corrected_p.values()) for verdict in verdicts}
    assert corrected == {"B": [9 * 2 / 2**12] * 3, "C": [6 * 2 / 2**8] * 3, "D": [3 * 2 / 2**6] * 3}
    assert [verdict.is_significant("BLEU") for verdict in verdicts] == [True, True, False]


def test_system_scores_are_sacrebleus_and_their_mean():
    first, second = map(system_scores, _counts([BAD, GOOD], [REFERENCES]))
    for index, lines in enumerate((BAD, GOOD)):
        expected = {metric.name: metric.corpus_score(lines, REFERENCES) for metric in metrics_for("yy").values()}
        assert {metric: score.outputs[index] for metric, score in first.items()} == pytest.approx(expected)
    bad, good = (Bleu("yy").corpus_score(lines, REFERENCES) for lines in (BAD, GOOD))
    assert first["BLEU"].mean == pytest.approx((bad + good) / 2)
    assert first["BLEU"].deviation == pytest.approx(abs(bad - good) / 2**0.5) and second["BLEU"].deviation is None


# Several outputs


def _seeds(start, *rows):
    """An output for each of ``rows``, with errors in these rows and in every third row from ``start`` on."""
    return [_with_errors({*range(start, 60, 3), *more}) for more in rows]


@pytest.mark.parametrize(
    ("baseline", "system", "is_significant"),
    [
        (_seeds(0, (1,), (2,), (4,)), _seeds(50, (), (5,), (7,)), True),
        (_seeds(0, (1,), (2,), (4,)), _seeds(50, (), (5,)), True),
        (_seeds(60, range(40), range(10)), _seeds(60, range(30), ()), False),
        ([BAD, BAD], [GOOD, GOOD], False),
    ],
    ids=["similar seeds", "unequal numbers of seeds", "seeds that vary", "equal seeds"],
)
def test_judge_requires_significance_over_seeds(baseline, system, is_significant):
    verdict = _judge(baseline, system)
    assert verdict.test("BLEU").p < SIGNIFICANCE_LEVEL and verdict.over_seeds["BLEU"].difference > 0
    assert verdict.is_significant("BLEU") == is_significant


def test_judge_tests_one_output_against_each_of_several():
    others = REFERENCES, GOOD, BAD
    verdict, alone = _judge([BAD], others), [_judge([BAD], [lines]).test("BLEU") for lines in others]
    bleu = verdict.test("BLEU")
    assert verdict.over_seeds == {} and alone[2].p == 1
    assert bleu.p == pytest.approx(2 * max(test.p for test in alone[:2]), abs=2e-3)
    assert bleu.differing_blocks == max(test.differing_blocks for test in alone)


def test_judge_ignores_mean_counts_that_contradict_the_mean_score():
    """A perfect and an empty output have a mean score of 50, above the baseline's. But their mean counts are too short
    for it."""
    baseline = _with_errors(range(60), "za za za za ")
    first, second = _counts([baseline] * 3, [REFERENCES, [""] * 60])
    bleu = judge("AB", (first, second), 200, 2000)[0].test("BLEU")
    metric = next(iter(first))
    mean_counts = second[metric].mean(axis=0).sum(axis=0)
    difference = float(metric.score(mean_counts) - metric.score(first[metric][0].sum(axis=0)))
    assert difference < 0 < bleu.difference.score and bleu.p == 1


# Error rates, and further metrics


@pytest.mark.parametrize("cell", [FAMILIES[number] for number in (2, 3, 6, 10)], ids=str)
def test_judge_keeps_its_error_rate_for_equal_systems(cell):
    """Skewed scores, ties, repeated sources, several systems, several seeds, correlated metrics."""
    share, uncorrected = share_of_families_called_different(cell, pairs=250, trials=199)
    assert share <= most_allowed(250) and share <= uncorrected


def test_judge_would_exceed_its_error_rate_without_correction():
    share, uncorrected = share_of_families_called_different(FAMILIES[1], pairs=300, trials=99)
    assert share <= most_allowed(300) < 0.12 < uncorrected


class Overlap(TextMetric):
    """A metric of single segments, like COMET: the score of a corpus is their mean."""

    name, signature = "overlap", "overlap|version:1"

    def __init__(self, language):
        pass

    def statistics(self, hypotheses, references):
        lines = zip(hypotheses, references, strict=True)
        scores = [len({*line} & {*reference}) / len({*reference}) for line, reference in lines]
        return np.stack([scores, np.ones(len(scores))], axis=1)

    def score(self, sums):
        return sums[..., 0] / sums[..., 1]


def test_judge_corrects_only_metrics_in_verdict(monkeypatch):
    outputs = [[line.split()[0] for line in REFERENCES]], [REFERENCES]
    before = _judge(*outputs)
    monkeypatch.setitem(METRICS, "overlap", Overlap)
    verdict = _judge(*outputs)
    assert verdict.corrected_p == before.corrected_p
    assert verdict.test("overlap").system.score == pytest.approx(1) and verdict.test("overlap").p < 0.001
    monkeypatch.setattr(Overlap, "in_verdict", True)
    verdict = _judge(*outputs)
    assert verdict.is_significant("overlap") and verdict.corrected_p["BLEU"] > before.corrected_p["BLEU"]


# The sentences


def _verdict(*tests, differing=9):
    """A verdict on B with its gain over A and its p in BLEU, chrF2 and TER. The corrected p is twice as large."""
    zero = Interval(0, 0, 0)
    paired = [
        PairedScores(name, "", zero, zero, Interval(sign * gain, 0, 0), p, False, differing, sign > 0)
        for (name, sign), (gain, p) in zip((("BLEU", 1), ("chrF2", 1), ("TER", -1)), tests, strict=True)
    ]
    return Verdict("A", "B", paired, {}, {test.metric: min(1, 2 * test.p) for test in paired})


TESTED = "paired approximate randomization"
NOT_EQUAL = "A non-significant result does not mean that the systems are equal."


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (_verdict((3, 0.00011), (2, 0), (1, 0.02)),
         "B scores 3.00 BLEU higher than A.\nThe difference is statistically significant "
         f"({TESTED}, p ≤ 0.0002; Holm-corrected p ≤ 0.0003), as are those in chrF2 (+2.00) and TER (−1.00)."),
        (_verdict((-3, 0.001), (2, 0.001), (1, 0.3)),
         "A scores 3.00 BLEU higher than B.\nThe difference is statistically significant "
         f"({TESTED}, p ≤ 0.0010; Holm-corrected p ≤ 0.0020), as is that in chrF2 (−2.00, in favor of B). "
         "The difference in TER (+1.00, in favor of B) is not significant."),
        (_verdict((0.004, 0.3), (1, 0.3), (1, 0.001)),
         "A and B do not differ significantly in BLEU.\nB scores less than 0.01 BLEU higher than A "
         f"({TESTED}, p = 0.300; Holm-corrected p = 0.600). {NOT_EQUAL} The difference in TER (−1.00) is statistically "
         "significant. The difference in chrF2 (+1.00) is not significant."),
        (_verdict((0.1, 0.3), (1, 0.3), (1, 0.3), differing=3),
         "A and B do not differ significantly in BLEU.\nB scores 0.10 BLEU higher than A. Only 3 sentences differ in "
         f"what BLEU counts, and a significant difference needs at least 6. {NOT_EQUAL} The differences in chrF2 "
         "(+1.00) and TER (−1.00) are not significant."),
        (_verdict((-1e-12, 1), (5, 0.3), (-1e-12, 0.3)),
         "A and B have the same BLEU.\nThe differences in chrF2 (−5.00, in favor of B) and TER (+0.00) are not "
         "significant."),
    ],
    ids=["significant", "metrics that contradict BLEU", "not significant", "few sentences", "the same BLEU"],
)  # fmt: skip
def test_conclude_states_differences_and_p_values(verdict, expected):
    scope = "This holds for this run of A and this run of B on this test set of 60 sentences; another seed can change"
    assert conclude(verdict, _system("A", BAD), _system("B", GOOD)).startswith(f"{expected} {scope} BLEU by")


SEED_P = f"({TESTED} over sentences, p ≤ 0.0010; t-test over seeds, p"


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        (SeedTest(3, 0.01, 1, 5, 0.6), f"significant {SEED_P} ≤ 0.0100; Holm-corrected p ≤ 0.0200), as are"),
        (SeedTest(3, 0.2, -1, 7, 4.001),
         f"{SEED_P} = 0.200; Holm-corrected p = 0.400). With this many seeds, a difference is significant from 4.01 "
         f"BLEU on. {NOT_EQUAL}"),
        (SeedTest(3, 0.7, -374.9, 322.3, 348.6), f"). So few seeds cannot show any difference. {NOT_EQUAL}"),
        (SeedTest(3, None, -np.inf, np.inf, np.inf),
         "). All seeds of each system have the same score, so nothing is known about other seeds."),
    ],
    ids=["significant", "not significant", "too few seeds", "equal seeds"],
)  # fmt: skip
def test_conclude_states_the_test_over_seeds(seeds, expected):
    verdict = _verdict((3, 0.001), (3, 0.001), (3, 0.001))
    p = dict.fromkeys(verdict.corrected_p, 1 if seeds.p is None else 2 * seeds.p)
    verdict = replace(verdict, over_seeds=dict.fromkeys(p, seeds), corrected_p=p)
    text = conclude(verdict, _system("A", BAD, GOOD), _system("B", GOOD, REFERENCES))
    assert "B scores 3.00 BLEU higher than A on average over the seeds" in text and expected in text
    assert "This holds" not in text


@pytest.mark.parametrize(
    ("baseline", "system", "expected"),
    [
        (_system("A", BAD), _system("B", GOOD, REFERENCES), "this run of A and these runs of B on"),
        (
            _system("A", BAD, files=True),
            _system("B", GOOD, files=True),
            "these files on this test set of 60 sentences",
        ),
        (_system("A", BAD), _system("B", GOOD, files=True), "this run of A and the file B on"),
    ],
    ids=["runs", "files", "a run and a file"],
)
def test_conclude_names_runs_and_files(baseline, system, expected):
    text = conclude(_verdict((3, 0.001), (3, 0.001), (3, 0.001)), baseline, system)
    assert f"This holds for {expected}" in text and ("seed" in text) == bool(baseline.runs)


def test_conclude_reports_equal_outputs():
    equal = _verdict((0, 1), (0, 1), (0, 1), differing=0)
    text = conclude(equal, _system("A", GOOD, BAD), _system("B", BAD, GOOD))
    assert text == "A and B give the same translations: there is nothing to test."
    assert "nothing to test" not in conclude(equal, _system("A", BAD, BAD, GOOD), _system("B", BAD, GOOD, GOOD))
