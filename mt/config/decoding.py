"""How translations are searched for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_serializer, model_validator

from mt.config.fields import For, NonNegativeInt, NotABool, PathText, PositiveInt, Section, Seed, Share

StorageType = Literal["int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"]
"""CTranslate2's names of number formats below fp32."""
ComputeType = Literal["float32", StorageType]
MAX_BEAM_SIZE = 1000
ONE_BEST = ("method", "n_best", "engine", "markup")
"""The keys whose defaults stand for one best translation of plain text by the model itself."""


ENGINES = {
    "torch": "mt.translation.torch_engine:TorchEngine",
    "ctranslate2": "mt.translation.ctranslate2_engine:CTranslate2Engine",
}
"""The registry of engines. Each class is imported at its first use."""
if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[tuple(ENGINES)]


class DecodingConfig(Section):
    engine: EngineName = "torch"
    """Who searches: the model itself (torch), or ctranslate2, which finds the same hypotheses faster, with an export of
    the model."""
    compute_type: Annotated[ComputeType | None, For("engine", "ctranslate2")] = None
    """With engine=ctranslate2: the number format, as the machine supports it. null: float32, in which both engines find
    the same."""
    method: Literal["beam", "sample"] = "beam"
    """beam search, or sample: draw translations at random."""
    beam_size: Annotated[int, NotABool, Field(ge=1, le=MAX_BEAM_SIZE)] = 5
    """How many hypotheses are kept at every step. 1 is greedy search; method=sample has no beam."""
    length_penalty: Annotated[float, NotABool, Field(ge=0, le=10)] = 1.0
    """α in score = log P(hypothesis) / length^α."""
    n_best: Annotated[int, NotABool, Field(ge=1, le=10_000)] = 1
    """How many translations of each line. More than 1 writes one JSON line of scored hypotheses for each input line."""
    temperature: Annotated[float, NotABool, Field(gt=0, le=1e9), For("method", "sample")] = 1.0
    """With method=sample: below 1 prefers likely pieces, above 1 takes unlikely ones more often."""
    top_k: Annotated[NonNegativeInt, For("method", "sample")] = 0
    """With method=sample: draw from the k likeliest pieces only. 0: from all."""
    top_p: Annotated[Share, For("method", "sample")] = 1.0
    """With method=sample: draw from the likeliest pieces that together have this probability."""
    seed: Annotated[Seed, For("method", "sample")] = 1
    """With method=sample: what is drawn depends on this number and the line's number."""
    split_sentences: Literal["auto", False] = "auto"
    """auto: lines with more sentences than the training text had are cut into their sentences, which are translated by
    themselves and joined again. false: a line is one sentence."""
    correct_typos: Literal["auto", False] = "auto"
    """auto: an unknown word that a typing error makes of a frequent word of the training text is taken for that word.
    false: all words are translated as they are typed."""
    markup: Literal["html", "xml"] | None = None
    """html, xml: lines have tags in them. The text between them is translated, and the tags are put back where the
    words went. null: lines are plain text; a tag comes back as it is, at the place that the model gives it."""
    max_length_ratio: Annotated[float, NotABool, Field(gt=0, le=1000)] = 2.0
    """A hypothesis has at most max_length_ratio · source pieces + max_length_extra pieces."""
    max_length_extra: Annotated[int, NotABool, Field(ge=0, le=1_000_000)] = 20
    """See max_length_ratio."""
    max_source_length: PositiveInt | Literal["auto"] = "auto"
    """Sentences with more pieces are cut into parts, translated, and joined again. auto: as many as 99.9 % of the
    training sources have at most, but not more than 256."""
    batch_tokens: PositiveInt = 4096
    """The most source tokens in a batch, padding and beams included."""

    def contradictions(self) -> Iterator[str]:
        if self.method == "beam" and self.n_best > self._largest_beam:
            yield f"n_best={self.n_best} needs beam_size ≥ {self.n_best}, not {self._largest_beam}"
        if self.engine == "ctranslate2" and self.method == "sample":
            yield "engine=ctranslate2 does not sample: method=sample needs engine=torch"

    def refuse(self, reason: str, *keys: str) -> Iterator[str]:
        """Yield a message for each of the keys that has another value than the default."""
        for key in keys:
            if Section.differs_from_default(self, key):
                yield f"decoding.{key}={getattr(self, key)}: {reason}; leave decoding.{key} out"

    @property
    def _largest_beam(self) -> int:
        return self.beam_size


class DecodingChoice(DecodingConfig):
    """The user's choices. A key that is not set, or null, is the model's own."""

    alignments: PathText | None = None
    """A file to write: for each line of input the links between its words and those of the translation, as 0-0 1-2
    (Pharaoh's format). With n_best > 1, the JSON lines have them, too."""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.method == "sample" and self.differs_from_default("beam_size"):
            yield f"beam_size={self.beam_size} is for method=beam: sampling has no beam"

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        return {key: value for key, value in values.items() if value is not None}

    def differs_from_default(self, key: str) -> bool:
        return key in self.model_fields_set

    def over(self, own: DecodingConfig) -> DecodingConfig:
        """Return the choice completed by a model's own decoding.

        Raises:
            ValidationError: the two contradict each other.
        """
        given = {key: getattr(self, key) for key in self.model_fields_set & DecodingConfig.model_fields.keys()}
        return DecodingConfig.model_validate(own.model_dump() | given)

    @property
    def _largest_beam(self) -> int:
        # A model's own decoding is a plain beam search (ModelDescription), and only its beam size is unknown here.
        return self.beam_size if self.differs_from_default("beam_size") else MAX_BEAM_SIZE

    @model_serializer
    def _given(self) -> dict[str, object]:
        return {key: getattr(self, key) for key in type(self).model_fields if self.differs_from_default(key)}
