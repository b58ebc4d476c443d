"""What the tests of models share: a small batch, and what a model makes of one."""

from torch import Tensor

from mt.data.batching.batch import Batch, collate
from mt.models.seq2seq import Seq2Seq

SOURCES, TARGETS = [[5, 6, 7, 8], [9], [10, 11]], [[12, 13], [14, 15, 16, 17], [18]]


def three_pairs() -> Batch:
    return collate(SOURCES, TARGETS)


def decoded(model: Seq2Seq, batch: Batch) -> Tensor:
    """The features of all targets."""
    return model.decode(model.encode(batch.source), batch.target_input)
