"""The verdict says what the tests say, and no more."""

import dataclasses

from mt.comparison.systems import Run, System
from mt.comparison.verdict import judge, score_system
from mt.config import TrainConfig
from mt.scoring import corpus_scores
from tests import toy


def _system(name, *all_hypotheses, references=None):
    config = TrainConfig.model_construct(name=name)
    references = references or toy.sentences(60, 3)
    runs = [Run(None, config, {}, [], references, references, list(lines)) for lines in all_hypotheses]
    return System(name, runs)


REFERENCES = toy.sentences(60, 3)
SPOILT = [line if number % 3 else "za " + line for number, line in enumerate(REFERENCES)]
A_LITTLE = [line if number != 7 else "za " + line for number, line in enumerate(REFERENCES)]


def _verdict(first, second):
    return judge(first, second, "yy", 200, 200)


def test_a_clear_winner_is_named():
    verdict = _verdict(_system("A", SPOILT), _system("B", REFERENCES))
    assert verdict.words.startswith("B translates this test set better than A: ")
    assert "chrF2 and TER agree" in verdict.words and "two runs" in verdict.words
    assert _verdict(_system("A", REFERENCES), _system("B", SPOILT)).words.startswith("A translates")


def test_a_small_difference_has_no_winner():
    words = _verdict(_system("A", A_LITTLE), _system("B", REFERENCES)).words
    assert words.startswith("No winner: B is ahead by") and "no proof that the two are equally good" in words


def test_equal_outputs_are_equal_and_not_surely_different():
    verdict = _verdict(_system("A", SPOILT), _system("B", SPOILT))
    assert verdict.words.startswith("A and B have the same BLEU.")
    assert all(paired.p_bootstrap == paired.p_randomization == 1 for paired in verdict.pairs[0])


def test_seeds_that_disagree_leave_it_open():
    words = _verdict(_system("A", SPOILT, REFERENCES), _system("B", REFERENCES, A_LITTLE)).words
    assert "only 1 of 2 pairs of seeds" in words


def test_means_and_deviations_over_seeds():
    score = score_system(_system("A", SPOILT, REFERENCES), "yy")
    one = corpus_scores(SPOILT, REFERENCES, "yy").bleu
    assert abs(score.bleu - (one + 100) / 2) < 1e-9
    assert abs(score.bleu_deviation - (100 - one) / 2**0.5) < 1e-9
    alone = score_system(_system("A", SPOILT), "yy")
    assert [getattr(alone, field.name) is None for field in dataclasses.fields(alone)] == [False, True] * 3
