"""Draws depend on their key alone."""

from hypothesis import given
from hypothesis import strategies as st

from mt.core.randomness import Generators, generator


@given(
    seed=st.integers(0, 2**63 - 1),
    keys=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1),
    draws=st.integers(0, 5),
)
def test_many_keys_of_one_generator_draw_what_a_generator_each_would(seed, keys, draws):
    many = Generators(seed, "test")
    for numbers in keys:
        one, other = many.at(*numbers), generator(seed, "test", *numbers)
        for _ in range(draws):
            assert one.integers(1000, dtype="int32") == other.integers(1000, dtype="int32")
            assert one.random() == other.random()
        assert one.permutation(7).tolist() == other.permutation(7).tolist()
