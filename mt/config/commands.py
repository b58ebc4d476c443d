"""The settings of each command, and the description of a model."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from mt.config.data import DataConfig, MixtureConfig, PileConfig, UnsplitConfig, names_split
from mt.config.decoding import DecodingChoice, DecodingConfig, StorageType
from mt.config.fields import (
    Device,
    LanguageCode,
    Licence,
    NonNegativeInt,
    NotABool,
    PackageVersion,
    PathText,
    PositiveInt,
    RunName,
    Section,
    Seed,
    Text,
    Threads,
)
from mt.config.model import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.config.text import MAX_PIECES, AlignmentConfig, KeptConfig, TextConfig, TextDescription
from mt.config.tokenizer import PiecesConfig, TokenizerConfig
from mt.config.training import TrainingConfig

DocumentFormat = Literal["auto", "lines", "po", "xliff", "properties", "json", "srt", "vtt", "html", "markdown"]
"""``mt.documents.formats`` has their endings."""

ExportFormat = Literal["ctranslate2", "hugging_face", "argos"]
"""``mt.export.command`` has their exporters."""

Folders = PathText | Annotated[tuple[PathText, ...], Field(min_length=1)]
Precision = Literal["auto", "fp32", "bf16", "fp16"]


class TrainConfig(Section):
    """``python train.py``"""

    name: RunName
    """The name of the run, and of its folder. Unless given, the experiment's name, or DATA-MODEL."""
    runs: PathText = "runs"
    """The folder that holds the run folders."""
    seed: Seed = 1
    """Decides everything random: first weights, order of the batches, dropout, subword sampling."""
    data: DataConfig
    text: TextConfig = TextConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    choice: PathText | None = None
    """A run whose choice by training.minutes this run takes instead of making its own, to be compared with it."""

    @property
    def folder(self) -> Path:
        return Path(self.runs) / self.name

    def contradictions(self) -> Iterator[str]:
        if self.training.objective == "r_drop" and not (
            self.model.dropout or (isinstance(self.model, TransformerConfig) and self.model.attention_dropout)
        ):
            yield "training.objective=r_drop compares predictions under two dropouts: it needs model.dropout > 0"
        optimizer = self.training.optimizer
        if isinstance(self.model, RNNAttentionConfig):
            if self.model.variational_dropout and not self.model.dropout:
                yield "model.variational_dropout=true is a way of dropping out: it needs model.dropout > 0"
            if optimizer.kind == "muon":
                yield "training.optimizer.kind=muon is for Transformers: an LSTM is moved by AdamW, take auto or adamw"
            elif optimizer.kind == "auto" and optimizer.differs_from_default("muon_iterations"):
                yield (
                    f"training.optimizer.muon_iterations={optimizer.muon_iterations} is for Transformers: an LSTM is "
                    "moved by AdamW"
                )
        first = self.data.corpora[0] if isinstance(self.data, MixtureConfig) else self.data
        if isinstance(first, PileConfig) and first.tagged:
            yield (
                "data.tagged=true is for the second corpus of a mixture and those behind it: validation and test data "
                "come from the first, and what is translated with the model has no tag"
            )
        splits: tuple[Literal["valid"], Literal["test"]] = ("valid", "test")
        for split in splits:
            key = f"{split}_pairs"
            corpora = [
                one for one in (first, self.data) if isinstance(one, UnsplitConfig) and one.differs_from_default(key)
            ]
            if corpora and names_split(first, split):
                pairs = getattr(corpora[0], key)
                yield f"data.{key}={pairs} is for a corpus without {split} data: here none are held out"
        if self.training.compile and not isinstance(self.model, TransformerConfig):
            yield "training.compile=true is for Transformers: the LSTM's steps would be compiled anew for every length"
        if self.training.init_from and self.tokenizer.reuse:
            yield "training.init_from brings its own tokenizer: leave tokenizer.reuse out"
        if isinstance(self.model, TransformerConfig) and self.model.positions == "learned":
            longest = self.data.max_length + 1  # with EOS
            if self.model.max_positions < longest:
                yield (
                    f"model.max_positions={self.model.max_positions} is too small for "
                    f"data.max_length={self.data.max_length}: learned positions must reach {longest}"
                )
        if self.decoding.method == "sample" or self.decoding.n_best > 1:
            yield "the test set is scored on one best translation: decoding.method=beam, decoding.n_best=1"
        elif self.decoding.differs_from_default("seed"):
            yield f"decoding.seed={self.decoding.seed} is for sampling, and the test set is translated by beam search"
        if self.decoding.markup is not None:
            yield "the test set is plain text: leave decoding.markup out"
        if self.decoding.engine != "torch":
            yield "the test set is translated by the model that was trained: leave decoding.engine=torch"


