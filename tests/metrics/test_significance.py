"""The tests of significance: exact where that can be counted, calibrated where it is simulated."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from mt.metrics.significance import (
    MAX_ENUMERATED_BLOCKS,
    Randomization,
    _critical_t,
    _tail_probability,
    block_numbers,
    bootstrap_scores,
    combine_tests,
    holm,
    middle_95,
    randomization_test,
    seed_test,
    sum_blocks,
    wilson_95,
)
from tests import toy
from tests.calibration import (
    SENTENCES,
    VARIANTS,
    Cell,
    SeedCell,
    exact_power,
    exchangeable,
    metrics,
    most_allowed,
    pool,
    share_called_different,
    simulate_seeds,
)

REFERENCES = toy.sentences(40, 3)
SENTENCE = st.lists(st.sampled_from(["ba", "de", "fi", "go", "ku.", "La"]), max_size=9).map(" ".join)


def _random(seed=1):
    return np.random.default_rng(seed)


@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=8))
def test_score_of_summed_counts_equals_sacrebleu(pairs):
    hypotheses, references = map(list, zip(*pairs, strict=True))
    for name, theirs in (("BLEU", BLEU()), ("chrF2", CHRF()), ("TER", TER())):
        ours = metrics()[name]
        score = theirs.corpus_score(hypotheses, [references]).score
        assert ours.score(ours.statistics(hypotheses, references).sum(axis=0)) == pytest.approx(score, abs=1e-9)
        assert ours.signature == str(theirs.get_signature())


@pytest.mark.parametrize("metric", ["BLEU", "chrF2", "TER"])
def test_randomization_p_is_share_of_all_swaps(metric):
    """Every way to exchange the two outputs, scored by sacreBLEU itself. Some sentences are equal in both."""
    references = REFERENCES[:9]
    first = [f"za {line}" if number % 3 else line for number, line in enumerate(references)]
    second = [f"{line} za za" if number % 2 else line for number, line in enumerate(references)]
    theirs = {"BLEU": BLEU(), "chrF2": CHRF(), "TER": TER()}[metric]

    def difference(exchanged):
        sides = zip(first, second, exchanged, strict=True)
        pairs = [(two, one) if swap else (one, two) for one, two, swap in sides]
        scores = [theirs.corpus_score(list(side), [references]).score for side in zip(*pairs, strict=True)]
        return abs(scores[1] - scores[0])

    differing = [one != two for one, two in zip(first, second, strict=True)]
    choices = [(False, True) if differs else (False,) for differs in differing]
    found = [difference(exchanged) for exchanged in itertools.product(*choices)]
    expected = np.mean([value >= found[0] - 1e-9 for value in found])
    ours = metrics()[metric]
    counts = [ours.statistics(lines, references) for lines in (first, second)]
    tested = randomization_test(*counts, ours.score, 100, _random())
    assert tested.exact and tested.differing == sum(differing) and tested.p == pytest.approx(expected)


TER_SCORE = metrics()["TER"].score


def _one_word(won, lost, count):
    """TER's counts of two systems, where one word is wrong in sentences that the first, or the second, lost."""
    first, second = (np.stack([np.zeros(count), np.full(count, 8.0)], axis=1) for _ in range(2))
    first[:won, 0] = 1
    second[won : won + lost, 0] = 1
    return [first, second]


@pytest.mark.parametrize(("won", "lost"), [(14, 6), (9, 2), (5, 0), (6, 0), (3, 3)])
def test_randomization_counts_ties(won, lost):
    """Sentences won and lost by the same difference: the sign test, whose p can be counted by hand."""
    tested = randomization_test(*_one_word(won, lost, 60), TER_SCORE, 100_000, _random())
    count = won + lost
    as_large = [math.comb(count, wins) for wins in range(count + 1) if abs(2 * wins - count) >= abs(won - lost)]
    assert tested.exact == (count <= MAX_ENUMERATED_BLOCKS)
    assert tested.p == pytest.approx(sum(as_large) / 2**count, abs=0 if tested.exact else 0.004)


def test_block_numbers_and_sum_blocks():
    blocks = block_numbers(["a", "b", "a", "c", "b", "a"])
    assert blocks.tolist() == [0, 1, 0, 2, 1, 0]
    counts = np.arange(12.0).reshape(6, 2)
    sums = sum_blocks(counts, blocks)
    assert sums.tolist() == [[0 + 4 + 10, 1 + 5 + 11], [2 + 8, 3 + 9], [6, 7]]
    # The same sentence won twelve times is one piece of evidence, not twelve.
    repeated = _one_word(12, 0, 12)
    assert randomization_test(*repeated, TER_SCORE, 100, _random()).p < 0.001
    together = [sum_blocks(one, block_numbers(["the same"] * 12)) for one in repeated]
    assert randomization_test(*together, TER_SCORE, 100, _random()).p == 1


