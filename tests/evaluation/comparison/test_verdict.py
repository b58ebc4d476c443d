"""The verdict is what the tests over sentences and over seeds say, and its words say no more."""

import math
import re
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
SPOILT = [line if number % 3 else "za " + line for number, line in enumerate(REFERENCES)]
A_LITTLE = [line if number != 7 else "za " + line for number, line in enumerate(REFERENCES)]


def _spoilt_in(rows, line="za "):
    return [line + text if number in rows else text for number, text in enumerate(REFERENCES)]


def _system(name, *all_hypotheses, files=False):
    run = None if files else Run(Path(name), TrainConfig.model_construct(seed=1), {}, {}, [])
    model = None if files else ModelDescription.model_construct()
    return System(name, [Output(Path(name), list(lines), run, model) for lines in all_hypotheses])


def _judged(baseline, system, references=REFERENCES, sources=None):
    evaluation = EvaluationSet(references if sources is None else sources, references, "xx", "yy")
    counts = block_counts(evaluation, [baseline, system])
    (verdict,) = judge((baseline.name, system.name), counts, 200, 2000)
    return verdict, conclude(verdict, baseline, system)


def _words(*arguments, **options):
    return _judged(*arguments, **options)[1]


def test_a_clear_winner_is_named_and_what_it_speaks_of():
    verdict, said = _judged(_system("A", SPOILT), _system("B", REFERENCES))
    assert said.startswith("B translates better than A: ")
    corrected = "also after correction for all tests of this comparison (p ≤ 0.0015)"
    assert f"more than the choice of sentences explains (p ≤ 0.0005), {corrected}." in said
    chrf, ter = (verdict.test(metric).gain for metric in ("chrF2", "TER"))
    assert f"In chrF2 B is better by {chrf:.2f}, more than chance explains;" in said
    assert f"in TER B is better by {ter:.2f}, more than chance explains. This is about this run of A and" in said
    assert "60 sentences. Another seed can move BLEU by half a point or more." in said
    assert _words(_system("A", REFERENCES), _system("B", SPOILT)).startswith("A translates better than B")


def test_a_small_difference_has_no_winner():
    words = _words(_system("A", _spoilt_in(range(8))), _system("B", _spoilt_in(range(8, 14))))
    assert words.startswith("No winner: B is ahead of A by")
    assert "this may be chance (choice of sentences: p = 0." in words


def test_equal_outputs_leave_nothing_to_test():
    verdict, said = _judged(_system("A", SPOILT), _system("B", SPOILT))
    assert said == "A and B give the same translations: there is nothing to test."
    assert all(one.p == 1 and one.difference == Interval(0, 0, 0) for one in verdict.over_sentences)


@pytest.mark.parametrize("differing", [1, 3, 5])
def test_a_few_sentences_are_never_enough(differing):
    words = _words(_system("A", _spoilt_in(range(differing))), _system("B", REFERENCES))
    assert words.startswith("No winner")
    sentences = f"{differing} sentences" if differing > 1 else "one sentence"
    assert f"BLEU counts only {sentences} differently; with fewer than 6 no difference" in words


def test_seven_sentences_can_be_enough_for_three_metrics():
    verdict, said = _judged(_system("A", _spoilt_in(range(7))), _system("B", REFERENCES))
    assert said.startswith("B translates better than A") and verdict.over_sentences[0].p == 2 / 128
    assert verdict.corrected_p == dict.fromkeys(("BLEU", "chrF2", "TER"), 6 / 128)
    verdict, said = _judged(_system("A", _spoilt_in(range(6))), _system("B", REFERENCES))
    assert said.startswith("No winner") and verdict.corrected_p["BLEU"] == 6 / 64
    assert "choice of sentences: p = 0.0313; corrected for all tests of this comparison: p = 0.0938;" in said


def test_a_repeated_source_is_one_piece_of_evidence():
    sources = [f"source {number // 3}" for number in range(60)]
    spoilt = _system("A", _spoilt_in(range(9)))  # nine sentences, of three sources
    assert _words(spoilt, _system("B", REFERENCES)).startswith("B translates better")
    verdict, said = _judged(spoilt, _system("B", REFERENCES), sources=sources)
    assert said.startswith("No winner") and verdict.over_sentences[0].differing_blocks == 3


