"""How planted items are found again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.randomness import generator
from mt.evaluation.robustness.items import ITEM_KINDS, draw_item, find_item, without_item

ITEMS = st.builds(
    lambda kind, seed: draw_item(kind, generator(seed, "test")), st.sampled_from([*ITEM_KINDS]), st.integers(0, 500)
)
TEXTS = st.lists(st.sampled_from(["un", "chien", "noir", "d'ici", "là-bas", ","]), max_size=6).map(" ".join)


@given(TEXTS, ITEMS, TEXTS)
def test_a_copied_item_is_found_and_leaves_the_rest_when_removed(before, item, after):
    text = f"{before} {item} {after}".strip()
    start, end = find_item(text, item)
    assert text[start:end] == item
    assert without_item(text, item) == f"{before} {after}".strip()


@given(TEXTS, ITEMS)
def test_twice_is_not_once(before, item):
    text = f"{before} {item} et {item}"
    assert find_item(text, item) is None
    assert without_item(text, item) == f"{before} et {item}".strip()


@given(TEXTS, ITEMS)
def test_no_item_no_change(text, item):
    assert find_item(text, item) is None and without_item(text, item) == text


WHOLE = [
    ("la 12345.", "12345"), ("价格12345元", "12345"), ("12345에서", "12345"), ("12345: là", "12345"),
    ("12 345 et 12.346", "12345"), ("$19.99", "19.99"), ("19,99 €", "19.99"), ("$19.99", "19,99"),
    ("a B-207-et", "B-207"), ("à anna.berg@example.org !", "anna.berg@example.org"), ("chien🎉", "🎉"), ("«%d»", "%d"),
    ("voir https://www.example.org/news/7.", "https://www.example.org/news/7"), ("{name}!", "{name}"),
]  # fmt: skip
NOT_WHOLE = [
    ("123456", "12345"), ("012345", "12345"), ("12345,6", "12345"), ("1,12345", "12345"), ("119.99", "19.99"),
    ("19.991", "19.99"), ("19.99 ou 19,99", "19.99"), ("AB-207", "B-207"), ("B-2071", "B-207"), ("b-207", "B-207"),
    ("https://www.example.org/news/77", "https://www.example.org/news/7"), ("%days", "%d"), ("🎉🎉", "🎉"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "item"), WHOLE + NOT_WHOLE)
def test_find_item(text, item):
    assert (find_item(text, item) is not None) == ((text, item) in WHOLE)


@pytest.mark.parametrize("kind", ITEM_KINDS)
def test_items_vary(kind):
    assert len({draw_item(kind, generator(seed, "test")) for seed in range(100)}) >= 7


def test_a_price_has_a_point_or_a_comma():
    prices = [draw_item("price", generator(seed, "test")) for seed in range(50)]
    assert {re.fullmatch(r"\d{1,2}(\D)\d\d", price)[1] for price in prices} == {".", ","}
