"""No sentence stands in two parts, and which pairs are held out depends on the text alone."""

import numpy as np
import pyarrow
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mt.data.split import hold_out
from mt.errors import InputError

SENTENCE = st.integers(0, 60).map("sentence {}".format)


def parts(pairs: list[tuple[str, str]], sizes: tuple[int, ...]) -> np.ndarray:
    return hold_out(pyarrow.array([source for source, _ in pairs]), pyarrow.array([t for _, t in pairs]), sizes)


@given(pairs=st.lists(st.tuples(SENTENCE, SENTENCE), min_size=20, max_size=60), size=st.integers(1, 5))
def test_no_sentence_in_two_parts(pairs: list[tuple[str, str]], size: int) -> None:
    try:
        part = parts(pairs, (size, size + 1))
    except InputError:
        assume(False)
    for side in (0, 1):
        places: dict[str, set[int]] = {}
        for pair, number in zip(pairs, part, strict=True):
            places.setdefault(pair[side], set()).add(number)
        assert all(len(numbers) == 1 for numbers in places.values())
    assert (part == 1).sum() >= size
    assert (part == 2).sum() >= size + 1


@given(pairs=st.lists(st.tuples(SENTENCE, SENTENCE), min_size=20, max_size=60, unique=True), random=st.randoms())
def test_the_order_of_the_lines_does_not_matter(pairs: list[tuple[str, str]], random: object) -> None:
    shuffled = pairs.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    try:
        expected = dict(zip(pairs, parts(pairs, (2, 3)), strict=True))
    except InputError:
        assume(False)
    assert dict(zip(shuffled, parts(shuffled, (2, 3)), strict=True)) == expected


def test_long_chains_stay_together() -> None:
    chain = [(f"left {number // 2}", f"right {(number + 1) // 2}") for number in range(2000)]
    singles = [(f"left {number}", f"right {number}") for number in range(5000, 5300)]
    part = parts(chain + singles, (20, 20))
    assert not part[: len(chain)].any()
    assert sorted(np.bincount(part[len(chain) :])) == [20, 20, 260]


def test_large_groups_are_as_likely_as_small_ones() -> None:
    singles = [(f"alone {number}", f"seul {number}") for number in range(8000)]
    groups = [(f"shared {number // 4}", f"partagé {number}") for number in range(8000)]
    part = parts(singles + groups, (2000,))
    share = (part[8000:] == 1).sum() / (part == 1).sum()
    assert 0.45 < share < 0.55


def test_something_is_left_to_learn_from() -> None:
    for count in range(4, 40):
        pairs = [(f"left {number // 3}", f"right {number}") for number in range(count)]
        try:
            part = parts(pairs, (max(1, count // 10),) * 2)
        except InputError:
            continue
        assert (part == 0).any()
    with pytest.raises(InputError, match=r"2 \+ 2 pairs cannot be held out of 7"):
        parts([(f"left {number // 3}", f"right {number}") for number in range(6)] + [("one", "alone")], (2, 2))


def test_too_few_groups_are_refused() -> None:
    with pytest.raises(InputError, match=r"data\.valid"):
        parts([("the same", f"andere {number}") for number in range(100)], (10, 10))