def test_without_sources_equal_references_are_one_block():
    evaluation = EvaluationSet(None, ["a b", "c d", "a b"], None, "yy")
    assert evaluation.blocks().tolist() == [0, 1, 0]


def test_all_metrics_of_all_systems_are_one_family():
    """Holm by hand: nine p-values, the three smallest of B, then those of C, then those of D."""
    systems = [
        _system("A", REFERENCES),
        *(_system(name, _spoilt_in(range(n))) for name, n in {"B": 12, "C": 8, "D": 6}.items()),
    ]
    counts = block_counts(EvaluationSet(REFERENCES, REFERENCES, "xx", "yy"), systems)
    verdicts = judge("ABCD", counts, 200, 2000)
    p = {verdict.system: [verdict.test(metric).p for metric in verdict.corrected_p] for verdict in verdicts}
    assert p == {"B": [2 / 2**12] * 3, "C": [2 / 2**8] * 3, "D": [2 / 2**6] * 3}
    corrected = {verdict.system: list(verdict.corrected_p.values()) for verdict in verdicts}
    assert corrected == {"B": [9 * 2 / 2**12] * 3, "C": [6 * 2 / 2**8] * 3, "D": [3 * 2 / 2**6] * 3}
    assert [verdict.is_significant("BLEU") for verdict in verdicts] == [True, True, False]


def test_scores_equal_sacrebleus():
    systems = [_system("A", SPOILT, A_LITTLE), _system("B", REFERENCES)]
    evaluation = EvaluationSet(None, REFERENCES, None, "yy")
    first, second = map(system_scores, block_counts(evaluation, systems))
    for lines, place in ((SPOILT, 0), (A_LITTLE, 1)):
        expected = {metric.name: metric.corpus_score(lines, REFERENCES) for metric in metrics_for("yy").values()}
        assert {metric: score.outputs[place] for metric, score in first.items()} == pytest.approx(expected)
    one, other = (Bleu("yy").corpus_score(lines, REFERENCES) for lines in (SPOILT, A_LITTLE))
    assert first["BLEU"].mean == pytest.approx((one + other) / 2)
    assert first["BLEU"].deviation == pytest.approx(abs(one - other) / 2**0.5) and second["BLEU"].deviation is None


# Several seeds


def _seeds(start, *gaps):
    """Outputs with slightly different sentences spoilt, in all of them those from ``start`` on."""
    return [_spoilt_in({*range(start, 60, 3), *gap}) for gap in gaps]


def test_systems_differ_if_other_seeds_and_other_sentences_would_show_it():
    verdict, said = _judged(_system("A", *_seeds(0, (1,), (2,), (4,))), _system("B", *_seeds(50, (), (5,), (7,))))
    assert verdict.is_significant("BLEU")
    assert said.startswith("B translates better than A: ") and "BLEU on average over the seeds" in said
    assert "of sentences (p ≤ 0.00" in said and "and of seeds (p ≤ 0.0" in said and "Another seed" not in said


def test_seeds_that_scatter_name_no_winner_though_the_sentences_do():
    """Each pair of runs differs by more than the choice of sentences explains, but so do the runs of one system."""
    verdict, said = _judged(_system("A", *_seeds(60, range(40), range(10))), _system("B", *_seeds(60, range(30), ())))
    assert verdict.over_sentences[0].p < SIGNIFICANCE_LEVEL < verdict.over_seeds["BLEU"].p
    assert not verdict.is_significant("BLEU") and said.startswith("No winner: B is ahead of A by")
    least = math.ceil(verdict.over_seeds["BLEU"].least_difference * 100) / 100
    assert f"only a difference of {least:.2f} BLEU or more could be significant" in said
    assert "choice of seeds: p = " in said


def test_numbers_of_seeds_may_differ():
    verdict, _ = _judged(_system("A", *_seeds(0, (1,), (2,), (4,))), _system("B", *_seeds(50, (), (5,))))
    assert verdict.is_significant("BLEU") and verdict.over_seeds["BLEU"].difference > 0


