"""What happens to lines before they are cut into pieces, and to training pairs so that the model meets what people
type."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from mt.config.fields import NotABool, PositiveInt, Probability, Section, Texts


class RulesConfig(Section):
    """The text layer, whoever uses it."""

    rules: Literal[0, 1] = 1
    """Version of the rules. 1: links, numbers, codes, placeholders, tags and emoji come back whole, lines in capitals
    or title case are lowercased for the model, lines of many sentences are cut. 0: lines go to the tokenizer as they
    are."""
    slots: Annotated[int, NotABool, Field(ge=1, le=64)] = 10
    """How many different slots can stand for items in one sentence. Each is a piece of the vocabulary. A sentence with
    more items is translated in parts."""
    terms: Texts = ()
    """Words that are not to be translated, such as names of products. They come back as they are."""
    patterns: Texts = ()
    """Regular expressions (RE2's) of further items that are not to be translated. They need pip install google-re2."""

    def contradictions(self) -> Iterator[str]:
        for name in ("slots", "terms", "patterns"):
            if self.rules == 0 and self.is_given(name):
                yield f"{name} need rules=1"


class TextDescription(RulesConfig):
    """The text layer of a trained model."""

    most_sentences: PositiveInt = 1
    """Lines with more sentences are cut into their sentences: nearly all lines of the training text had at most so
    many."""


class AlignmentConfig(Section):
    """Which of the decoder's attentions to the source tells where words come from."""

    layer: Annotated[int, NotABool, Field(ge=0, le=255)] = 0
    """The decoder's layer, from 0 on."""
    shift: Literal[0, 1] = 0
    """0: the row that predicts a piece. 1: the row that reads it."""


class AugmentationConfig(Section):
    """Shares of the training pairs that are changed, drawn anew in each epoch. 0 leaves a kind out."""

    lower_case: Probability = 0.04
    """Sources in small letters. Lines in capitals or in title case are translated by way of these."""
    capitals: Probability = 0.01
    """Sources with some words in CAPITALS."""
    unpunctuated: Probability = 0.03
    """Pairs without the punctuation at their end."""
    typos: Probability = 0.1
    """Sources with a typing error in about every eighth word."""
    slots: Probability = 0.12
    """Pairs in which slots stand for names and numbers that both sides share, or are put at an end of both."""
    joined: Probability = 0.02
    """Pairs that are joined with one or two others into one."""

    def contradictions(self) -> Iterator[str]:
        exclusive = ("lower_case", "capitals", "unpunctuated", "typos")
        if (total := sum(getattr(self, name) for name in exclusive)) > 1:
            yield f"{' + '.join(exclusive)} is {total:g}, but a pair is changed in one of these ways: at most 1"

    @property
    def is_off(self) -> bool:
        return not any(getattr(self, name) for name in type(self).model_fields)


class TextConfig(RulesConfig):
    """The text layer and what the model learns for it."""

    augmentation: AugmentationConfig = AugmentationConfig()

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.rules == 0 and self.augmentation.slots:
            yield f"augmentation.slots={self.augmentation.slots:g} needs rules=1: without the rules there are no slots"
