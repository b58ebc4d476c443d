"""TER (Snover et al. 2006), as sacreBLEU computes it."""

import numpy as np
from sacrebleu.metrics.ter import TER

from mt.metrics.bleu import bleu_tokenizer
from mt.metrics.metric import SacrebleuMetric


class Ter(SacrebleuMetric):
    """TER: edits per 100 words of the reference. The score may exceed 100."""

    name = "TER"
    in_verdict = True
    higher_is_better = False
    in_validation = False

    def __init__(self, language: str) -> None:
        # TER separates Chinese and Japanese characters only if it normalizes, too. Otherwise a sentence would be one
        # word.
        without_spaces = bleu_tokenizer(language) != "13a"
        super().__init__(TER(normalized=without_spaces, asian_support=without_spaces))

    def score(self, sums: np.ndarray) -> np.ndarray:
        """Return TER (…) of summed counts (…, 2): the edits, and the length of the references."""
        edits, length = sums[..., 0], sums[..., 1]
        return 100 * np.where(length > 0, edits / np.where(length > 0, length, 1), edits > 0)
