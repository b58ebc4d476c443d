"""Which translations have the values of their source."""

import pytest

from mt.text.placeholders.intact import is_intact


@pytest.mark.parametrize(
    ("translation", "values", "expected"),
    [
        ("le 5, {a} et %s", ["%s", "{a}", "5"], True),
        ("le 5 et {a}", ["5", "{a}", "%s"], False),
        ("le 5", ["5", "5"], False),
        ("le 5 et 15", ["15", "5"], True),
        ("le 15", ["5"], False),
        ("l'aB-7s", ["B-7"], False),
        ("la 21e", ["21"], True),
        ("{a} et {b}", ["{a}"], False),
        ("{a} {a}", ["{a}"], False),
        ("un <b> de", [], False),
        ("rien", [], True),
    ],
)
def test_a_translation_has_each_value_once_and_in_one_piece(
    translation: str, values: list[str], expected: bool
) -> None:
    assert is_intact(translation, values) is expected


@pytest.mark.parametrize("period", ["ha ", "<b>", "**a** ", "a", "ab-"])
def test_long_values_that_repeat_themselves(period: str) -> None:
    value = period * (100_000 // len(period))
    assert is_intact(f"Il {value} dit.", [value])
    assert not is_intact(f"Il {value} dit.", [f"{value}x"])
    assert not is_intact(f"Il {value[1:]} dit.", [value])
