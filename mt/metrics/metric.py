"""The interface of a metric, and the base classes of those that are computed from text and by sacreBLEU."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sacrebleu.metrics.base import Metric as Implementation

Lines = Sequence[str]


class Metric(ABC):
    """A metric, which is computed in two steps: statistics of each segment, then a score of their sum.

    So a resampled corpus, or one in which two systems have exchanged some segments, can be scored without its text. A
    metric that is a mean of segment scores has the statistics (score, 1), and divides the first sum by the second.
    """

    in_verdict: ClassVar[bool] = False
    """Whether comparisons base their verdict on the metric. If so, it is one of the significance tests that are
    corrected together. If not, reports show its scores, interval and uncorrected p-value."""
    name: str
    """The name in reports."""
    higher_is_better: bool = True
    decimals: int = 2
    """The number of decimals of a score in reports."""
    signature: str
    """Version and settings of the implementation. Only scores with equal signatures can be compared."""

    @abstractmethod
    def score(self, sums: np.ndarray) -> np.ndarray:
        """Return the scores (…) of summed statistics (…, C)."""


class TextMetric(Metric):
    """The interface of a metric of one target language that is computed from text."""

    in_validation: ClassVar[bool] = True
    """Whether every validation during training computes the metric; False if it is too slow."""

    @abstractmethod
    def __init__(self, language: str) -> None:
        """Prepare the metric for a target language."""

    @abstractmethod
    def statistics(self, hypotheses: Lines, *references: Lines) -> np.ndarray:
        """Return the statistics (N, C) of N segments, and set ``signature`` for this number of references.

        Args:
            hypotheses: A translation of each segment.
            references: One or several references of each segment.
        """

    def corpus_score(self, hypotheses: Lines, *references: Lines) -> float:
        """Return the score of a corpus, from 0 to 100 for most metrics."""
        return float(self.score(self.statistics(hypotheses, *references).sum(axis=0)))

    def segment_scores(self, hypotheses: Lines, *references: Lines) -> list[float]:
        """Return the score of each segment as a corpus of its own."""
        scores: list[float] = self.score(self.statistics(hypotheses, *references)).tolist()
        return scores


class SacrebleuMetric(TextMetric):
    """Base class of metrics with the statistics and the signature of sacreBLEU.

    A subclass implements ``score``, which must equal sacreBLEU's corpus score.
    """

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation
        self.statistics([""], [""])  # sets the signature for one reference

    def statistics(self, hypotheses: Lines, *references: Lines) -> np.ndarray:
        counts = self._implementation._extract_corpus_statistics(hypotheses, references)
        self.signature = str(self._implementation.get_signature())
        return np.array(counts, dtype=np.float64)
