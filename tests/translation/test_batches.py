"""plan_batches: the budget of batches, and their number for several cores."""

import math

from hypothesis import given
from hypothesis import strategies as st

from mt.translation.engine import plan_batches


@given(
    lengths=st.lists(st.integers(1, 40), max_size=80),
    rows_per_source=st.integers(1, 5),
    cores=st.integers(1, 4),
    batch_tokens=st.integers(1, 300),
)
def test_plan_batches_sorts_by_length_within_budget(lengths, rows_per_source, cores, batch_tokens):
    batches = plan_batches(lengths, rows_per_source, batch_tokens, cores)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    planned_lengths = [lengths[index] for batch in batches for index in batch]
    assert planned_lengths == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch[0]] * rows_per_source <= batch_tokens


@given(count=st.integers(0, 80), cores=st.integers(1, 4), batch_tokens=st.integers(1, 300))
def test_plan_batches_divides_equal_lengths_evenly_among_cores(count, cores, batch_tokens):
    sizes = [len(batch) for batch in plan_batches([1] * count, 1, batch_tokens, cores)]
    max_batches = cores * math.ceil(math.ceil(count / batch_tokens) / cores)
    size = max(1, batch_tokens // 8, math.ceil(count / max(1, max_batches)))
    assert sizes == [min(size, count - start) for start in range(0, count, size)]
