"""The verdict is what the tests over sentences and over seeds say, and its words say no more."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mt.config import ModelDescription, TrainConfig
from mt.evaluation.comparison.conclusions import conclude
from mt.evaluation.comparison.verdict import Counts, PairedScores, Verdict, judge
from mt.evaluation.runs import Run
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.metrics.bleu import Bleu
from mt.metrics.metric import Metric
from mt.metrics.registry import METRICS, metrics_for
from mt.metrics.significance import SIGNIFICANCE_LEVEL, Interval, SeedTest
from tests import toy

REFERENCES = toy.sentences(60, 3)
SPOILT = [line if number % 3 else "za " + line for number, line in enumerate(REFERENCES)]
A_LITTLE = [line if number != 7 else "za " + line for number, line in enumerate(REFERENCES)]


def _spoilt_in(rows, line="za "):
    return [line + text if number in rows else text for number, text in enumerate(REFERENCES)]


def _system(name, *all_hypotheses, files=False):
    run = None if files else Run(Path(name), TrainConfig.model_construct(seed=1), {}, {}, [])
    model = None if files else ModelDescription.model_construct()
    return System(name, [Output(Path(name), list(lines), run, model) for lines in all_hypotheses])


def _judged(baseline, system, references=REFERENCES, sources=None, contrasts=1):
    evaluation = EvaluationSet(references if sources is None else sources, references, "xx", "yy")
    verdict = judge(baseline, system, Counts(evaluation, [baseline, system]), 200, 2000, contrasts)
    return verdict, conclude(verdict, baseline, system)


def _words(*arguments, **options):
    return _judged(*arguments, **options)[1].words


def test_a_clear_winner_is_named_and_what_it_speaks_of():
    verdict, said = _judged(_system("A", SPOILT), _system("B", REFERENCES))
    assert said.words.startswith("B translates better than A: ")
    assert "more than the choice of sentences explains (p ≤ 0.0005)" in said.words
    assert "chrF2 and TER agree. This is about this run of A and this run of B" in said.words
    assert "60 sentences. Another seed can move BLEU by half a point or more." in said.words
    assert said.may_conclude[0].endswith("this run of B would score a higher BLEU than this run of A.")
    difference = verdict.over_sentences[0].difference
    assert f"between {difference.low:+.2f} and {difference.high:+.2f} BLEU (95 % interval)" in said.may_conclude[1]
    due = "That the difference is due to the settings or the models: "
    assert said.may_not_conclude[0].startswith(f"{due}there is one seed of A and B")
    assert _words(_system("A", REFERENCES), _system("B", SPOILT)).startswith("A translates better than B")


def test_a_small_difference_has_no_winner():
    words = _words(_system("A", _spoilt_in(range(8))), _system("B", _spoilt_in(range(8, 14))))
    assert words.startswith("No winner: B is ahead of A by")
    assert "this may be chance (choice of sentences: p = 0." in words


def test_no_winner_does_not_mean_equally_good():
    _, said = _judged(_system("A", A_LITTLE), _system("B", REFERENCES))
    assert said.may_not_conclude[0].startswith("That the two are equally good")
    assert not any("higher BLEU" in sentence for sentence in said.may_conclude)


def test_equal_outputs_leave_nothing_to_test():
    verdict, said = _judged(_system("A", SPOILT), _system("B", SPOILT))
    assert said.words == "A and B give the same translations: there is nothing to test."
    assert all(one.p == 1 and one.difference == Interval(0, 0, 0) for one in verdict.over_sentences)
    assert not any("interval" in sentence for sentence in said.may_conclude)


@pytest.mark.parametrize("differing", [1, 3, 5])
def test_a_few_sentences_are_never_enough(differing):
    words = _words(_system("A", _spoilt_in(range(differing))), _system("B", REFERENCES))
    assert words.startswith("No winner")
    sentences = f"{differing} sentences" if differing > 1 else "one sentence"
    assert f"BLEU counts only {sentences} differently; with fewer than 6 no difference" in words


def test_six_sentences_can_be_enough():
    verdict, said = _judged(_system("A", _spoilt_in(range(6))), _system("B", REFERENCES))
    assert said.words.startswith("B translates better than A") and verdict.over_sentences[0].p == 2 / 64


def test_a_repeated_source_is_one_piece_of_evidence():
    sources = [f"source {number // 3}" for number in range(60)]
    spoilt = _system("A", _spoilt_in(range(9)))  # nine sentences, of three sources
    assert _words(spoilt, _system("B", REFERENCES)).startswith("B translates better")
    verdict, said = _judged(spoilt, _system("B", REFERENCES), sources=sources)
    assert said.words.startswith("No winner") and verdict.over_sentences[0].differing_blocks == 3


def test_without_sources_equal_references_are_one_block():
    evaluation = EvaluationSet(None, ["a b", "c d", "a b"], None, "yy")
    assert evaluation.blocks().tolist() == [0, 1, 0]


def test_one_sentence_has_no_winner():
    alone = REFERENCES[:1]
    words = _words(_system("A", ["za"]), _system("B", alone), references=alone)
    assert words.startswith("No winner") and "one sentence" in words


def test_several_systems_share_the_level():
    pair = _system("A", SPOILT), _system("B", REFERENCES)
    assert _judged(*pair)[0].is_shown("BLEU")
    strict, said = _judged(*pair, contrasts=200)
    assert (
        strict.level == SIGNIFICANCE_LEVEL / 200 and not strict.is_shown("BLEU") and said.words.startswith("No winner")
    )


def test_scores_equal_sacrebleus():
    systems = [_system("A", SPOILT, A_LITTLE), _system("B", REFERENCES)]
    evaluation = EvaluationSet(None, REFERENCES, None, "yy")
    first, second = (Counts(evaluation, systems).scores(system) for system in systems)
    for lines, place in ((SPOILT, 0), (A_LITTLE, 1)):
        expected = [metric.corpus_score(lines, REFERENCES) for metric in metrics_for("yy").values()]
        assert [first[metric].outputs[place] for metric in ("BLEU", "chrF2", "TER")] == pytest.approx(expected)
    one, other = (Bleu("yy").corpus_score(lines, REFERENCES) for lines in (SPOILT, A_LITTLE))
    assert first["BLEU"].mean == pytest.approx((one + other) / 2)
    assert first["BLEU"].deviation == pytest.approx(abs(one - other) / 2**0.5) and second["BLEU"].deviation is None


# Several seeds


def _seeds(start, *gaps):
    """Outputs with slightly different sentences spoilt, in all of them those from ``start`` on."""
    return [_spoilt_in({*range(start, 60, 3), *gap}) for gap in gaps]


def test_systems_differ_if_other_seeds_and_other_sentences_would_show_it():
    verdict, said = _judged(_system("A", *_seeds(0, (1,), (2,), (4,))), _system("B", *_seeds(50, (), (5,), (7,))))
    assert verdict.is_shown("BLEU") and len(verdict.pairs) == 3
    assert said.words.startswith("B translates better than A: ") and "BLEU on average over the seeds" in said.words
    assert (
        "of sentences (p ≤ 0.00" in said.words
        and "and of seeds (p ≤ 0.0" in said.words
        and "Another seed" not in said.words
    )
    assert "Of 3 pairs with one of the seeds of each, B is better in 3 and worse in 0 by more than" in said.words
    assert "on average over all seeds, including those that were not tried." in said.may_conclude[0]
    assert "95 % confidence interval" in said.may_conclude[1]
    assert len(said.may_not_conclude) == 1


def test_seeds_that_scatter_name_no_winner_though_the_sentences_do():
    """Each pair of runs differs by more than the choice of sentences explains, but so do the runs of one system."""
    verdict, said = _judged(_system("A", *_seeds(60, range(40), range(10))), _system("B", *_seeds(60, range(30), ())))
    assert verdict.over_sentences[0].p < SIGNIFICANCE_LEVEL < verdict.over_seeds["BLEU"].p
    assert not verdict.is_shown("BLEU") and said.words.startswith("No winner: B is ahead of A by")
    least = math.ceil(verdict.over_seeds["BLEU"].least_difference * 100) / 100
    assert f"only a difference of {least:.2f} BLEU or more could be significant" in said.words
    assert "choice of seeds: p = " in said.words


def test_numbers_of_seeds_may_differ():
    verdict, _ = _judged(_system("A", *_seeds(0, (1,), (2,), (4,))), _system("B", *_seeds(50, (), (5,))))
    assert len(verdict.pairs) == 2 and verdict.is_shown("BLEU") and verdict.over_seeds["BLEU"].difference > 0


def test_one_seed_against_several_speaks_of_these_runs():
    verdict, said = _judged(_system("A", SPOILT), _system("B", REFERENCES, A_LITTLE))
    assert verdict.over_seeds == {} and len(verdict.pairs) == 1
    assert said.words.startswith("B translates better than A") and "this run of A and these runs of B" in said.words
    due = "That the difference is due to the settings or the models: "
    assert said.may_not_conclude[0].startswith(f"{due}there is one seed of A,")


def test_all_outputs_of_a_sentence_are_exchanged_together():
    """Two seeds that say the same are no more evidence than one."""
    alone, _ = _judged(_system("A", SPOILT), _system("B", _spoilt_in(range(30, 60, 3))))
    twice, said = _judged(_system("A", SPOILT, SPOILT), _system("B", *[_spoilt_in(range(30, 60, 3))] * 2))
    assert [one.p for one in twice.over_sentences] == [one.p for one in alone.over_sentences]
    assert not twice.is_shown("BLEU")  # nothing is known of how seeds scatter that are equal
    assert "all seeds of each have the same score, so nothing can be said about others" in said.words


@pytest.mark.parametrize("sources", [["one"] * 60, None], ids=["one source", "five sentences"])
def test_an_interval_does_not_say_what_the_test_cannot(sources):
    """Few sentences that all point one way: the bootstrap's interval leaves zero out."""
    verdict, said = _judged(_system("A", _spoilt_in(range(5))), _system("B", REFERENCES), sources=sources)
    assert verdict.over_sentences[0].difference.low > 0 and not verdict.is_shown("BLEU")
    assert said.may_conclude == []