@pytest.mark.parametrize("metric", ["BLEU", "TER"])
def test_randomization_has_power_of_exact_test(metric):
    cell = Cell(metric, 30, ties=True, repeats=False)
    found = share_called_different(cell, pairs=1000, trials=999, advantage=0.2)
    exact = exact_power(cell, found, 0.2)
    assert exact == pytest.approx(0.589, abs=5e-4)  # binomial, by hand: 9 or fewer of 30 lost
    assert found == pytest.approx(exact, abs=0.06)


def test_randomization_swaps_all_seeds_together():
    """Against every exchange, scored by the formula on its own: the mean of the seeds' scores is what counts."""
    random, score = _random(), metrics()["BLEU"].score
    first, second = (
        np.stack([exchangeable(Cell("BLEU", 7, False, False), 0.0, random)[n] for _ in range(3)]) for n in (0, 1)
    )
    differences = []
    for exchanged in itertools.product([False, True], repeat=7):
        swap = np.array(exchanged)[None, :, None]
        one, two = np.where(swap, second, first), np.where(swap, first, second)
        differences.append(abs(float((score(two.sum(axis=1)) - score(one.sum(axis=1))).mean())))
    expected = np.mean([value >= differences[0] - 1e-9 for value in differences])
    assert randomization_test(first, second, score, 1, random).p == pytest.approx(expected)


def test_randomization_p_is_never_zero():
    tested = randomization_test(*_one_word(40, 0, 60), TER_SCORE, 999, _random())
    assert tested.p == pytest.approx(1 / 1000) and not tested.exact


CELLS = [
    Cell(metric, sentences, ties=ties, repeats=repeats)
    for metric, sentences, ties, repeats in (
        ("TER", 6, True, False), ("TER", 9, True, True), ("TER", 30, True, False), ("TER", 300, False, True),
        ("chrF2", 6, True, False), ("chrF2", 16, False, True), ("chrF2", 100, True, True), ("BLEU", 6, True, True),
        ("BLEU", 16, True, False), ("BLEU", 30, False, False), ("BLEU", 300, True, True),
    )
] + [Cell(metric, 30, ties=False, repeats=True, references=2) for metric in ("BLEU", "TER")]  # fmt: skip
"""Some of ``python -m tests.calibration``."""


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_randomization_keeps_its_level(cell):
    assert share_called_different(cell, pairs=1000, trials=99) <= most_allowed(1000)


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "pairs"), [((3, 3), 4000), ((2, 10), 2000)], ids=str)
def test_seed_and_randomization_tests_keep_their_level(seeds, pairs):
    deviation, _, called = simulate_seeds(SeedCell(seeds, 150, 0.1), pairs, trials=99)
    assert 0.2 < deviation < 1.5 and called["both"] <= most_allowed(pairs)
    assert called["sentences"] > 0.1  # what asking only one of the two questions would lead to


@pytest.mark.parametrize("rows", [14, 120])
def test_combine_tests_keeps_its_level(rows):
    """Most translations are perfect and a few very bad, so that the mean of several is unlike a single one."""
    random, counts, score = np.random.default_rng(rows), pool("BLEU", False), metrics()["BLEU"].score
    called, pairs = 0, 200
    for _ in range(pairs):
        sentences = random.integers(0, SENTENCES, rows)
        first, *others = (counts[sentences, np.where(random.random(rows) < 1 / 8, VARIANTS - 1, 0)] for _ in range(6))
        tests = [randomization_test(first, other, score, 99, random) for other in others]
        called += combine_tests(tests).p < 0.05
    assert called / pairs <= most_allowed(pairs)


def test_combine_tests_uses_twice_the_median_p():
    tests = [Randomization(p, differing, True) for p, differing in ((0.4, 3), (0.01, 9), (0.02, 5))]
    assert combine_tests(tests) == Randomization(0.04, 9, True)
    assert combine_tests(tests[:1]) == tests[0]
    assert combine_tests([*tests, Randomization(0.03, 1, False)]) == Randomization(0.06, 9, False)  # the upper of two
    assert combine_tests([tests[0]] * 2 + [Randomization(0.9, 3, True)] * 3).p == 1


