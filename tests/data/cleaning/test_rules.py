"""Cleaning rules for single pairs and for the whole corpus."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.data.cleaning.findings import CleaningFindings
from mt.data.cleaning.rules import (
    COMMON_SHARE,
    MAX_DEVIATIONS,
    MIN_REPEATS,
    MIN_TRANSLATIONS,
    RULES,
    find_boilerplate,
    has_mistranslated_number,
    has_unmatched_item,
    length_deviations,
)
from mt.data.pairs import combined_hash


@pytest.mark.parametrize(
    ("differ", "source", "target"),
    [
        (False, "It costs 1,249.99 dollars.", "Es kostet 1 249,99 Dollar."),
        (False, "It costs 1,000 yen.", "Es kostet 1000 Yen."),
        (False, "at 6:30", "um halb sieben"),
        (False, "at 2:30 p.m.", "um 14.30 Uhr"),
        (False, "at 10 o'clock at night", "um 22 Uhr"),
        (False, "300 miles", "480 Kilometer"),
        (False, "30 pounds", "14 Kilo"),
        (False, "5 of the 12 pages", "zwölf Seiten, davon 5"),
        (False, "In the 1960s", "In den 60er-Jahren"),
        (False, "१२ pages", "12 Seiten"),
        (False, "no number", "keine"),
        (False, "9" * 400, "8" * 5000),
        (True, "in 1984", "im Jahr 1948"),
        (True, "room 12", "Zimmer 13"),
        (True, "at 7:30", "um 7 Uhr 35"),
        (True, "I have 5.", "Ich habe 8."),
        (True, "1,249.99", "1 249,98"),
        (True, "an MP3 player", "ein MP4-Spieler"),
    ],
)
def test_has_mistranslated_number(differ, source, target):
    assert has_mistranslated_number(source, target) == differ == has_mistranslated_number(target, source)


@pytest.mark.parametrize(
    ("source", "target", "differ"),
    [
        ("See https://example.com/a.", "Siehe https://example.com/a.", False),
        ("See https://example.com/a.", "Siehe dort.", True),
        ("<b>Stop</b>", "<b>Halt</b>", False),
        ('<img alt="a dog">', '<img alt="ein Hund">', False),
        ("<p>Stop", "Halt", True),
        ("Stop&nbsp;", "Halt", True),
        ("Hello {name}", "Hallo {name}", False),
        ("Hello {name}", "Hallo {nam}", True),
        ("a <file object>", "ein Dateiobjekt", False),
        ("R&D & 5 < 6", "F&E & 5 < 6", False),
        ("Mail anna@example.org", "Schreib an Anna", True),
    ],
)
def test_has_unmatched_item(source, target, differ):
    assert has_unmatched_item(source, target) == differ == has_unmatched_item(target, source)


KEY = st.integers(-(2**63), 2**63 - 1)


def test_duplicate_rule_keeps_first_pair():
    findings = CleaningFindings(("duplicate",), {"train": 6})
    findings.keys[:, 0] = [3, 1, 3, 2, 1, 3]
    assert RULES["duplicate"].match_corpus(None, findings).tolist() == [2, 4, 5]


@given(st.tuples(KEY, KEY), st.tuples(KEY, KEY))
@example((0, 0), (-(2**63), 0))  # which differ in one bit
def test_combined_hash_distinguishes_pairs(pair, other_pair):
    first, second = combined_hash(*np.array([pair, other_pair], dtype=np.int64).T)
    assert (first == second) == (pair == other_pair)


def _is_boilerplate(keys, row):
    for side in (0, 1):
        same = keys[keys[:, side] == keys[row, side]]
        share = (same == keys[row]).all(axis=1).mean()
        varied = len({tuple(pair) for pair in same.tolist()}) >= MIN_TRANSLATIONS
        if len(same) >= MIN_REPEATS and varied and share < COMMON_SHARE:
            return True
    return False


def test_find_boilerplate_equals_brute_force():
    random = np.random.default_rng(1)
    seen = set()
    for number in (0, 1, 300, 1200):
        # A few texts are frequent, and so are a few of their translations.
        keys = np.minimum(random.zipf(1.6, (number, 2)), 40).astype(np.int64)
        is_boilerplate = find_boilerplate(keys).tolist()
        assert is_boilerplate == [_is_boilerplate(keys, row) for row in range(number)]
        seen |= set(is_boilerplate)
    assert seen == {False, True}


def test_find_boilerplate_at_limits():
    def pairs(repeats, variety):
        return np.array([(7, 100 + index % variety) for index in range(repeats)])

    assert find_boilerplate(pairs(MIN_REPEATS, MIN_TRANSLATIONS + 3)).all()
    assert not find_boilerplate(pairs(MIN_REPEATS - 1, MIN_TRANSLATIONS + 3)).any()
    assert not find_boilerplate(pairs(MIN_REPEATS, MIN_TRANSLATIONS - 1)).any()
    assert not find_boilerplate(pairs(MIN_REPEATS, MIN_TRANSLATIONS)).any()  # each has the share of a usual translation


def test_length_deviations_depend_on_length_class():
    """Ratios of short texts vary more than those of long texts, and targets are twice as long as sources."""
    random = np.random.default_rng(1)
    lengths = random.integers(20, 2000, 20_000)
    usual = random.normal(0, 6 / lengths**0.5)
    lengths[[0, 1, 5, 6]] = 40, 40, 1500, 1500
    usual[[0, 1, 5, 6]] = 1.2, -1.2, 1.2, -1.2  # which is not unusual in short texts
    pairs = np.stack([lengths, 2 * lengths * np.exp(usual)], axis=1).round().astype(np.int32)
    deviations = length_deviations(pairs, len(pairs))
    outliers = np.flatnonzero(np.abs(deviations) > MAX_DEVIATIONS)
    assert {5, 6} == set(outliers.tolist()) & {0, 1, 5, 6} and len(outliers) < 40
    assert np.sign(deviations[[5, 6]]).tolist() == [1, -1]
    # Held-out pairs are judged, but nothing is learned from them.
    more = np.concatenate([pairs, np.tile([[100, 10_000]], (30_000, 1))]).astype(np.int32)
    judged = length_deviations(more, len(pairs))
    np.testing.assert_array_equal(judged[: len(pairs)], deviations)
    assert (judged[len(pairs) :] > MAX_DEVIATIONS).all()


def test_length_deviations_of_few_pairs_and_empty_sides():
    assert length_deviations(np.array([[3, 3]], dtype=np.int32), 1).tolist() == [0]
    assert np.isfinite(length_deviations(np.array([[0, 3], [4, 0], [2, 2]], dtype=np.int32), 3)).all()
