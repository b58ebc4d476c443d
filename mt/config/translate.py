"""The settings of the commands that translate: translate, serve and synthesize."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from mt.config.decoding import ONE_BEST, DecodingChoice
from mt.config.fields import For, NonNegativeInt, NotABool, PathText, PositiveInt, Text, repeated_paths
from mt.config.machine import PrecisionConfig
from mt.config.text import KeptConfig

DocumentFormat = Literal["auto", "lines", "po", "xliff", "properties", "json", "srt", "vtt", "html", "markdown"]
"""``mt.documents.formats`` has their endings."""

Folders = PathText | Annotated[tuple[PathText, ...], Field(min_length=1)]


class DecodingCommandConfig(PrecisionConfig):
    """The settings of all commands that search for translations."""

    decoding: DecodingChoice = DecodingChoice()
    """null: what the model's own model.yaml says"""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        models = self.ensemble_size
        if self.decoding.engine == "ctranslate2" and models > 1:
            yield f"run names {models} models, which CTranslate2 does not combine: leave decoding.engine=torch"
        if self.decoding.engine == "ctranslate2" and self.precision != "fp32":
            yield f"precision={self.precision} is PyTorch's: with decoding.engine=ctranslate2 set decoding.compute_type"

    @property
    def ensemble_size(self) -> int:
        """The number of models that translate together."""
        return 1


class TranslateConfig(DecodingCommandConfig):
    """``python translate.py``"""

    run: Folders
    """A run or model folder. A list of several ([runs/A,runs/B]) is an ensemble: they translate together, and each next
    piece has the mean of their probabilities. They need one tokenizer."""
    input: PathText | None = None
    """A text file: plain, .gz, .xz or .zst; a document; or a folder or pattern (po/*.po) of documents. null: standard
    input."""
    output: PathText | None = None
    """A file to write; for a folder or pattern, a folder. null: standard output."""
    format: DocumentFormat = "auto"
    """What the input is. auto: what the ending of its name says, and lines if it says nothing. lines: one translation
    for each line, whatever the name."""
    retranslate: bool = False
    """Whether entries that have a translation already are translated anew, in documents that hold both."""
    reference: PathText | None = None
    """A file of translations to score instead of searching for one, line by line."""
    text: KeptConfig = KeptConfig()

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.output is not None and self.output in (self.input, self.reference):
            yield f"output={self.output} would overwrite what is read: give output another name"
        alignments = self.decoding.alignments
        if alignments is not None and alignments in (self.input, self.output, self.reference):
            yield f"decoding.alignments={alignments} needs a file of its own"
        if self.reference is not None:
            keys = ("beam_size", "max_length_ratio", "max_length_extra", "split_sentences", *ONE_BEST)
            yield from self.decoding.refuse("reference is scored by the model as plain text, not searched for", *keys)

    @property
    def ensemble_size(self) -> int:
        return len(as_folders(self.run))


class ServingConfig(DecodingCommandConfig):
    """``python -m mt serve``"""

    run: Folders
    """A run or model folder, or a list of them. Each translates by itself; for translate.py, a list is an ensemble."""
    host: Text = "127.0.0.1"
    """The address to listen at. 127.0.0.1: for this machine alone; 0.0.0.0: for every machine that can reach it."""
    port: Annotated[int, NotABool, Field(ge=0, le=65_535)] = 5000
    """The port to listen at. 0: one that is free."""
    characters: PositiveInt = 5000
    """The most characters of a text."""
    texts: PositiveInt = 500
    """The most texts of a request."""
    tokens: PositiveInt = 50_000
    """The most tokens of a request: pieces of its texts, without what is not translated."""
    seconds: Annotated[float, NotABool, Field(gt=0, le=86_400)] = 60
    """The longest that a request may take. Then it is refused, and what is left of it is dropped."""
    waiting: PositiveInt = 500
    """The most requests that wait for each model. One that comes on top is refused at once."""
    requests_per_minute: NonNegativeInt = 0
    """The most texts that a client, known by its address, may have translated in a minute. 0: any number."""
    text: KeptConfig = KeptConfig()

    @property
    def runs(self) -> tuple[str, ...]:
        return as_folders(self.run)

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        yield from repeated_paths(self.runs)
        yield from self.decoding.refuse("is for translate.py: the page shows them", "alignments")
        yield from self.decoding.refuse("a request says whether its text has tags (format=html)", "markup")
        yield from self.decoding.refuse("a request says how many translations it wants (alternatives)", "n_best")
        yield from self.decoding.refuse("a server finds the best translations", "method")


class SynthesisConfig(DecodingCommandConfig):
    """``python -m mt synthesize``"""

    method: Literal["back_translation", "distillation", "diversification"]
    """back_translation: a text in the target language gets sources by a run of the other direction. distillation: the
    training sources of a run get targets by the run itself, for a smaller model to learn from. diversification: so,
    and the training targets get sources, too."""
    run: Folders
    """The run that translates. A list: the runs translate together; with diversification, each by itself. Distillation
    and diversification translate the corpus of the first."""
    reverse: Annotated[Folders | None, For("method", "diversification")] = None
    """With diversification: the run or runs of the other direction."""
    input: Annotated[PathText | None, For("method", "back_translation")] = None
    """With back_translation: a text file in the language that the run translates from, a sentence on each line: plain,
    .gz, .xz or .zst."""
    output: PathText
    """The table to write, a file NAME.jsonl. NAME.provenance.json, beside it, says how it was made."""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.method == "back_translation" and self.input is None:
            yield "method=back_translation needs the text to translate: input=FILE"
        if self.method == "diversification" and self.reverse is None:
            yield "method=diversification needs a run of the other direction, too: reverse=RUN"
        if not self.output.endswith(".jsonl") or Path(self.output).name == ".jsonl":
            yield f"output={self.output} is a table of JSON lines: let its name end in .jsonl"
        reason = "each line gives one pair of plain texts to learn from"
        yield from self.decoding.refuse(reason, "n_best", "markup", "alignments")

    @property
    def ensemble_size(self) -> int:
        return 1 if self.method == "diversification" else len(as_folders(self.run))


def as_folders(named: Folders) -> tuple[str, ...]:
    """Return the folders that a setting names, one or several, as a list."""
    return (named,) if isinstance(named, str) else named
