"""The settings of the subword tokenizer."""

from typing import Annotated, Literal

from pydantic import Field

from mt.config.fields import For, NotABool, PathText, Probability, Section


class PiecesConfig(Section):
    """The settings of a tokenizer that its training needs and that its model keeps."""

    kind: Literal["bpe", "unigram", "char"] = "bpe"
    """Segmentation algorithm: bpe (Sennrich et al. 2016), unigram (Kudo 2018), or char, single characters."""
    vocabulary_size: Annotated[int, NotABool, Field(ge=264, le=1_000_000)] = 8000
    """Number of tokens in a vocabulary, including 256 bytes and four special tokens. With kind=char: the maximum."""
    joint: bool = True
    """true: train one vocabulary for both languages. false: one for each."""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] | None = None
    """SentencePiece's Unicode normalisation before segmentation. Those with cf in their names also lowercase the text.

    null: identity if a language is Chinese, Japanese or Korean, whose wide punctuation NFKC would replace by ASCII.
    Otherwise nmt_nfkc."""
    character_coverage: Annotated[float, NotABool, Field(gt=0.9, le=1)] | None = None
    """Share of the characters in the training text that tokens must cover. Rarer characters are encoded as bytes. null:
    0.9995 for Chinese, Japanese and Korean, otherwise 1."""


class TokenizerConfig(PiecesConfig):
    """The settings of a run's tokenizer, which SentencePiece trains on the training pairs."""

    sampling: Annotated[Probability, For("kind", "bpe")] = 0.0
    """With kind=bpe: strength of subword regularization, which segments training sentences differently in each epoch:
    the probability of leaving out a merge (BPE-dropout, Provilkov et al. 2020). 0: none."""
    reuse: PathText | None = None
    """Run or model folder to take the tokenizer from, instead of training one. null: train one."""