def test_one_seed_against_several_says_what_the_table_says():
    """A run that is empty drags the mean of the scores down by more than the score of the mean counts."""
    verdict, said = _judged(_system("A", SPOILT), _system("B", REFERENCES, [""] * 60))
    difference = verdict.over_sentences[0].difference.score
    assert verdict.over_sentences[0].system.score == pytest.approx(50)
    assert f"{abs(difference):.2f} BLEU on average over the seeds" in said.words


def test_several_files_are_outputs_and_not_seeds():
    files = _seeds(0, (1,), (2,), (4,)), _seeds(50, (), (5,), (7,))
    _, said = _judged(_system("a", *files[0], files=True), _system("b", *files[1], files=True))
    assert "BLEU on average over the outputs" in said.words and "and of outputs (p ≤ 0.0" in said.words
    assert "seed" not in said.words + said.may_conclude[0] + said.may_conclude[1]
    assert said.may_not_conclude[0].startswith("That this holds if the systems are trained again, unless")


def test_files_are_called_files():
    _, said = _judged(_system("a.txt", SPOILT, files=True), _system("b.txt", REFERENCES, files=True))
    assert said.words.endswith("This is about these files, on this test set of 60 sentences.")
    assert said.may_not_conclude[0].startswith("That the difference is due to the programs behind the files")
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
    return Verdict("A", "B", paired, {}, [], SIGNIFICANCE_LEVEL)


