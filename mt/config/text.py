"""The text layer, and the augmentation of training pairs with capitals, typos and the like."""

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field

from mt.config.fields import For, NotABool, Probability, Section, Texts

FINAL_MARKS: Final = ".!?…。！？।॥؟"
"""What a sentence may end with."""
MAX_SOURCE_TOKENS = 256
"""Pieces that are translated or scored as one source, unless decoding.max_source_length allows more. Memory and time of
a source grow with their square."""
MAX_TERMS_SIZE = 500_000
"""Maximum number of characters of all terms together."""


class KeptConfig(Section):
    """Terms and patterns that are not translated, in addition to the rules."""

    terms: Annotated[Texts, Field(max_length=20_000)] = ()
    """Words that are not to be translated, such as names of products. They are found as they are written here, but not
    inside longer words."""
    patterns: Annotated[Texts, Field(max_length=1_000)] = ()
    """Regular expressions (RE2's) of further items that are not to be translated. They need pip install google-re2."""

    def contradictions(self) -> Iterator[str]:
        if (characters := sum(map(len, self.terms))) > MAX_TERMS_SIZE:
            yield f"terms has {characters:,} characters, and more than {MAX_TERMS_SIZE:,} would make every line slow"


class TextLayerConfig(KeptConfig):
    """The settings of a text layer."""

    enabled: bool = True
    """Prepare each line for the model, and undo this in its translation.

    Links, numbers, codes, placeholders, tags and emoji come back whole. Words in lines in capitals, title case or small
    letters get the case that they mostly have in the training text. Lines with more sentences than those of the
    training text are cut, typing errors are corrected, and missing final punctuation is added for the model only.
    false: lines go to the tokenizer unchanged. text=off sets this, with all augmentation off."""
    slots: Annotated[int, NotABool, Field(ge=1, le=64), For("enabled", True)] = 10
    """How many links, numbers and the like a sentence can have; one with more is translated in parts. For each there is
    a placeholder, a token of the vocabulary that stands for it, and another one that stands for a number."""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        for name in ("terms", "patterns"):
            if not self.enabled and self.differs_from_default(name):
                yield f"{name} need the text layer, which enabled=false switches off"


class AugmentationConfig(Section):
    """Shares of the training pairs that are changed, drawn anew in each epoch. 0 leaves a kind out."""

    lower_case: Probability = 0.04
    """Sources in small letters, in which lines in capitals and in title case are translated."""
    capitals: Probability = 0.01
    """Sources with some words in CAPITALS."""
    unpunctuated: Probability = 0.05
    """Pairs without the punctuation at their end."""
    typos: Probability = 0.08
    """Sources with a typing error in about every eighth word."""
    slots: Probability = 0.14
    """Pairs in which placeholders stand for names that both sides share and for words with their translations, or are
    put in front of both sides, behind them, or before a comma or the punctuation at the end. In further pairs,
    placeholders stand for number words."""
    joined: Probability = 0.02
    """Pairs that go into longer ones, of two or three each. Pairs that their weight repeats in an epoch are left
    out."""

    def contradictions(self) -> Iterator[str]:
        exclusive = ("lower_case", "capitals", "unpunctuated", "typos")
        if (total := sum(getattr(self, name) for name in exclusive)) > 1:
            yield f"{' + '.join(exclusive)} is {total:g}, but a pair is changed in one of these ways: at most 1"

    @property
    def is_off(self) -> bool:
        return not any(getattr(self, name) for name in type(self).model_fields)


class TextConfig(TextLayerConfig):
    """The text layer, and the augmentation that teaches it to the model."""

    augmentation: AugmentationConfig = AugmentationConfig()

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if not self.enabled and self.augmentation.slots:
            yield f"augmentation.slots={self.augmentation.slots:g} needs enabled=true; text=off switches off both"
