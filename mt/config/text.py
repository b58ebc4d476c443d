"""The settings of the text layer, of the subword tokenizer, and of the augmentation of training pairs with capitals,
typing errors and more.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from mt.config.fields import For, NotABool, PathText, Probability, Section, Texts, Within
from mt.core.errors import brief

FINAL_MARKS: Final = ".!?…。！？।॥؟"
"""Characters that end a sentence."""
MAX_SOURCE_TOKENS = 256
"""Default of the maximum number of tokens that are translated or scored as one source. Memory and time grow with their
square."""
RESERVED_SYMBOL: Final = re.compile(r"(?s)<pad>|<unk>|</?s>|<0x[0-9A-F]{2}>|.*[\s▁\0\U0010c000-\U0010ffff].*")
"""Matches texts that cannot be symbols: SentencePiece's own pieces, and texts with whitespace or with the characters
that stand for values."""
Terms: TypeAlias = Mapping[str, tuple[str, ...]]
"""A glossary: source term → its target forms, the usual one first."""


class KeptConfig(Section):
    """A glossary, and patterns to leave untranslated, in addition to links, numbers and the other built-in kinds."""

    terms: PathText | None = None
    """Glossary: a file of terms and their translations (.tsv or .csv). Each term of a source is translated in
    this way. In a file with one column, they are left untranslated."""
    patterns: Annotated[Texts, Field(max_length=1_000)] = ()
    """List of regular expressions (in the syntax of Python's module regex) for further text to leave untranslated."""


class TextLayerConfig(KeptConfig):
    """The settings of a text layer, which prepares text for the tokenizer and restores it after translation."""

    enabled: bool = True
    """Prepare each line for the model, and undo the changes in its translation. false: give lines to the tokenizer
    unchanged.

    Links, numbers, codes, placeholders of programs ({name}, %s), tags and emoji are copied to the translation. In lines
    in uppercase, title case or lowercase letters, each word gets the case that it mostly has in the training text.
    Lines with more sentences than lines of the training text have are cut, typing errors are corrected, and missing
    final punctuation is added for the model only. text=off switches off the text layer and all augmentation."""
    slots: Annotated[int, Within(1, 64), For("enabled", True)] = 10
    """Number of placeholder tokens in the vocabulary of each of two kinds: for numbers, and for links and other
    untranslated text. A sentence that needs more of a kind is translated in parts."""

    def validation_errors(self) -> Iterator[str]:
        for name in ("terms", "patterns"):
            if not self.enabled and self.differs_from_default(name):
                yield f"{name} have no effect with enabled=false: leave {name} out, or set enabled=true"


EXCLUSIVE_SHARES: Final = ("lower_case", "capitals", "unpunctuated", "typos")
"""The settings of AugmentationConfig for changes of which a pair gets one at most, in the order of their draws."""


class AugmentationConfig(Section):
    """The shares of training pairs that are changed in each way, from 0 (none) to 1. Pairs are drawn anew in each
    epoch."""

    lower_case: Probability = 0.04
    """Share of pairs whose source is lowercased. The text layer lowercases lines in uppercase and in title case for
    translation."""
    capitals: Probability = 0.01
    """Share of pairs with some words of the source in UPPERCASE."""
    unpunctuated: Probability = 0.05
    """Share of pairs without the final punctuation of source and target."""
    typos: Probability = 0.08
    """Share of pairs whose source gets a typing error in about every eighth word."""
    slots: Probability = 0.14
    """Share of pairs with additional placeholders, which teach the model to copy these tokens.

    They replace names that both sides share and words with their translations, or are added at the beginning, at the
    end, or before a comma or the final punctuation of both sides. Unless this is 0, they also replace the number words
    of some pairs."""
    symbols: Probability = 0.04
    """Share of pairs that get a dash or one of & + / ~ on both sides, if it is rare in the training sources.

    It is put in front of a word and its translation, of the text after a comma, or of the last one of joined pairs."""
    words: Probability = 0.03
    """Share of pairs that are replaced by one of their words and its translation, with the final punctuation. They
    teach the model labels, list entries and other texts of one word."""
    joined: Probability = 0.02
    """Share of pairs that are joined with one or two other pairs to a longer one. Pairs that data.weight repeats in an
    epoch are not joined."""

    def validation_errors(self) -> Iterator[str]:
        if (total := sum(getattr(self, name) for name in EXCLUSIVE_SHARES)) > 1:
            yield f"{' + '.join(EXCLUSIVE_SHARES)} is {total:g}: set shares whose sum is at most 1"

    @property
    def is_off(self) -> bool:
        return not any(getattr(self, name) for name in type(self).model_fields)


class TextConfig(TextLayerConfig):
    """The settings of a run's text layer, and of the augmentation that prepares the model for its output."""

    augmentation: AugmentationConfig = AugmentationConfig()

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        for name in ("slots", "symbols"):
            if not self.enabled and (share := getattr(self.augmentation, name)):
                yield f"augmentation.{name}={share:g} needs enabled=true: set text=off to switch both off"


class PiecesConfig(Section):
    """The settings of a tokenizer that its training needs and that its model keeps."""

    kind: Literal["bpe", "unigram", "char"] = "bpe"
    """Segmentation algorithm: bpe (Sennrich et al. 2016), unigram (Kudo 2018), or char, single characters."""
    vocabulary_size: Annotated[int, Within(264, 1_000_000)] = 8000
    """Number of tokens in a vocabulary, including 256 bytes and four special tokens. With kind=char: the maximum."""
    joint: bool = True
    """true: train one vocabulary for both languages. false: one for each."""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] | None = None
    """SentencePiece's Unicode normalization before segmentation. nmt_nfkc_cf and nfkc_cf also lowercase the text.

    null: identity if a language is Chinese, Japanese or Korean, whose wide punctuation NFKC would replace by ASCII.
    Otherwise nmt_nfkc."""
    character_coverage: Annotated[float, NotABool, Field(gt=0.9, le=1)] | None = None
    """Share of the characters in the training text that tokens must cover. Rarer characters are encoded as bytes. null:
    0.9995 for Chinese, Japanese and Korean, otherwise 1."""
    symbols: Annotated[Texts, Field(max_length=1_000)] = ()
    """User-defined symbols, such as [@tech,#url#]: texts that are never split or changed, each a token of its own in
    source and target. With training.init_from or reuse: symbols to add to those of that tokenizer."""

    def validation_errors(self) -> Iterator[str]:
        for symbol in self.symbols:
            if RESERVED_SYMBOL.fullmatch(symbol) or self.symbols.count(symbol) > 1:
                yield f"symbols={brief(symbol)}: has whitespace, is reserved or is given twice; choose another"


class TokenizerConfig(PiecesConfig):
    """The settings of a run's tokenizer, which SentencePiece trains on the training pairs."""

    sampling: Annotated[Probability, For("kind", "bpe")] = 0.0
    """With kind=bpe: strength of subword regularization, which segments training sentences differently in each epoch:
    the probability of leaving out a merge (BPE-dropout, Provilkov et al. 2020). 0: none."""
    reuse: PathText | None = None
    """Run or model folder to take the tokenizer from, instead of training one. null: train one."""
    extend: Annotated[int, Within(0, 100_000), For("kind", "bpe", "unigram")] = 0
    """Number of pieces to add to the tokenizer of training.init_from or of reuse: frequent words of the new training
    text that this tokenizer cuts. With joint=false, each side gets so many. Their embeddings begin as the mean of those
    of the tokens that they replace."""
