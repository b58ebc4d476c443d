"""Which translations have the values of their source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.formats.directives import has_placeholders_of
from mt.text.intact import is_intact


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
def test_a_translation_has_each_value_once_and_in_one_piece(translation, values, expected):
    assert is_intact(translation, values) is expected


@pytest.mark.parametrize("period", ["ha ", "<b>", "**a** ", "a", "ab-"])
def test_long_values_that_repeat_themselves(period):
    value = period * (100_000 // len(period))
    assert is_intact(f"Il {value} dit.", [value])
    assert not is_intact(f"Il {value} dit.", [f"{value}x"])
    assert not is_intact(f"Il {value[1:]} dit.", [value])


TEXT = st.text(st.sampled_from("ab %{}$#'|,=.\n\t<>&1é漢") | st.characters(codec="utf-8"), max_size=30)


@pytest.mark.parametrize(
    ("source", "translation", "syntax"),
    [
        ("%s of %d", "%d de %s", ""),
        ("100% sure", "100 % sûr", ""),
        ("50% of it", "50 % d'eau", ""),
        ("{a} b", "b {a}", ""),
        ("{n, plural, one {# dog} other {# dogs}}", "{n, plural, one {# chien} other {# chiens}}", "icu"),
        ("%sB", "%sB", "printf"),
    ],
)
def test_the_same_placeholders_in_any_order(source, translation, syntax):
    assert has_placeholders_of(source, translation, syntax)


@pytest.mark.parametrize(
    ("source", "translation", "syntax"),
    [
        ("%s x", "x", ""),
        ("x", "%s x", ""),
        ("%@ x", "x", ""),
        ("%{name}", "%{nom}", ""),
        ("{a} {a}", "{a}", ""),
        ("$COUNT$ tabs", "$COUNT onglets", ""),
        ("{n, plural, one {# dog} other {dogs}}", "{n, plural, one {chien} other {chiens}}", "icu"),
        ("{n, plural, one {a} other {b}}", "{n, plural, one {a} few {c} other {b}}", ""),
        ("{n, plural, one {a} other {b}} of {x}", "{n, plural, one {a} other {b}}", ""),
        ("{n, plural, one {a} other {b}}", "a", ""),
        ("{0,choice,0#none|1#one}", "{0,choice,0#none|1#one}", ""),
        ("{n, plural, one {a} other {b}}", "{m, plural, one {a} other {b}}", ""),
        ("%sB", "%s", "printf"),
    ],
)
def test_other_placeholders(source, translation, syntax):
    assert not has_placeholders_of(source, translation, syntax)


@given(TEXT)
def test_a_text_has_its_own_placeholders(text):
    assert has_placeholders_of(text, text)