class ModelDescription(Section):
    """``model.yaml``: all that translating must know beside the tokenizer and the weights."""

    source_language: LanguageCode
    target_language: LanguageCode
    text: TextDescription
    model: ModelConfig
    tokenizer: PiecesConfig
    decoding: DecodingConfig
    """How translations are searched for unless the user says otherwise."""
    alignment: AlignmentConfig = AlignmentConfig()

    @classmethod
    def of(cls, config: TrainConfig, text: TextDescription, alignment: AlignmentConfig) -> Self:
        """Returns the part of a run's config that a model needs, and what its training has found out."""
        return cls(
            source_language=config.data.source_language,
            target_language=config.data.target_language,
            text=text,
            model=config.model,
            tokenizer=PiecesConfig(**{name: getattr(config.tokenizer, name) for name in PiecesConfig.model_fields}),
            decoding=config.decoding,
            alignment=alignment,
        )

    @property
    def max_source_length(self) -> int:
        """The most pieces of a sentence that the model translates as a whole by default."""
        own = self.decoding.max_source_length
        if own != "auto":
            return own
        return self.text.long_source if self.text.enabled else MAX_PIECES

    def contradictions(self) -> Iterator[str]:
        layers = self.model.decoder_layers if isinstance(self.model, TransformerConfig) else 1
        if self.alignment.layer >= layers:
            yield f"alignment.layer={self.alignment.layer}: the decoder attends to the source in {layers} layers"
        if (
            self.decoding.method != "beam"
            or self.decoding.n_best > 1
            or self.decoding.engine != "torch"
            or self.decoding.markup is not None
        ):
            yield (
                "a model's own decoding is one best translation of plain text by the model itself: "
                "decoding.method=beam, decoding.n_best=1, decoding.engine=torch, decoding.markup=null"
            )


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


def _contradictions_of_sampling(decoding: DecodingChoice) -> Iterator[str]:
    if decoding.method == "sample" and decoding.differs_from_default("beam_size"):
        yield f"decoding.beam_size={decoding.beam_size} is for decoding.method=beam: sampling has no beam"
    elif decoding.method != "sample" and decoding.differs_from_default("seed"):
        yield f"decoding.seed={decoding.seed} is for sampling: it needs decoding.method=sample"


def _contradictions_of_engines(config: "TranslateConfig | SynthesisConfig", together: int) -> Iterator[str]:
    """``together`` is how many models translate together."""
    with_ctranslate2 = config.decoding.engine == "ctranslate2"
    if together > 1 and with_ctranslate2:
        yield f"run names {together} models, which CTranslate2 does not combine: leave decoding.engine=torch"
    if config.precision != "fp32" and with_ctranslate2:
        yield f"precision={config.precision} is PyTorch's: with decoding.engine=ctranslate2 set decoding.compute_type"
    if config.device == "cpu" and config.precision == "fp16":
        yield "precision=fp16 needs a GPU: on device=cpu take bf16 or fp32"


def as_folders(named: Folders) -> tuple[str, ...]:
    """Returns what a setting names, one folder or several, as a list."""
    return (named,) if isinstance(named, str) else named


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
        together = 1 if self.method == "diversification" else len(as_folders(self.run))
        yield from _contradictions_of_engines(self, together)


