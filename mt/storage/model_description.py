"""The schema of ``model.yaml``, which describes a trained model."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self, assert_never

from pydantic import Field

from mt.config import (
    FINAL_MARKS,
    MAX_SOURCE_TOKENS,
    ONE_BEST,
    DecodingConfig,
    ModelConfig,
    PiecesConfig,
    RNNAttentionConfig,
    TextLayerConfig,
    TrainConfig,
    TransformerConfig,
)
from mt.config.fields import AsTuple, LanguageCode, NonNegativeInt, PositiveInt, Section, Texts, Within
from mt.core.language import UNKNOWN_LANGUAGE, Direction, base_language

Coefficient = Annotated[float, Field(ge=-1e6, le=1e6)]
Words = Annotated[Texts, Field(max_length=20_000)]
FinalMark = Annotated[str, Field(pattern=f"^[{FINAL_MARKS}]$")]


class TextLayerDescription(TextLayerConfig):
    """The settings of a trained model's text layer, and counts that training took from its text."""

    terms: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the model's own glossary, which is in terms.json; null: it has none."""
    rare_characters: dict[Annotated[str, Field(min_length=1, max_length=1)], NonNegativeInt] = {}
    """How often the training sources have each character of the vocabulary that they have too seldom for the model to
    know it. Such characters come back unchanged. A small letter stands for its capital, too."""
    max_sentences: PositiveInt = 1
    """Maximum number of sentences in nearly all lines of the training text. A line with more is cut into its
    sentences."""
    long_source: PositiveInt = MAX_SOURCE_TOKENS
    """The 99.9 % quantile of the lengths of the training sources, in tokens. Longer sentences are cut into parts."""
    usual_source: PositiveInt = MAX_SOURCE_TOKENS
    """The 95 % quantile of the lengths of the training sources, in tokens: the length of the parts of a long
    sentence."""
    min_word_count: PositiveInt | None = None
    """A word may replace an unknown one if the training text has it at least this often. null: typing errors are not
    corrected."""
    final_marks: Annotated[dict[FinalMark, Words], Field(max_length=20)] = {}
    """The marks that can complete a sentence without final punctuation. Each is mapped to the first words of the
    sentences that get it. A sentence with any other first word gets the first mark. Without marks, sentences stay as
    they are."""
    translated_capitals: Words = ()
    """Words in uppercase that are translated, unlike acronyms: frequent words, and acronyms that the training text
    translates."""
    known_marks: Annotated[Texts, Field(max_length=20)] = ()
    """Marks between parts of a sentence that the training sources have often. Sentences are not cut at them."""
    edge_marks: dict[Annotated[str, Field(pattern="^[,;:]$")], str] = {}
    """How the training targets write a comma, semicolon and colon, with the whitespace before it."""
    tags: Words = ()
    """The tags in front of the training sources that tell the target language, such as ``<2fr>``."""


class AlignmentConfig(Section):
    """The attention of the decoder that aligns target tokens with source tokens."""

    layer: Annotated[int, Within(0, 255)] = 0
    """The decoder's layer, counted from 0."""
    shift: Literal[0, 1] = 0
    """0: a token is aligned by the attention of the step that predicts it. 1: by that of the next step, which reads
    it."""


class ConfidenceConfig(Section):
    """A logistic model of the probability that a translation is good; see ``mt.translation.confidence.Features``."""

    intercept: Coefficient
    score: Coefficient
    agreement: Coefficient
    length_ratio: Coefficient
    token_length: Coefficient
    repaired: Coefficient


class DirectionDescription(Section):
    """A direction of a model with language tokens."""

    source_language: LanguageCode
    target_language: LanguageCode
    text: TextLayerDescription


class ModelDescription(DirectionDescription):
    """The content of ``model.yaml``: everything that translation needs besides the tokenizer and the weights.

    The languages and the text layer are those of the first direction.
    """

    directions: Annotated[tuple[DirectionDescription, ...], AsTuple] = ()
    """All directions, whose sources begin with the token of the target language; empty if the model has no such
    tokens."""
    model: ModelConfig
    tokenizer: PiecesConfig
    decoding: DecodingConfig
    """The settings of the search where the user sets none."""
    alignment: AlignmentConfig = AlignmentConfig()
    confidence: ConfidenceConfig | None
    """null: there is none, because the validation set was too small or had only good or only bad translations."""

    @classmethod
    def of(
        cls,
        config: TrainConfig,
        texts: Mapping[Direction, TextLayerDescription],
        alignment: AlignmentConfig,
        confidence: ConfidenceConfig | None = None,
        *,
        has_language_tokens: bool = False,
    ) -> Self:
        """Describe the model that a run has trained.

        Args:
            config: The run's config.
            texts: The text layer of each direction, with what training counted.
            alignment: The attention that training found to align best.
            confidence: The confidence that was fitted on the validation set.
            has_language_tokens: Whether sources begin with the token of the target language.
        """
        directions = [
            DirectionDescription(source_language=own.source, target_language=own.target, text=text)
            for own, text in texts.items()
        ]
        return cls(
            **dict(directions[0]),
            directions=tuple(directions) if has_language_tokens else (),
            model=config.model,
            tokenizer=PiecesConfig(**{name: getattr(config.tokenizer, name) for name in PiecesConfig.model_fields}),
            decoding=config.decoding,
            alignment=alignment,
            confidence=confidence,
        )

    @property
    def layers(self) -> dict[Direction, TextLayerDescription]:
        """The text layer of each direction."""
        own = self.directions or (self,)
        return {Direction(part.source_language, part.target_language): part.text for part in own}

    def closest(self, direction: Direction) -> Direction | None:
        """Return a direction itself if the model has it, else one with the same source language; None if it has none.

        A text layer depends on the source language more than on the target language.
        """
        known = (UNKNOWN_LANGUAGE, base_language(direction.source))
        candidates = sorted(self.layers, key=direction.__ne__)
        return next((own for own in candidates if base_language(own.source) in known), None)

    @property
    def max_source_length(self) -> int:
        """Maximum number of tokens of a sentence that the model translates as a whole by default."""
        own = self.decoding.max_source_length
        if own != "auto":
            return own
        return self.text.long_source if self.text.enabled else MAX_SOURCE_TOKENS

    def validation_errors(self) -> Iterator[str]:
        match self.model:
            case TransformerConfig():
                layers = self.model.decoder_layers
            case RNNAttentionConfig():
                layers = 1
            case _:
                assert_never(self.model)
        if self.alignment.layer >= layers:
            yield f"alignment.layer={self.alignment.layer}: the model has {layers} layers with attention to the source"
        yield from self.decoding.refuse("by itself, a model finds one best translation of plain text", *ONE_BEST)
