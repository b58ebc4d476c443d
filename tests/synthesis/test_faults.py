"""Which pairs are left out, and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.synthesis.faults import MAX_LOOP_WORDS, fault, repeats


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_repeats_are_what_brute_force_finds(words):
    most = 1
    for start in range(len(words)):
        for length in range(1, MAX_LOOP_WORDS + 1):
            said, times = words[start : start + length], 1
            while len(said) == length and words[start + times * length : start + (times + 1) * length] == said:
                times += 1
            most = max(most, times)
    assert repeats(" ".join(words), "en") == most
    assert repeats("".join(words), "zh") == most


@pytest.mark.parametrize(
    ("line", "translation", "reason"),
    [
        ("Le chat dort.", "The cat sleeps.", None),
        ("  ", "x", "blank line"),
        ("caf\udce9", "coffee", "not UTF-8"),
        ("Le chat", " ", "empty translation"),
        ("Le chat", "The c\ufffdt", "broken characters"),
        ("Le c\ufffdt", "The c\ufffdt", None),
        ("Berlin 2024 !", "“Berlin” 2024", "copy of the line"),
        ("Il court vite", "he runs runs runs runs", "loop"),
        ("Il court vite", "he runs runs runs fast", None),
        ("Il court vite", "a b c d e f " * 4, "loop"),
        ("non non non non", "no no no no", None),
        ("non non non", "no no no no", "loop"),
    ],
)
def test_the_reason_is_told(line, translation, reason):
    assert fault(line, translation, ("fr", "en")) == reason
