"""The settings of the commands that translate: translate, serve and synthesize."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from mt.config.decoding import ONE_BEST, DecodingChoice
from mt.config.fields import (
    For,
    NonNegativeInt,
    NotABool,
    PathOrStream,
    PathText,
    PositiveInt,
    Processes,
    Text,
    repeated_paths,
)
from mt.config.machine import PrecisionConfig
from mt.config.text import KeptConfig

DocumentFormat = Literal[
    "auto", "lines", "po", "xliff", "properties", "json", "yaml", "strings", "android", "srt", "vtt", "html",
    "markdown", "docx", "odt",
]  # fmt: skip
"""Formats of the input. ``mt.documents.formats`` maps file suffixes to them."""

Folders = PathText | Annotated[tuple[PathText, ...], Field(min_length=1)]


class DecodingCommandConfig(PrecisionConfig):
    """The settings that all commands with a search for translations have."""

    decoding: DecodingChoice = DecodingChoice()
    """null: the value in the model's model.yaml"""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        models = self.ensemble_size
        if self.decoding.engine == "ctranslate2" and models > 1:
            yield f"run has {models} models, and CTranslate2 cannot combine models: set decoding.engine=torch"
        if self.decoding.engine == "ctranslate2" and self.precision != "fp32":
            yield f"precision={self.precision} is for PyTorch: with CTranslate2, set decoding.compute_type"

    @property
    def ensemble_size(self) -> int:
        """The number of models that translate together as an ensemble. 1: a single model."""
        return 1


class SharedDecodingConfig(DecodingCommandConfig):
    """The settings of commands whose work several processes can share."""

    workers: Processes | Literal["auto"] = 1
    """Number of processes on this machine that share the work. auto: one for each GPU; on a CPU one process, whose
    threads share it. Under torchrun, its processes are used instead."""


class TranslateConfig(SharedDecodingConfig):
    """``python translate.py``"""

    run: Folders
    """Run or model folder. A list of folders ([runs/A,runs/B]) is an ensemble, which averages the models' probabilities
    of each token. All models of an ensemble need the same tokenizer."""
    input: PathOrStream = None
    """Text file (plain, .gz, .xz or .zst), document, or a folder or pattern (po/*.po) of documents. null or -:
    standard input."""
    output: PathOrStream = None
    """File to write. If the input is a folder or pattern: a folder. null or -:
    standard output."""
    format: DocumentFormat = "auto"
    """Format of the input. auto: by the suffix of the file name and the root element of XML. lines: text with one
    translation for each line."""
    retranslate: bool = False
    """In documents with sources and translations: also translate entries that already have a translation."""
    skip_keys: tuple[Text, ...] = ()
    """In documents with keys (JSON, YAML, properties, .strings, Android): the keys whose values are not translated, as
    patterns such as ``*.id`` or ``meta.*``. A dot separates the keys of nested objects, and items of lists count
    from 0."""
    reference: PathText | None = None
    """File with a translation of each input line. They are scored, instead of searching for translations."""
    confidence: bool = False
    """Whether to estimate for each line the probability that its translation is good (sentence chrF2 of at least 50).
    Lines of text give a JSON line each, as with decoding.n_best. In PO and XLIFF, translations with less than 0.5 get a
    comment."""
    text: KeptConfig = KeptConfig()

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.confidence and self.reference is not None:
            yield "confidence=true is for translations that a search finds, not for reference=…: leave one of them out"
        if self.reference is not None:
            keys = ("beam_size", "max_length_ratio", "max_length_extra", "split_sentences", *ONE_BEST)
            yield from self.decoding.refuse("reference=… scores translations of plain text without a search", *keys)

    @property
    def ensemble_size(self) -> int:
        return len(as_folders(self.run))


class ServingConfig(DecodingCommandConfig):
    """``python -m mt serve``"""

    run: Folders
    """Run or model folder, or a list of them. The page and requests choose one of these models; they are no
    ensemble."""
    host: Text = "127.0.0.1"
    """Address to listen on. 127.0.0.1: only this machine can connect. 0.0.0.0: every machine that can reach this
    one."""
    port: Annotated[int, NotABool, Field(ge=0, le=65_535)] = 5000
    """Port to listen on. 0: any free port."""
    characters: PositiveInt = 5000
    """Maximum number of characters of a text."""
    texts: PositiveInt = 500
    """Maximum number of texts in a request."""
    tokens: PositiveInt = 50_000
    """Maximum number of tokens in a request. Text that is not translated does not count."""
    seconds: Annotated[float, NotABool, Field(gt=0, le=86_400)] = 60
    """Maximum time of a request. When it is over, the request is answered with an error, and its remaining texts are
    not translated."""
    waiting: PositiveInt = 500
    """Maximum number of requests that wait for a model. Further requests are refused at once."""
    texts_per_minute: NonNegativeInt = 0
    """Maximum number of texts of a client, identified by its address, in a minute. 0: no limit."""
    text: KeptConfig = KeptConfig()

    @property
    def runs(self) -> tuple[str, ...]:
        """The folders of all models."""
        return as_folders(self.run)

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        yield from repeated_paths(self.runs)
        yield from self.decoding.refuse("the server writes no file, and the page shows word alignment", "alignments")
        yield from self.decoding.refuse("each request sets it (format=html)", "markup")
        yield from self.decoding.refuse("each request sets it (alternatives)", "n_best")
        yield from self.decoding.refuse("a server always uses beam search", "method")


class SynthesisConfig(SharedDecodingConfig):
    """``python -m mt synthesize``"""

    method: Literal["back_translation", "distillation", "diversification"]
    """Kind of synthetic pairs. back_translation: translate a text in the language to translate into later, with a run
    of the opposite direction, to get sources for it. distillation: translate the training sources of a run by the run
    itself, to train a smaller model. diversification: as distillation, and also translate the training targets back."""
    run: Folders
    """Run folder that translates, or a list of them: an ensemble, or with diversification, runs that each translate by
    themselves. Distillation and diversification translate the corpus of the first run."""
    reverse: Annotated[Folders | None, For("method", "diversification")] = None
    """With diversification: the run folder of the opposite direction, or a list of them."""
    input: Annotated[PathText | None, For("method", "back_translation")] = None
    """With back_translation: the text file to translate (plain, .gz, .xz or .zst), with a sentence on each line, in the
    source language of the run."""
    output: PathText
    """File to write the pairs to, NAME.jsonl. Its provenance is written to NAME.provenance.json."""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.method == "back_translation" and self.input is None:
            yield "method=back_translation needs a text to translate: set input=FILE"
        if self.method == "diversification" and self.reverse is None:
            yield "method=diversification also needs a run of the opposite direction: set reverse=RUN"
        if not self.output.endswith(".jsonl") or Path(self.output).name == ".jsonl":
            yield f"output={self.output} gets JSON lines: let its name end in .jsonl"
        reason = "each synthetic pair has one translation of plain text"
        yield from self.decoding.refuse(reason, "n_best", "markup", "alignments")

    @property
    def ensemble_size(self) -> int:
        return 1 if self.method == "diversification" else len(as_folders(self.run))


def as_folders(named: Folders) -> tuple[str, ...]:
    """Return a tuple of the paths that a setting names, whether it names one or several."""
    return (named,) if isinstance(named, str) else named
