"""Batches keep to their budget and keep every core busy."""

import math

from hypothesis import given
from hypothesis import strategies as st

from mt.translation.engine import plan_batches


@given(
    lengths=st.lists(st.integers(1, 40), max_size=80),
    rows_each=st.integers(1, 5),
    cores=st.integers(1, 4),
    batch_tokens=st.integers(1, 300),
)
def test_batches_keep_to_the_budget_and_every_core_busy(lengths, rows_each, cores, batch_tokens):
    batches = plan_batches(lengths, rows_each, batch_tokens, cores)
    equal = [len(batch) for batch in plan_batches([1] * len(lengths), 1, batch_tokens, cores)]
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    flat = [lengths[index] for batch in batches for index in batch]
    assert flat == sorted(flat, reverse=True)
    sizes = [len(batch) * lengths[batch[0]] * rows_each for batch in batches]
    assert all(size <= batch_tokens or len(batch) == 1 for size, batch in zip(sizes, batches, strict=True))
    # Of sentences of one length, each core gets as many as can be, in batches of an eighth of the budget at least.
    count = len(lengths)
    most = cores * math.ceil(math.ceil(count / batch_tokens) / cores)
    size = max(1, batch_tokens // 8, math.ceil(count / max(1, most)))
    assert equal == [min(size, count - start) for start in range(0, count, size)]
