"""Number words of both sides are found once each, and only as whole words."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.text.numbers import number_words, pattern, shared_numbers


def test_number_words_are_those_that_are_one_word() -> None:
    english = number_words("en")
    assert english["ten"] == 10 and english["ninety"] == 90
    # "one hundred" and "soixante-dix" are not one word of letters.
    assert 100 not in english.values() and 70 not in number_words("fr").values()
    assert number_words("de")["zwölf"] == 12 and number_words("de")["dreißig"] == 30
    # One is an article in many languages, and second is a unit of time.
    for language, words in {
        "en": ("one", "second"),
        "de": ("ein", "eins"),
        "fr": ("un", "une"),
        "es": ("un", "uno"),
    }.items():
        assert not set(words) & number_words(language).keys()
    assert number_words("nb") == number_words("no") and number_words("kk")["он"] == 10
    assert number_words("deu_Latn") == number_words("de") == number_words("ger")
    assert number_words("xx") == {} and pattern("xx") is None


SHARED = [
    ("He has ten dogs.", "Er hat zehn Hunde.", [("ten", "zehn")]),
    ("Ten dogs, twenty cats", "Zwanzig Katzen, zehn Hunde", [("Ten", "zehn"), ("twenty", "Zwanzig")]),
    ("He has ten dogs.", "Er hat elf Hunde.", []),
    ("ten of ten", "zehn von zehn", []),  # which is which is not known
    ("ten of ten", "zehn", []),
    ("ten", "zehn, Zehn", []),
    ("tennis and often", "Tennis zehn", []),
    ("a ten-year-old", "zehn", []),
    ("ten tenants", "zehn Mieter", []),  # a placeholder in place of "ten" would stand in "tenants" too
    ("ten", "zehntausend", []),
    ("thirty five dogs, two cats", "fünf Hunde, zwei Katzen", [("two", "zwei")]),  # the one number is 35
    ("", "", []),
]


@pytest.mark.parametrize(("source", "target", "expected"), SHARED)
def test_numbers_that_both_sides_have_once(source: str, target: str, expected: list[tuple[str, str]]) -> None:
    assert shared_numbers(source, target, ("en", "de")) == expected


@given(st.lists(st.sampled_from(["ten", "Ten", "two", "TWO", "often", "seven-", "'six", "a", "12", "(nine)", "é"])))
@example(["ten", "two"])
def test_every_number_word_of_a_text_is_found_by_the_pattern(words: list[str]) -> None:
    text = " ".join(words)
    shared = shared_numbers(text, text, ("en", "en"))
    assert all(one == other and text.count(one) == 1 for one, other in shared)
    if shared:
        assert _matches(pattern("en"), text)
    if not set(words) & {"ten", "Ten", "two", "TWO", "(nine)", "seven-", "'six"}:
        assert not _matches(pattern("en"), text)


def _matches(pattern: str, text: str) -> bool:
    return pc.match_substring_regex(pa.array([text]), pattern)[0].as_py()
