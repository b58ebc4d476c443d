"""chrF2 (Popović 2015), as sacreBLEU computes it."""

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from mt.metrics.metric import SacrebleuMetric


class Chrf(SacrebleuMetric):
    """chrF2: character n-grams of lengths 1 to 6, recall weighted twice."""

    name = "chrF2"
    in_verdict = True

    def __init__(self, language: str) -> None:
        super().__init__(CHRF())

    def score(self, sums: np.ndarray) -> np.ndarray:
        """Return chrF2 (…) of summed counts (…, 18).

        The counts are, for each n-gram length from 1 to 6, the n-grams of the hypotheses, the n-grams of the
        references, and the matches.
        """
        hypothesis, reference, matches = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
        counted = (hypothesis > 0) & (reference > 0)
        lengths = np.maximum(1, counted.sum(axis=-1))
        precision = np.where(counted, matches / np.maximum(hypothesis, 1e-9), 0).sum(axis=-1) / lengths
        recall = np.where(counted, matches / np.maximum(reference, 1e-9), 0).sum(axis=-1) / lengths
        return 100 * 5 * precision * recall / np.maximum(4 * precision + recall, 1e-300)
