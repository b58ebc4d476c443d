"""The settings of the search for translations."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, model_serializer, model_validator

from mt.config.fields import For, NonNegativeInt, NotABool, PathText, PositiveInt, Section, Seed, Share, Within

StorageType = Literal["int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"]
"""Number formats smaller than fp32, as CTranslate2 names them."""
ComputeType = Literal["float32", StorageType]
MAX_BEAM_SIZE = 1000
FOR_SAMPLING = For("method", "sample")
ONE_BEST = ("method", "n_best", "engine", "markup")
"""Keys that must have their defaults where a command needs the single best translation of plain text by PyTorch."""


ENGINES = {
    "torch": "mt.translation.torch_engine:TorchEngine",
    "ctranslate2": "mt.translation.ctranslate2_engine:CTranslate2Engine",
}
"""The registry of engines, as "module:class" by name. A class is imported when it is first used."""
if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[tuple(ENGINES)]


class DecodingConfig(Section):
    """The settings of the search, complete with defaults. A run and a model have one each."""

    engine: EngineName = "torch"
    """Library that searches: torch (PyTorch), or ctranslate2, which exports the model first and finds the same
    translations faster."""
    compute_type: Annotated[ComputeType | None, For("engine", "ctranslate2")] = None
    """With engine=ctranslate2: the number format of weights and computation, if the machine supports it: int8,
    int8_float32, int8_float16, int8_bfloat16, int16, float16 or bfloat16. null: float32, with which both engines find
    the same translations."""
    method: Literal["beam", "sample"] = "beam"
    """Search method. beam: beam search. sample: draw each token at random from the model's probabilities."""
    beam_size: Annotated[int, Within(1, MAX_BEAM_SIZE)] = 5
    """Number of hypotheses that beam search keeps at each step. 1: greedy search."""
    length_penalty: Annotated[float, Within(0, 10)] = 1.0
    """The exponent α in score = log P(hypothesis) / length^α, by which beam search ranks hypotheses."""
    n_best: Annotated[int, Within(1, 10_000)] = 1
    """Number of translations of each line. With more than 1, the output has a JSON line with scored hypotheses for each
    input line."""
    temperature: Annotated[float, NotABool, Field(gt=0, le=1e9), FOR_SAMPLING] = 1.0
    """With method=sample: the softmax temperature. Below 1, likely tokens are drawn more often; above 1, unlikely
    ones."""
    top_k: Annotated[NonNegativeInt, FOR_SAMPLING] = 0
    """With method=sample: draw from this many of the likeliest tokens only. 0: from all tokens."""
    top_p: Annotated[Share, FOR_SAMPLING] = 1.0
    """With method=sample: draw from the smallest set of likeliest tokens that together have this probability."""
    seed: Annotated[Seed, FOR_SAMPLING] = 1
    """With method=sample: the random seed. The random numbers of a line depend on it and on the line's number."""
    split_sentences: Literal["auto", False] = "auto"
    """auto: cut lines with more sentences than lines of the training text had into sentences, translate each sentence
    by itself, and join the translations. false: translate each line as one sentence."""
    correct_typos: Literal["auto", True, False] = "auto"
    """true: replace an unknown word by a frequent word of the training text from which a single typing error sets it
    apart. A word that the general word list of the source language has is not unknown. auto: do so if there is a list
    for the language. false: translate all words as they are."""
    markup: Annotated[
        Literal["auto", "html", "xml", False], BeforeValidator(lambda value: value or value is None and "auto")
    ] = "auto"
    """Markup of the input: it is removed before translation, and put back around the translations of its words.
    html, xml: the line is HTML or XML. auto: the line is plain text, in which pairs are markup, such as <1>…</1>,
    **…**, [b]…[/b] and {linkStart}…{linkEnd}. false: a tag or mark is copied to the position that the model predicts
    for it."""
    unrepaired: Literal["source", "translation"] = "source"
    """source: a line comes back untranslated if its translation lacks a link, placeholder or tag, or has one too many,
    which cannot be repaired. translation: it comes back as it is."""
    max_length_ratio: Annotated[float, NotABool, Field(gt=0, le=1000)] = 2.0
    """Limits a translation to max_length_ratio · source tokens + max_length_extra tokens."""
    max_length_extra: Annotated[int, Within(0, 1_000_000)] = 20
    """Number of tokens that is added to the limit of a translation's length. See max_length_ratio."""
    max_source_length: PositiveInt | Literal["auto"] = "auto"
    """Maximum number of tokens of a source sentence. A longer one is cut into parts, whose translations are joined.
    auto: the 99.9 % quantile of the training sources' lengths, but at most 256."""
    batch_tokens: PositiveInt = 4096
    """Maximum number of source tokens in a batch, including padding, and counted once for each hypothesis of the
    beam."""

    def validation_errors(self) -> Iterator[str]:
        if self.method == "beam" and self.n_best > self._largest_beam:
            yield f"n_best={self.n_best} needs beam_size ≥ {self.n_best}, not {self._largest_beam}"
        if self.engine == "ctranslate2" and self.method == "sample":
            yield "engine=ctranslate2 cannot sample: with method=sample set engine=torch"

    def refuse(self, reason: str, *keys: str) -> Iterator[str]:
        """Yield a message for each of the keys that does not have its default.

        Args:
            reason: The reason why the key must have its default, for the message.
            keys: Names of keys in this section.
        """
        for key in keys:
            if Section.differs_from_default(self, key):
                yield f"decoding.{key}={getattr(self, key)}: {reason}; leave decoding.{key} out"

    @property
    def _largest_beam(self) -> int:
        return self.beam_size


class DecodingChoice(DecodingConfig):
    """The settings of the search that a user has set. A key that is not set, or null, has the model's own value."""

    alignments: PathText | None = None
    """File to write the word alignment of each input line to, in Pharaoh format (0-0 1-2: indices of words in source
    and translation). With n_best > 1, the JSON lines have it, too."""

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        if self.method == "sample" and self.differs_from_default("beam_size"):
            yield f"beam_size={self.beam_size} is for method=beam: sampling has no beam, leave beam_size out"

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        return {key: value for key, value in values.items() if value is not None}

    def differs_from_default(self, key: str) -> bool:
        return key in self.model_fields_set

    def over(self, own: DecodingConfig) -> DecodingConfig:
        """Return complete settings: the user's, and the model's own for keys that the user has not set.

        Args:
            own: The model's own settings.

        Raises:
            ValidationError: The user's settings contradict the model's own.
        """
        given = {key: getattr(self, key) for key in self.model_fields_set & DecodingConfig.model_fields.keys()}
        return DecodingConfig.model_validate(own.model_dump() | given)

    @property
    def _largest_beam(self) -> int:
        # A model's own method is always beam search (see ModelDescription). Its beam size is unknown here, so that the
        # largest possible one is assumed.
        return self.beam_size if self.differs_from_default("beam_size") else MAX_BEAM_SIZE

    @model_serializer
    def _given(self) -> dict[str, object]:
        return {key: getattr(self, key) for key in type(self).model_fields if self.differs_from_default(key)}
