"""How good translations are: BLEU, chrF and TER by sacreBLEU, with the signatures that make the numbers comparable."""

import importlib.util
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from mt.language import CHINESE, JAPANESE, KOREAN, base_language, writes_spaces

logger = logging.getLogger(__name__)


@lru_cache
def bleu_tokenizer(language: str) -> str:
    """sacreBLEU's tokenizer for a target language: zh, ja-mecab or ko-mecab (if installed), char, else 13a."""
    base = base_language(language)
    if base in CHINESE:
        return "zh"
    for languages, tokenizer, package, extra in (
        (JAPANESE, "ja-mecab", "MeCab", "ja"),
        (KOREAN, "ko-mecab", "mecab_ko", "ko"),
    ):
        if base in languages:
            if importlib.util.find_spec(package):
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


def corpus_scores(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Scores:
    """All three, as the ``sacrebleu`` command computes them with the same tokenizer."""
    bleu = BLEU(tokenize=bleu_tokenizer(language))
    chrf = CHRF()
    ter = TER(asian_support=bleu_tokenizer(language) != "13a")
    return Scores(
        bleu=bleu.corpus_score(hypotheses, [references]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        chrf_signature=str(chrf.get_signature()),
        ter=ter.corpus_score(hypotheses, [references]).score,
        ter_signature=str(ter.get_signature()),
    )