@pytest.mark.parametrize(
    ("chrf", "ter", "words"),
    [
        ((2, 0.001), (1, 0.001), "chrF2 and TER agree."),
        ((2, 0.001), (1, 0.3), "chrF2 agrees; TER points the same way."),
        ((-2, 0.3), (-1, 0.3), "chrF2 and TER do not agree."),
        ((-2, 0.001), (-1, 0.001), "chrF2 and TER show the opposite, by more than chance."),
        ((-2, 0.001), (0, 1), "chrF2 shows the opposite, by more than chance; TER does not agree."),
    ],
)
def test_what_the_other_metrics_say(chrf, ter, words):
    assert words in conclude(_verdict((3, 0.001), chrf, ter), _system("A", SPOILT), _system("B", REFERENCES)).words


def test_where_bleu_is_equal_the_other_metrics_speak():
    words = conclude(_verdict((0, 1), (5, 0.3), (2, 0.001)), _system("A", SPOILT), _system("B", REFERENCES)).words
    assert words.startswith(
        "A and B have the same BLEU. In chrF2 B is better by 5.00, which chance may explain; in TER B is better by "
        "2.00, more than chance explains."
    )


@pytest.mark.parametrize(
    ("chrf", "ter", "words"),
    [
        ((2, 0.001), (1, 0.001), "chrF2 and TER find the same one ahead, by more than chance."),
        ((2, 0.3), (-1, 0.3), "chrF2 points the same way; TER does not point the same way."),
        ((-2, 0.001), (-1, 0.001), "chrF2 and TER find the other one ahead, by more than chance."),
    ],
)
def test_other_metrics_cannot_agree_with_a_winner_that_there_is_not(chrf, ter, words):
    said = conclude(_verdict((3, 0.2), chrf, ter), _system("A", SPOILT), _system("B", REFERENCES)).words
    assert said.startswith("No winner: B is ahead of A by 3.00 BLEU") and words in said


def test_metrics_that_are_equal_but_for_rounding_are_called_equal():
    words = conclude(_verdict((1e-12, 1), (-1e-12, 0.3), (2, 0.3)), _system("A", SPOILT), _system("B", REFERENCES))
    assert "In chrF2 they are equal; in TER B is better by 2.00, which chance may explain." in words.words


def test_a_tiny_difference_is_called_less_than_a_hundredth():
    words = conclude(_verdict((0.004, 0.3), (1, 0.3), (1, 0.3)), _system("A", SPOILT), _system("B", REFERENCES)).words
    assert "B is ahead of A by less than 0.01 BLEU" in words


# What the tests over seeds say


