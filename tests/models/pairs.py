"""A small batch for the tests of models."""

from mt.data.batching.batch import Batch, collate

SOURCES, TARGETS = [[5, 6, 7, 8], [9], [10, 11]], [[12, 13], [14, 15, 16, 17], [18]]


def three_pairs() -> Batch:
    return collate([0, 1, 2], SOURCES, TARGETS)
