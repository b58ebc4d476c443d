"""Yields the batches of pairs to validate and test on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mt.data.batching.batch import Batch, collate_table
from mt.data.batching.plan import encoded_lengths, plan_in_order
from mt.data.subwords import ID_COLUMNS

if TYPE_CHECKING:
    import datasets


def evaluation_batches(pairs: "datasets.Dataset", batch_tokens: int) -> Iterator[Batch]:
    """Yield every encoded pair once, in the same batches each time.

    The longest pairs come first, so that a batch too large for the memory fails at once and not after all the others.
    """
    encoded = pairs.with_format("arrow").select_columns(["id", *ID_COLUMNS])
    for rows in reversed(plan_in_order(encoded_lengths(pairs), batch_tokens)):
        yield collate_table(encoded[rows])
