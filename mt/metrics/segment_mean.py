"""The mean of segment scores that another program has computed, or that people have given."""

from dataclasses import dataclass

import numpy as np

from mt.metrics.metric import Metric


@dataclass(frozen=True, eq=False)
class SegmentMean(Metric):
    """A metric whose statistics (N, 2) are given: the score of each segment, and 1."""

    name: str
    signature: str
    higher_is_better: bool
    decimals: int

    def score(self, sums: np.ndarray) -> np.ndarray:
        means: np.ndarray = sums[..., 0] / sums[..., 1]
        return means
