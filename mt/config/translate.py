"""The settings of the commands that translate: translate, serve and synthesize."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from mt.config.decoding import DecodingChoice
from mt.config.fields import (
    Device,
    NonNegativeInt,
    NotABool,
    PathText,
    PositiveInt,
    Section,
    Text,
    Threads,
    repeated_paths,
)
from mt.config.text import KeptConfig

DocumentFormat = Literal["auto", "lines", "po", "xliff", "properties", "json", "srt", "vtt", "html", "markdown"]
"""``mt.documents.formats`` has their endings."""

Folders = PathText | Annotated[tuple[PathText, ...], Field(min_length=1)]
Precision = Literal["auto", "fp32", "bf16", "fp16"]


class TranslateConfig(Section):
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
    device: Device = "auto"
    """auto, cpu, mps, cuda or cuda:N. auto: a GPU if there is one."""
    precision: Precision = "fp32"
    """The number format of matrix products. auto: bf16 where the processor has instructions for it, fp16 on older GPUs,
    otherwise fp32."""
    threads: Threads = 0
    """CPU threads. 0: PyTorch chooses."""
    text: KeptConfig = KeptConfig()
    decoding: DecodingChoice = DecodingChoice()

    def contradictions(self) -> Iterator[str]:
        if self.output is not None and self.output in (self.input, self.reference):
            yield f"output={self.output} would overwrite what is read: give output another name"
        if self.reference is not None and self.decoding.n_best > 1:
            yield "reference has one translation a line to score: leave decoding.n_best=1"
        if self.reference is not None and self.decoding.method == "sample":
            yield "reference is scored, not searched for: leave decoding.method=beam"
        else:
            yield from _contradictions_of_sampling(self.decoding)
        for key in ("beam_size", "max_length_ratio", "max_length_extra", "split_sentences"):
            if self.reference is not None and self.decoding.differs_from_default(key):
                given = f"decoding.{key}={getattr(self.decoding, key)}"
                yield f"reference is scored, not searched for: {given} is for a search"
        if self.decoding.alignments is not None and self.decoding.alignments in (
            self.input,
            self.output,
            self.reference,
        ):
            yield f"decoding.alignments={self.decoding.alignments} needs a file of its own"
        if self.reference is not None and self.decoding.markup is not None:
            yield "reference is scored as plain text: leave decoding.markup out"
        if self.reference is not None and self.decoding.engine == "ctranslate2":
            yield "reference is scored by the model itself: leave decoding.engine=torch"
        yield from _contradictions_of_engines(self, len(as_folders(self.run)))


class ServingConfig(Section):
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
    device: Device = "auto"
    """auto, cpu, mps, cuda or cuda:N. auto: a GPU if there is one."""
    precision: Precision = "fp32"
    """The number format of matrix products. auto: bf16 where the processor has instructions for it, fp16 on older GPUs,
    otherwise fp32."""
    threads: Threads = 0
    """CPU threads. 0: PyTorch chooses."""
    text: KeptConfig = KeptConfig()
    decoding: DecodingChoice = DecodingChoice()

    @property
    def runs(self) -> tuple[str, ...]:
        return as_folders(self.run)

    def contradictions(self) -> Iterator[str]:
        yield from repeated_paths(self.runs)
        if self.decoding.alignments is not None:
            yield "decoding.alignments is for translate.py: the page shows them"
        if self.decoding.markup is not None:
            yield "a request says whether its text has tags (format=html): leave decoding.markup out"
        if self.decoding.method == "sample" or self.decoding.differs_from_default("seed"):
            yield "a server finds the best translations: leave decoding.method=beam and decoding.seed out"
        if self.decoding.differs_from_default("n_best"):
            yield "a request says how many translations it wants (alternatives): leave decoding.n_best out"
        yield from _contradictions_of_engines(self, ensemble_size=1)


class SynthesisConfig(Section):
    """``python -m mt synthesize``"""

    method: Literal["back_translation", "distillation", "diversification"]
    """back_translation: a text in the target language gets sources by a run of the other direction. distillation: the
    training sources of a run get targets by the run itself, for a smaller model to learn from. diversification: so,
    and the training targets get sources, too."""
    run: Folders
    """The run that translates. A list: the runs translate together; with diversification, each by itself. Distillation
    and diversification translate the corpus of the first."""
    reverse: Folders | None = None
    """With diversification: the run or runs of the other direction."""
    input: PathText | None = None
    """With back_translation: a text file in the language that the run translates from, a sentence on each line: plain,
    .gz, .xz or .zst."""
    output: PathText
    """The table to write, a file NAME.jsonl. NAME.provenance.json, beside it, says how it was made."""
    device: Device = "auto"
    """auto, cpu, mps, cuda or cuda:N. auto: a GPU if there is one."""
    precision: Precision = "fp32"
    """The number format of matrix products, as for translate.py."""
    threads: Threads = 0
    """CPU threads. 0: PyTorch chooses."""
    decoding: DecodingChoice = DecodingChoice()

    def contradictions(self) -> Iterator[str]:
        if (self.method == "back_translation") != (self.input is not None):
            if self.input is None:
                yield "method=back_translation needs the text to translate: input=FILE"
            else:
                yield f"input={self.input} is for method=back_translation: {self.method} translates the run's corpus"
        if (self.method == "diversification") != (self.reverse is not None):
            if self.reverse is None:
                yield "method=diversification needs a run of the other direction, too: reverse=RUN"
            else:
                yield f"reverse is for method=diversification, not for {self.method}: leave it out"
        if not self.output.endswith(".jsonl") or Path(self.output).name == ".jsonl":
            yield f"output={self.output} is a table of JSON lines: let its name end in .jsonl"
        if self.decoding.n_best > 1:
            yield f"decoding.n_best={self.decoding.n_best}: each line gives one pair"
        if self.decoding.markup is not None:
            yield "pairs to learn from are plain text: leave decoding.markup out"
        if self.decoding.alignments is not None:
            yield "decoding.alignments is for translate.py: leave it out"
        yield from _contradictions_of_sampling(self.decoding)
        ensemble_size = 1 if self.method == "diversification" else len(as_folders(self.run))
        yield from _contradictions_of_engines(self, ensemble_size)


def _contradictions_of_sampling(decoding: DecodingChoice) -> Iterator[str]:
    if decoding.method == "sample" and decoding.differs_from_default("beam_size"):
        yield f"decoding.beam_size={decoding.beam_size} is for decoding.method=beam: sampling has no beam"
    elif decoding.method != "sample" and decoding.differs_from_default("seed"):
        yield f"decoding.seed={decoding.seed} is for sampling: it needs decoding.method=sample"


def _contradictions_of_engines(
    config: TranslateConfig | SynthesisConfig | ServingConfig, ensemble_size: int
) -> Iterator[str]:
    with_ctranslate2 = config.decoding.engine == "ctranslate2"
    if ensemble_size > 1 and with_ctranslate2:
        yield f"run names {ensemble_size} models, which CTranslate2 does not combine: leave decoding.engine=torch"
    if config.precision != "fp32" and with_ctranslate2:
        yield f"precision={config.precision} is PyTorch's: with decoding.engine=ctranslate2 set decoding.compute_type"
    if config.device == "cpu" and config.precision == "fp16":
        yield "precision=fp16 needs a GPU: on device=cpu take bf16 or fp32"


def as_folders(named: Folders) -> tuple[str, ...]:
    """Return the folders that a setting names, one or several, as a list."""
    return (named,) if isinstance(named, str) else named