def test_one_seed_against_several_speaks_of_these_runs():
    verdict, said = _judged(_system("A", SPOILT), _system("B", REFERENCES, A_LITTLE))
    assert verdict.over_seeds == {}
    assert said.startswith("B translates better than A") and "this run of A and these runs of B" in said


def test_all_outputs_of_a_sentence_are_exchanged_together():
    """Two seeds that say the same are no more evidence than one."""
    alone, _ = _judged(_system("A", SPOILT), _system("B", _spoilt_in(range(30, 60, 3))))
    twice, said = _judged(_system("A", SPOILT, SPOILT), _system("B", *[_spoilt_in(range(30, 60, 3))] * 2))
    assert [one.p for one in twice.over_sentences] == [one.p for one in alone.over_sentences]
    assert not twice.is_significant("BLEU")  # nothing is known of how seeds scatter that are equal
    assert "all seeds of each have the same score, so nothing can be said about others" in said


def test_one_seed_against_several_says_what_the_table_says():
    """A run that is empty drags the mean of the scores down by more than the score of the mean counts."""
    verdict, said = _judged(_system("A", SPOILT), _system("B", REFERENCES, [""] * 60))
    difference = verdict.over_sentences[0].difference.score
    assert verdict.over_sentences[0].system.score == pytest.approx(50)
    assert f"{abs(difference):.2f} BLEU on average over the seeds" in said


def test_several_files_are_outputs_and_not_seeds():
    files = _seeds(0, (1,), (2,), (4,)), _seeds(50, (), (5,), (7,))
    _, said = _judged(_system("a", *files[0], files=True), _system("b", *files[1], files=True))
    assert "BLEU on average over the outputs" in said and "and of outputs (p ≤ 0.0" in said
    assert "seed" not in said


def test_files_are_called_files():
    _, said = _judged(_system("a.txt", SPOILT, files=True), _system("b.txt", REFERENCES, files=True))
    assert said.endswith("This is about these files, on this test set of 60 sentences.")
    beside = _words(_system("A", SPOILT), _system("b.txt", REFERENCES, files=True))
    assert "This is about this run of A and the file b.txt, on this test set" in beside


# What the other metrics say


def _verdict(bleu, chrf, ter):
    """Of gains and p-values."""
    zero = Interval(0, 0, 0)
    paired = [
        PairedScores(name, "", zero, zero, Interval(sign * gain, 0, 0), p, False, 9, sign > 0)
        for name, sign, (gain, p) in (("BLEU", 1, bleu), ("chrF2", 1, chrf), ("TER", -1, ter))
    ]
    return Verdict("A", "B", paired, {}, {test.metric: test.p for test in paired})


@pytest.mark.parametrize(
    ("gains", "told"),
    [
        (
            [(3, 0.001), (-2, 0.001), (-1, 0.3)],
            ["B translates better than A: 3.00 BLEU", "In chrF2 A is better by 2.00, more than chance explains; in TER "
             "A is better by 1.00, which chance"],
        ),
        (
            [(0, 1), (5, 0.3), (2, 0.001)],
            ["A and B have the same BLEU. In chrF2 B is better by 5.00, which chance may explain; in TER B is better "
             "by 2.00, more than chance explains."],
        ),
        ([(1e-12, 1), (-1e-12, 0.3), (2, 0.3)],
         ["", "In chrF2 they are equal; in TER B is better by 2.00, which chance may explain."]),
        ([(0.004, 0.3), (1, 0.3), (1, 0.3)], ["", "B is ahead of A by less than 0.01 BLEU"]),
    ],
    ids=["they contradict the winner", "BLEU is equal", "equal but for rounding", "a tiny difference"],
)  # fmt: skip
def test_what_the_other_metrics_say(gains, told):
    words = conclude(_verdict(*gains), _system("A", SPOILT), _system("B", REFERENCES))
    assert words.startswith(told[0]) and all(part in words for part in told)


# What the tests over seeds say


