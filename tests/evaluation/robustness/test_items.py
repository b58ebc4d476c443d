"""How planted items are found again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.randomness import generator
from mt.evaluation.robustness.items import ITEM_KINDS, draw_item, find_item, without_item

ITEMS = st.builds(
    lambda kind, seed, target: draw_item(kind, generator(seed, "test"), "en", target),
    st.sampled_from(ITEM_KINDS),
    st.integers(0, 500),
    st.sampled_from(["fr", "en", "zh"]),
)
TEXTS = st.lists(st.sampled_from(["un", "chien", "noir", "d'ici", "là-bas", ","]), max_size=6).map(" ".join)


@given(TEXTS, ITEMS, TEXTS)
def test_a_copied_item_is_whole_and_leaves_the_rest_when_removed(before, item, after):
    for form in item:
        text = f"{before} {form} {after}".strip()
        start, end = find_item(text, item)
        assert text[start:end] == form
        assert without_item(text, item) == f"{before} {after}".strip()


@given(TEXTS, ITEMS)
def test_twice_is_not_once(before, item):
    text = f"{before} {item[0]} et {item[-1]}"
    assert find_item(text, item) is None
    assert without_item(text, item) == f"{before} et {item[-1]}".strip()


@given(TEXTS, ITEMS)
def test_no_item_no_change(text, item):
    assert find_item(text, item) is None and without_item(text, item) == text


WHOLE = [
    ("la 12345.", "12345"), ("la (12345), là", "12345"), ("d'12345", "12345"), ("价格12345元", "12345"),
    ("12345에서", "12345"), ("12345: là", "12345"), ("19.99 €", "19.99"), ("$19.99", "19.99"),
    ("a B-207-et", "B-207"), ("um B-207.", "B-207"),
    ("voir https://www.example.org/news/7.", "https://www.example.org/news/7"),
    ("à anna.berg@example.org !", "anna.berg@example.org"), ("chien🎉", "🎉"), ("«%d»", "%d"),
    ("{name}!", "{name}"),
    ("{{count}}", "{{count}}"), ("${USER}", "${USER}"),
]  # fmt: skip
NOT_WHOLE = [
    ("123456", "12345"), ("012345", "12345"), ("12345,6", "12345"), ("12345.6", "12345"), ("A12345", "12345"),
    ("12 345", "12345"), ("1,12345", "12345"), ("12345-1", "12345"), ("119.99", "19.99"), ("19.991", "19.99"),
    ("19.99.1", "19.99"), ("AB-207", "B-207"), ("B-2071", "B-207"), ("A-B-207", "B-207"), ("b-207", "B-207"),
    ("https://www.example.org/news/7/x", "https://www.example.org/news/7"),
    ("https://www.example.org/news/77", "https://www.example.org/news/7"),
    ("x.anna.berg@example.org", "anna.berg@example.org"), ("anna.berg@example.org.uk", "anna.berg@example.org"),
    ("{{name}}", "{name}"), ("${name}", "{name}"), ("%%d", "%d"), ("%days", "%d"), ("{{{count}}}", "{{count}}"),
    ("🎉🎉", "🎉"), ("", "🎉"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "item"), WHOLE + NOT_WHOLE)
def test_whole(text, item):
    assert (find_item(text, (item,)) is not None) == ((text, item) in WHOLE)


def test_forms_count_together():
    forms = ("19.99", "19,99")
    assert find_item("cela coûte 19,99 €", forms) == (11, 16)
    assert find_item("19.99 ou 19,99", forms) is None


def test_every_kind_varies():
    for kind in ITEM_KINDS:
        assert len({draw_item(kind, generator(seed, "test"), "en", "fr") for seed in range(100)}) >= 7


@pytest.mark.parametrize(
    ("source", "target", "points"),
    [("en", "fr", ".,"), ("fr", "en", ",."), ("de", "fr", ","), ("en", "zh", "."), ("pt-BR", "eng", ",.")],
)
def test_a_price_has_the_sign_of_the_source_and_may_come_back_with_that_of_the_target(source, target, points):
    forms = draw_item("price", generator(1, "test"), source, target)
    assert [re.fullmatch(r"\d+(\D)\d\d", form).group(1) for form in forms] == list(points)