class ExportConfig(Section):
    """``python -m mt export``"""

    format: ExportFormat
    """The program that runs the exported model: CTranslate2, Hugging Face's transformers, or Argos Translate, whose
    packages LibreTranslate serves, too."""
    run: PathText
    """A run or model folder."""
    output: PathText
    """A folder to write, which must not exist yet, or be empty. With argos: a file to write, FILE.argosmodel."""
    license: Licence | None = None
    """The licence of the model, by the name that model cards use for it: mit, cc-by-4.0 … It goes into README.md.
    null: README.md says that none is given."""
    quantization: StorageType | None = None
    """With ctranslate2 and argos: the number format in which the weights are stored. null: fp32, as they are."""
    version: PackageVersion = "1.0"
    """With argos: the version of the package. Argos Translate takes the higher one for the newer."""

    def contradictions(self) -> Iterator[str]:
        formats: dict[str, tuple[ExportFormat, ...]] = {"quantization": ("ctranslate2", "argos"), "version": ("argos",)}
        for key, supported in formats.items():
            if self.differs_from_default(key) and self.format not in supported:
                yield f"{key}={getattr(self, key)} is for format={' or '.join(supported)}, not {self.format}"
        if self.format == "argos" and not self.output.endswith(".argosmodel"):
            yield f"output={self.output} is no name of a package: it must end in .argosmodel"


class CompareConfig(Section):
    """``python -m mt compare``"""

    first: Folders | None = None
    """The baseline: a run, a list of runs that differ in their seed alone, a model that comes alone (a MarianMT folder,
    a name on the Hugging Face hub, or a model folder), or a file with one translation a line."""
    second: Folders | None = None
    """What is compared with the baseline, likewise."""
    runs: Annotated[tuple[Folders, ...], Field(min_length=2)] | None = None
    """Instead of first and second: a list of two or more systems, the baseline first."""
    references: PathText | None = None
    """The file with the reference translations. Where a run is compared, null: its test set is."""
    source: PathText | None = None
    """With references: the file with what is translated. Runs and models translate it anew. For files of translations
    alone, null: it is not known."""
    source_language: LanguageCode | None = None
    """With references: the language of the source. null: that of the runs and models, if they say it."""
    target_language: LanguageCode | None = None
    """With references: the language of the translations, which decides how they are scored. null: that of the runs and
    models, if they say it."""
    output: PathText | None = None
    """A folder to write into. null: FIRST-vs-SECOND beside the second system."""
    bootstrap_samples: Annotated[int, NotABool, Field(ge=100, le=1_000_000)] = 10_000
    """How many test sets are drawn at random for the 95 % intervals."""
    randomization_trials: Annotated[int, NotABool, Field(ge=100, le=10_000_000)] = 100_000
    """How many random exchanges the paired randomisation test makes, where there are too many to try all."""
    examples: PositiveInt = 20
    """How many sentences are shown for each side's clearest wins."""
    studied_sentences: NonNegativeInt = 100
    """How many test sentences the statistics of attention are averaged over. 0 leaves attention out."""
    timed_sentences: NonNegativeInt = 200
    """How many test sentences are translated to measure speed. 0 leaves it out."""
    robustness: bool = False
    """Whether it is also measured, on the first run of each of two systems, what typing errors, capitals, numbers,
    links and tags do to the translations. It takes minutes."""
    valid_bleu: Annotated[float, NotABool, Field(gt=0, le=100)] | None = None
    """The report tells the training time to this validation BLEU. null: the highest that all runs reached."""
    device: Device = "auto"
    """auto, cpu, mps, cuda or cuda:N. auto: a GPU if there is one."""
    threads: Threads = 0
    """CPU threads. 0: PyTorch chooses."""

    @property
    def systems(self) -> tuple[tuple[str, ...], ...]:
        """The folders of each system. The first is the baseline."""
        given = (self.first, self.second) if self.runs is None else self.runs
        return tuple(as_folders(one) for one in given if one is not None)

    def contradictions(self) -> Iterator[str]:
        if self.runs is not None and (self.first is not None or self.second is not None):
            yield "runs replaces first and second: give either"
        elif self.runs is None and (self.first is None or self.second is None):
            yield "two runs are needed: first=runs/A second=runs/B, or runs=[runs/A,runs/B,runs/C]"
        elif self.robustness and len(self.systems) > 2:
            yield f"robustness=true is for two systems, and runs names {len(self.systems)}: compare two at a time"
        elif self.robustness and self.references is not None:
            yield "robustness=true is measured on the test set of a run: leave references out"
        folders = [os.path.abspath(folder) for system in self.systems for folder in system]
        for folder in sorted({folder for folder in folders if folders.count(folder) > 1}):
            yield f"{folder} is given twice"
        # p is at least 1 / (trials + 1), or twice that where only one of two systems has several outputs, and each of
        # the systems has its share of the level, 0.05.
        numbers = [len(system) for system in self.systems]
        needed = (40 if 1 in numbers and max(numbers) > 1 else 20) * (len(self.systems) - 1)
        if self.randomization_trials < needed:
            yield (
                f"randomization_trials={self.randomization_trials} could not show any difference between one system "
                f"and {len(self.systems) - 1} others: take {needed} or more"
            )