def _of_seeds(p_of_sentences, seeds):
    verdict = _verdict((3, p_of_sentences), (3, 0.001), (3, 0.001))
    p = {metric: max(p, seeds.p) for metric, p in verdict.corrected_p.items()}
    return replace(verdict, over_seeds=dict.fromkeys(p, seeds), corrected_p=p)


def _conclusions(verdict):
    return conclude(verdict, _system("A", SPOILT, A_LITTLE), _system("B", REFERENCES, SPOILT))


def test_the_least_difference_is_reported_where_the_test_over_seeds_fails_and_only_there():
    failed = _conclusions(_of_seeds(0.001, SeedTest(3, 0.2, -1, 7, 4.001)))
    assert "with so many seeds, only a difference of 4.01 BLEU or more could be significant" in failed
    passed = _conclusions(_of_seeds(0.2, SeedTest(3, 0.01, 2.4, 3.6, 0.6)))
    assert passed.startswith("No winner") and "could be significant" not in passed


def test_two_wild_seeds_could_have_shown_nothing():
    said = _conclusions(_of_seeds(0.001, SeedTest(3, 0.7, -374.9, 322.3, 348.6)))
    assert "so few seeds could not have shown any difference" in said and "348" not in said


def test_several_outputs_against_a_single_one_are_tested_one_by_one():
    baseline, others = _system("A", SPOILT), (REFERENCES, A_LITTLE, SPOILT)
    bleu = _judged(baseline, _system("B", *others))[0].test("BLEU")
    alone = [_judged(baseline, _system("B", lines))[0].test("BLEU") for lines in others]
    assert alone[2].p == 1
    assert bleu.p == pytest.approx(2 * max(one.p for one in alone[:2]), abs=2e-3)
    assert bleu.differing_blocks == max(one.differing_blocks for one in alone)


def test_mean_counts_that_point_the_other_way_are_no_evidence():
    """A perfect output and an empty one have a mean score of 50, above the baseline's; but their mean counts are too
    short for it."""
    low = _spoilt_in(range(60), "za za za za ")
    baseline, system = _system("A", low, low, low), _system("B", REFERENCES, [""] * 60)
    evaluation = EvaluationSet(REFERENCES, REFERENCES, "xx", "yy")
    first, second = block_counts(evaluation, [baseline, system])
    bleu = judge(("A", "B"), (first, second), 200, 2000)[0].test("BLEU")
    metric = next(iter(first))
    mean_counts = second[metric].mean(axis=0).sum(axis=0)
    of_mean = float(metric.score(mean_counts) - metric.score(first[metric][0].sum(axis=0)))
    assert of_mean < 0 < bleu.difference.score and bleu.p == 1


def test_how_often_an_output_occurs_counts():
    _, said = _judged(_system("A", SPOILT, SPOILT, A_LITTLE), _system("B", SPOILT, A_LITTLE, A_LITTLE))
    assert "nothing to test" not in said


@pytest.mark.parametrize("cell", [FAMILIES[number] for number in (2, 3, 6, 10)], ids=str)
def test_no_metric_of_equal_systems_is_called_different(cell):
    """Skewed scores, ties, repeated sources, several systems, several seeds, correlated metrics."""
    share, uncorrected = share_of_families_called_different(cell, pairs=250, trials=199)
    assert share <= most_allowed(250) and share <= uncorrected


def test_a_family_of_metrics_of_equal_systems_needs_the_correction():
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


def test_a_further_metric_joins_the_verdict_only_with_its_flag(monkeypatch):
    systems = _system("A", [line.split()[0] for line in REFERENCES]), _system("B", REFERENCES)
    before = _judged(*systems)
    monkeypatch.setitem(METRICS, "overlap", Overlap)
    verdict, said = _judged(*systems)
    assert (verdict.corrected_p, said) == (before[0].corrected_p, before[1])
    assert verdict.test("overlap").system.score == pytest.approx(1) and verdict.test("overlap").p < 0.001
    monkeypatch.setattr(Overlap, "in_verdict", True)
    verdict, said = _judged(*systems)
    assert verdict.is_significant("overlap") and verdict.corrected_p["BLEU"] > before[0].corrected_p["BLEU"]
    assert re.search(r"in overlap B is better by \d+\.\d\d, more than chance explains\.", said)
