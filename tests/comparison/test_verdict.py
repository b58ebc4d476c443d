"""The verdict says what the tests say, and no more."""

import dataclasses

import pytest

from mt.comparison.systems import Run, System
from mt.comparison.verdict import (
    LEVEL,
    _of_several_pairs,
    _other_metrics,
    _where_bleu_is_equal,
    judge,
    score_system,
)
from mt.config import TrainConfig
from mt.scoring import Interval, PairedScores, corpus_scores
from tests import toy

REFERENCES = toy.sentences(60, 3)
SPOILT = [line if number % 3 else "za " + line for number, line in enumerate(REFERENCES)]
A_LITTLE = [line if number != 7 else "za " + line for number, line in enumerate(REFERENCES)]


def _system(name, *all_hypotheses, references=REFERENCES):
    config = TrainConfig.model_construct(name=name)
    return System(name, [Run(None, config, {}, {}, [], references, references, list(h)) for h in all_hypotheses])


def _paired(gain, p):
    """BLEU's test of two systems that differ by ``gain``."""
    return PairedScores("BLEU", Interval(20, 20, 1), Interval(20 + gain, 20 + gain, 1), p, p, "", "")


def _verdict(first, second, contrasts=1):
    return judge(first, second, "yy", 200, 200, contrasts)


def test_a_clear_winner_is_named():
    words = _verdict(_system("A", SPOILT), _system("B", REFERENCES)).words
    assert words.startswith("B translates better than A: ")
    assert "chrF2 and TER agree." in words and "these two runs" in words and "60 sentences" in words
    assert _verdict(_system("A", REFERENCES), _system("B", SPOILT)).words.startswith("A translates better than B")


def test_a_small_difference_has_no_winner():
    words = _verdict(_system("A", A_LITTLE), _system("B", REFERENCES)).words
    assert words.startswith("No winner: B is ahead of A by") and "is not shown" in words
    assert "Nor is it shown that the two are equally good." in words


def test_equal_outputs_are_equal_and_not_surely_different():
    verdict = _verdict(_system("A", SPOILT), _system("B", SPOILT))
    assert verdict.words.startswith("A and B have the same BLEU.") and "chrF2" not in verdict.words
    assert all(paired.p_bootstrap == paired.p_randomization == 1 for paired in verdict.pairs[0])


@pytest.mark.parametrize("differing", [1, 3, 5])
def test_a_few_sentences_are_never_enough(differing):
    """With n sentences that differ, 2 of 2ⁿ ways to exchange them give a difference as large as the real one."""
    spoilt = ["za" if number < differing else line for number, line in enumerate(REFERENCES)]
    verdict = _verdict(_system("A", spoilt), _system("B", REFERENCES))
    assert verdict.words.startswith("No winner")
    assert all(paired.p_randomization >= 2.0 ** (1 - differing) for paired in verdict.pairs[0])


def test_one_sentence_has_no_winner():
    alone = REFERENCES[:1]
    words = _verdict(_system("A", ["za"], references=alone), _system("B", alone, references=alone)).words
    assert words.startswith("No winner") and "one sentence" in words


def test_several_systems_share_the_level():
    pair = _system("A", SPOILT), _system("B", REFERENCES)
    assert _verdict(*pair).is_significant(_verdict(*pair).pairs[0][0])
    strict = _verdict(*pair, contrasts=100)
    assert not strict.is_significant(strict.pairs[0][0]) and strict.words.startswith("No winner")


def test_seeds_that_agree_give_one_verdict():
    words = _verdict(_system("A", SPOILT, SPOILT), _system("B", REFERENCES, A_LITTLE)).words
    assert words.startswith("B translates better than A: ") and "on average over 2 pairs of seeds, each pair" in words


def test_seeds_of_which_one_is_undecided():
    words = _verdict(_system("A", SPOILT, REFERENCES), _system("B", REFERENCES, A_LITTLE)).words
    assert "not every pair shows it" in words
    assert "B is better in 1 and worse in 0 of the pairs; 1 is undecided." in words