class CleaningConfig(Section):
    """``python -m mt clean``"""

    data: DataConfig
    output: PathText
    """A folder to write into. It must not exist yet, or be empty."""

    def contradictions(self) -> Iterator[str]:
        if not self.data.cleaning_rules:
            yield "data.cleaning=false leaves nothing to do: take default, strict or a list of rules"


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
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "fp32"
    """The number format of matrix products. auto: bf16 where the processor has instructions for it, fp16 on older GPUs,
    otherwise fp32."""
    threads: Threads = 0
    """CPU threads. 0: PyTorch chooses."""
    text: KeptConfig = KeptConfig()
    decoding: DecodingChoice = DecodingChoice()

    @property
    def runs(self) -> tuple[str, ...]:
        return (self.run,) if isinstance(self.run, str) else self.run

    def contradictions(self) -> Iterator[str]:
        folders = [os.path.abspath(folder) for folder in self.runs]
        for folder in sorted({folder for folder in folders if folders.count(folder) > 1}):
            yield f"{folder} is given twice"
        if self.decoding.alignments is not None:
            yield "decoding.alignments is for translate.py: the page shows them"
        if self.decoding.markup is not None:
            yield "a request says whether its text has tags (format=html): leave decoding.markup out"
        if self.decoding.method == "sample" or self.decoding.differs_from_default("seed"):
            yield "a server finds the best translations: leave decoding.method=beam and decoding.seed out"
        if self.decoding.differs_from_default("n_best"):
            yield "a request says how many translations it wants (alternatives): leave decoding.n_best out"
        if self.precision != "fp32" and self.decoding.engine == "ctranslate2":
            yield f"precision={self.precision} is PyTorch's: with decoding.engine=ctranslate2 set decoding.compute_type"
        if self.device == "cpu" and self.precision == "fp16":
            yield "precision=fp16 needs a GPU: on device=cpu take bf16 or fp32"


class RobustnessConfig(Section):
    """``python -m mt robustness``"""

    run: PathText
    """A finished run."""
    second: PathText | None = None
    """Another one with the same test set, to compare with the first."""
    output: PathText | None = None
    """A folder to write into. null: the folder robustness in the run, or FIRST-vs-SECOND-robustness beside the second
    run."""
    sentences: PositiveInt = 500
    """How many test sentences of four words or more are taken, evenly spaced. Of languages without spaces between
    words: of eight characters or more."""
    seed: Seed = 1
    """Decides what is planted and mistyped where, and the random numbers of intervals and tests."""
    device: Device = "auto"
    """auto, cpu, mps, cuda or cuda:N. auto: a GPU if there is one."""
    threads: Threads = 0
    """CPU threads. 0: PyTorch chooses."""
    decoding: DecodingChoice = DecodingChoice()

    def contradictions(self) -> Iterator[str]:
        if self.second is not None and os.path.abspath(self.run) == os.path.abspath(self.second):
            yield f"{self.run} is given twice"
        if self.decoding.alignments is not None:
            yield "decoding.alignments is for translate.py: the report has none"
        if self.decoding.markup is not None:
            yield "the report translates plain lines as plain text and tagged lines as HTML: leave decoding.markup out"
        if self.decoding.method == "sample" or self.decoding.n_best > 1:
            yield "what is scored is one best translation: decoding.method=beam, decoding.n_best=1"
        elif self.decoding.differs_from_default("seed"):
            yield f"decoding.seed={self.decoding.seed} is for sampling, and translations are found by beam search"
