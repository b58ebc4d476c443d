"""Faults of synthetic pairs."""

import pytest

from mt.synthesis.command import find_fault


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
        ("Il court vite", "a b c d e f g h " * 4, "loop"),
        ("non non non non", "no no no no", None),
        ("non non non", "no no no no", "loop"),
    ],
)
def test_find_fault_returns_first_reason(line, translation, reason):
    assert find_fault(line, translation, ("fr", "en")) == reason


@pytest.mark.parametrize(("languages", "reason"), [(("fr", "zh"), "loop"), (("zh", "zh"), None), (("fr", "fr"), None)])
def test_find_fault_counts_characters_without_spaces(languages, reason):
    assert find_fault("不不不不 哈", "好好好好", languages) == reason