def test_seeds_that_contradict_each_other():
    words = _verdict(_system("A", SPOILT, REFERENCES), _system("B", REFERENCES, SPOILT)).words
    assert words.startswith("The seeds contradict each other: A and B have the same BLEU on average over 2 pairs.")
    assert "chrF2" not in words
    assert "better in 1 and worse in 1 of the pairs; 0 are undecided" in words


def test_the_one_sure_pair_speaks_against_the_mean():
    """The mean is B's, for chance gave it much; the one pair that is more than chance is A's."""
    gains = [_paired(8.0, p=0.3), _paired(-4.0, p=0.001)]
    words = _of_several_pairs("A", "B", gains, LEVEL)
    assert words.startswith("The seeds contradict each other: B is ahead of A by 2.00 ± 8.49 BLEU on average")
    assert "better in 0 and worse in 1 of the pairs; 1 is undecided" in words


def test_a_metric_whose_pairs_contradict_each_other_does_not_agree():
    pairs = [[_paired(3.0, 0.001), _paired(5.0, 0.001), _paired(1.0, 0.5)] for _ in range(2)]
    assert _other_metrics(pairs, 3.0, LEVEL) == "chrF2 agrees; TER points the same way."
    pairs[1][1] = _paired(-3.0, 0.001)
    assert _other_metrics(pairs, 3.0, LEVEL) == "chrF2 and TER point the same way."


def test_where_bleu_is_equal_a_metrics_pairs_may_contradict_each_other():
    pairs = [[_paired(0, 1), _paired(gain, 0.001), _paired(2.0, 0.001)] for gain in (5.0, -3.0)]
    assert _where_bleu_is_equal("A", "B", pairs, LEVEL) == (
        "In chrF2 B is better by 1.00, which chance may explain; in TER B is better by 2.00, more than chance explains."
    )


def test_seeds_with_the_same_outputs():
    words = _verdict(_system("A", SPOILT, REFERENCES), _system("B", SPOILT, REFERENCES)).words
    assert words.startswith("A and B have the same BLEU in each of 2 pairs of seeds.")


def test_where_bleu_is_equal_the_other_metrics_speak():
    """Without 4-grams BLEU is 0, whatever is said."""
    references = [" ".join(line.split()[:2]) for line in REFERENCES]
    first, second = (
        _system(name, lines, references=references) for name, lines in (("A", ["za"] * 60), ("B", references))
    )
    words = _verdict(first, second).words
    assert words.startswith("A and B have the same BLEU. In chrF2 B is better by ")
    assert words.count("more than chance explains") == 2 and "in TER B is better by 100.00" in words


@pytest.mark.parametrize(
    ("chrf", "ter", "words"),
    [
        (_paired(2, 0.001), _paired(1, 0.001), "chrF2 and TER agree."),
        (_paired(2, 0.001), _paired(1, 0.3), "chrF2 agrees; TER points the same way."),
        (_paired(-2, 0.3), _paired(-1, 0.3), "chrF2 and TER do not agree."),
        (_paired(-2, 0.001), _paired(-1, 0.001), "chrF2 and TER say the opposite, more than chance."),
        (_paired(-2, 0.001), _paired(0, 1), "chrF2 says the opposite, more than chance; TER does not agree."),
    ],
)
def test_what_the_other_metrics_say(chrf, ter, words):
    assert _other_metrics([[_paired(3, 0.001), chrf, ter]], 3, LEVEL) == words


def test_a_metric_that_sees_it_otherwise_is_named():
    # Shorter outputs: a better TER, a worse BLEU.
    words = _verdict(
        _system("A", ["za za za za za " + line for line in REFERENCES]),
        _system("B", [" ".join(line.split()[: len(line.split()) // 2]) for line in REFERENCES]),
    ).words
    assert "TER says the opposite, more than chance" in words


def test_means_and_deviations_over_seeds():
    score = score_system(_system("A", SPOILT, REFERENCES), "yy")
    one = corpus_scores(SPOILT, REFERENCES, "yy").bleu
    assert score.bleu == pytest.approx((one + 100) / 2)
    assert score.bleu_deviation == pytest.approx((100 - one) / 2**0.5)
    alone = score_system(_system("A", SPOILT), "yy")
    assert [getattr(alone, field.name) is None for field in dataclasses.fields(alone)] == [False, True] * 3
