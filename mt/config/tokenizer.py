"""How text is cut into tokens."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from mt.config.fields import NotABool, PathText, Probability, Section


class PiecesConfig(Section):
    """The properties of a trained tokenizer."""

    kind: Literal["bpe", "unigram", "char"] = "bpe"
    """bpe (Sennrich et al. 2016), unigram (Kudo 2018), or char: single characters."""
    vocabulary_size: Annotated[int, NotABool, Field(ge=264, le=1_000_000)] = 8000
    """How many tokens. All 256 bytes and four special tokens are among them; with kind=char it is an upper bound."""
    joint: bool = True
    """true: one vocabulary for both languages; false: one for each."""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] | None = None
    """How SentencePiece normalises text before it cuts it; the names that end in cf also lowercase it.

    null: identity where a language is Chinese, Japanese or Korean, whose wide punctuation NFKC would replace by ASCII;
    otherwise nmt_nfkc."""
    character_coverage: Annotated[float, NotABool, Field(gt=0.9, le=1)] | None = None
    """The share of characters that get a token of their own; the others are written in bytes. null: 0.9995 for Chinese,
    Japanese and Korean, otherwise 1."""


class TokenizerConfig(PiecesConfig):
    """SentencePiece, trained on the training pairs alone."""

    sampling: Probability = 0.0
    """Cuts sentences differently in every epoch. bpe: the probability that a merge is left out (BPE-dropout, Provilkov
    et al. 2020); unigram: 1 - α of Kudo 2018; 0: always the same cut."""
    reuse: PathText | None = None
    """A run or model folder whose tokenizer is taken instead of training one."""

    def contradictions(self) -> Iterator[str]:
        if self.kind == "char" and self.sampling > 0:
            yield "sampling needs kind=bpe or unigram: characters can be cut in one way only"