def test_bootstrap_scores_have_known_deviation():
    """Against the bootstrap's formula for a mean: the score is one, so its deviation is known."""
    random = _random()
    edits = random.integers(0, 4, 400).astype(float)
    counts = np.stack([edits, np.full(400, 10.0)], axis=1)
    (drawn,) = bootstrap_scores([counts], TER_SCORE, 20_000, _random())
    assert drawn.mean() == pytest.approx(10 * edits.mean(), rel=0.002)
    assert drawn.std() == pytest.approx(10 * edits.std() / 20, rel=0.03)
    low, high = middle_95(drawn)
    assert (high - low) / 2 == pytest.approx(1.96 * drawn.std(), rel=0.05)
    # The same blocks are drawn for all systems: a constant difference has no width.
    first, second = bootstrap_scores([counts, counts + [1, 0]], TER_SCORE, 500, _random())
    assert middle_95(second - first) == pytest.approx((10, 10))


@pytest.mark.parametrize(
    ("degrees", "critical"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (10, 2.2281), (30, 2.0423), (1000, 1.9623)],
)
def test_critical_t_equals_tables(degrees, critical):
    """Critical values at 0.05, two-sided, as tables of the distribution have them."""
    assert _critical_t(0.05, degrees) == pytest.approx(critical, abs=6e-5)
    assert _tail_probability(critical, degrees) == pytest.approx(0.05, abs=2e-5) and _tail_probability(
        0, degrees
    ) == pytest.approx(1)


def test_seed_test_equals_welch_by_hand():
    """Means 30 and 31, deviations 0.4: an error of 0.4 · √(2/3) and four degrees of freedom."""
    first, second = [29.6, 30.0, 30.4], [30.6, 31.0, 31.4]
    found = seed_test(first, second)
    error = 0.4 * math.sqrt(2 / 3)
    assert found.difference == pytest.approx(1) and found.least_difference == pytest.approx(2.7764 * error, abs=1e-3)
    assert found.least_difference == pytest.approx(0.907, abs=1e-3)
    assert found.low == pytest.approx(1 - found.least_difference) and found.p == pytest.approx(
        _tail_probability(1 / error, 4), abs=1e-9
    )
    # Unequal numbers and deviations: Welch and Satterthwaite's degrees of freedom.
    first, second = [20.0, 22.0], [30.0, 30.1, 30.3, 30.2, 29.9]
    found = seed_test(first, second)
    parts = [2.0 / 2, np.var(second, ddof=1) / 5]
    degrees = sum(parts) ** 2 / (parts[0] ** 2 + parts[1] ** 2 / 4)
    assert found.p == pytest.approx(_tail_probability((np.mean(second) - 21) / math.sqrt(sum(parts)), degrees))
    # Where the smaller sample happens to scatter less, Student's pooled deviation is the stricter one.
    first, second = [20.0, 20.1], [29.0, 30.0, 31.0, 28.0, 32.0]
    pooled = math.sqrt((0.005 + 4 * np.var(second, ddof=1)) / 5 * (1 / 2 + 1 / 5))
    assert seed_test(first, second).p == pytest.approx(_tail_probability((30 - 20.05) / pooled, 5))


def test_seed_test_without_deviation_has_no_p():
    found = seed_test([30.0, 30.0], [31.0, 31.0])
    assert found.p is None and math.isinf(found.least_difference)


# Several tests at once, and shares


@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm_equals_closed_bonferroni_test(ps):
    """A hypothesis is rejected if every set of hypotheses that it belongs to is, by Bonferroni."""
    assert len(holm(ps)) == len(ps)
    for place, corrected in enumerate(holm(ps)):
        others = [p for number, p in enumerate(ps) if number != place]
        sets = [[ps[place], *chosen] for size in range(len(ps)) for chosen in itertools.combinations(others, size)]
        assert corrected == pytest.approx(max(min(1.0, len(chosen) * min(chosen)) for chosen in sets))


@given(st.integers(1, 200), st.data())
def test_wilson_bounds_solve_the_score_test(total, data):
    count = data.draw(st.integers(0, total))
    low, high = wilson_95(count, total)
    share = count / total
    assert 0 <= low <= share <= high <= 1
    for bound in (low, high):
        if 0 < bound < 1:
            assert abs(share - bound) / math.sqrt(bound * (1 - bound) / total) == pytest.approx(1.959964, rel=1e-5)
    assert (low == 0) == (count == 0) and (high == 1) == (count == total)