def _of_seeds(p_of_sentences, seeds):
    verdict = _verdict((3, p_of_sentences), (3, 0.001), (3, 0.001))
    return replace(verdict, over_seeds=dict.fromkeys(("BLEU", "chrF2", "TER"), seeds), pairs=[])


def _conclusions(verdict):
    return conclude(verdict, _system("A", SPOILT, A_LITTLE), _system("B", REFERENCES, SPOILT))


def test_the_least_difference_is_told_where_the_test_over_seeds_fails_and_only_there():
    failed = _conclusions(_of_seeds(0.001, SeedTest(3, 0.2, -1, 7, 4.001)))
    assert "with so many seeds, only a difference of 4.01 BLEU or more could be significant" in failed.words
    passed = _conclusions(_of_seeds(0.2, SeedTest(3, 0.01, 2.4, 3.6, 0.6)))
    assert passed.words.startswith("No winner") and "could be significant" not in passed.words


def test_two_wild_seeds_could_have_shown_nothing():
    said = _conclusions(_of_seeds(0.001, SeedTest(3, 0.7, -374.9, 322.3, 348.6)))
    assert "so few seeds could not have shown any difference" in said.words and "348" not in said.words
    assert not any("would be expected between" in sentence for sentence in said.may_conclude)


def test_an_interval_ends_where_bleu_does():
    said = _conclusions(_of_seeds(0.001, SeedTest(30, 0.2, -60.0, 120.0, 90.0)))
    assert "would be expected between -60.00 and +100.00 BLEU" in said.may_conclude[-1]


def test_pairs_of_seeds_are_counted_for_each_side():
    won, lost, open_ = (
        (_verdict((gain, p), (0, 1), (0, 1)).over_sentences) for gain, p in ((1, 0.01), (-1, 0.01), (1, 0.2))
    )
    verdict = replace(_of_seeds(0.001, SeedTest(3, 0.01, 2, 4, 1)), pairs=[won, won, won, lost, lost, open_])
    assert (
        "Of 6 pairs with one of the seeds of each, B is better in 3 and worse in 2 by more"
        in _conclusions(verdict).words
    )


@pytest.mark.parametrize(
    ("low", "high", "p", "trusted"), [(-1, 5, 0.3, True), (1, 5, 0.3, False), (-5, -1, 0.3, False), (1, 5, 0.001, True)]
)
def test_an_interval_that_leaves_zero_out_needs_a_test_that_agrees(low, high, p, trusted):
    verdict = _verdict((3, p), (3, 0.001), (3, 0.001))
    bleu = replace(verdict.over_sentences[0], difference=Interval(3, low, high))
    verdict = replace(verdict, over_sentences=[bleu, *verdict.over_sentences[1:]])
    said = conclude(verdict, _system("A", SPOILT), _system("B", REFERENCES))
    assert any("(95 % interval)" in sentence for sentence in said.may_conclude) == trusted


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
    counts = Counts(evaluation, [baseline, system])
    bleu = judge(baseline, system, counts, 200, 2000, 1).test("BLEU")
    metric = counts.metrics[0]
    mean_counts = counts.of(system, metric).mean(axis=0).sum(axis=0)
    of_mean = float(metric.score(mean_counts) - metric.score(counts.of(baseline, metric)[0].sum(axis=0)))
    assert of_mean < 0 < bleu.difference.score and bleu.p == 1


def test_how_often_an_output_occurs_counts():
    _, said = _judged(_system("A", SPOILT, SPOILT, A_LITTLE), _system("B", SPOILT, A_LITTLE, A_LITTLE))
    assert "nothing to test" not in said.words


def test_identical_outputs_leave_nothing_to_conclude():
    _, said = _judged(_system("A", SPOILT, A_LITTLE), _system("B", A_LITTLE, SPOILT))
    assert said.may_conclude == said.may_not_conclude == []


class Overlap(Metric):
    """A metric of single segments, like COMET: the score of a corpus is their mean, and sources are needed."""

    name, signature = "overlap", "overlap|version:1"

    def __init__(self, language):
        pass

    def statistics(self, hypotheses, references, sources=None):
        lines = zip(hypotheses, references, sources, strict=True)
        scores = [len({*line} & {*reference}) / len({*reference, *source}) for line, reference, source in lines]
        return np.stack([scores, np.ones(len(scores))], axis=1)

    def score(self, sums):
        return sums[..., 0] / sums[..., 1]


def test_a_metric_of_segment_scores_needs_no_more_than_its_entry_in_the_registry(monkeypatch):
    monkeypatch.setitem(METRICS, "overlap", Overlap)
    empty = [line.split()[0] for line in REFERENCES]
    verdict, said = _judged(_system("A", empty), _system("B", REFERENCES))
    assert verdict.test("overlap").system.score == pytest.approx(1) and verdict.is_shown("overlap")
    assert "chrF2, TER and overlap agree." in said.words
