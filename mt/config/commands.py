"""The settings of each command. The other modules of this folder have their sections."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from mt.config.data import (
    SPLITS,
    DataConfig,
    Paths,
    PileConfig,
    UnsplitConfig,
    directed_corpora,
    has_explicit_split,
    named_sets,
)
from mt.config.decoding import ONE_BEST, DecodingChoice, DecodingConfig, StorageType
from mt.config.fields import (
    TRANSFORMERS,
    For,
    LanguageCode,
    License,
    MachineConfig,
    NonNegativeInt,
    NotABool,
    PackageVersion,
    PathOrStream,
    PathText,
    PositiveInt,
    PrecisionConfig,
    Processes,
    RunName,
    Section,
    Seed,
    Text,
    Within,
    repeated_paths,
)
from mt.config.model import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.config.resolved import Resolved
from mt.config.text import KeptConfig, TextConfig, TokenizerConfig
from mt.config.training import TrainingConfig
from mt.core.errors import did_you_mean
from mt.core.language import AskedDirection

DocumentFormat = Literal[
    "auto", "lines", "po", "xliff", "properties", "json", "yaml", "strings", "android", "srt", "vtt", "html",
    "markdown", "docx", "odt",
]  # fmt: skip
"""Formats of the input. ``mt.formats.registry`` maps file suffixes to them."""

Better = Literal["higher", "lower"]

ExportFormat = Literal["ctranslate2", "hugging_face", "argos"]
"""The names of the exporters in ``mt.export.command``."""


class TrainConfig(Section):
    """``python train.py``"""

    name: RunName
    """Name of the run, and of its folder. If it is not set: the name of the experiment, or DATA-MODEL."""
    runs: PathText = "runs"
    """Folder that contains the run folders."""
    seed: Seed = 1
    """Random seed for the initial weights, the order of batches, dropout and subword regularization."""
    data: DataConfig
    """The corpus: languages, files or dataset, cleaning, held-out pairs."""
    text: TextConfig = TextConfig()
    """Pre- and post-processing of the text, and augmentation of training pairs."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    """Subword segmentation and vocabulary."""
    model: ModelConfig
    """Architecture: Transformer or attention LSTM, and its sizes."""
    training: TrainingConfig = TrainingConfig()
    """Length, batches, loss, optimizer, schedule, validation, fine-tuning."""
    decoding: DecodingConfig = DecodingConfig()
    """The search for translations."""
    choice: PathText | None = None
    """Run folder to take the settings from that training.minutes chose there, so that both runs can be compared. null:
    this run chooses its own."""

    @property
    def folder(self) -> Path:
        """The run folder."""
        return Path(self.runs) / self.name

    def validation_errors(self) -> Iterator[str]:
        has_dropout = self.model.dropout or getattr(self.model, "attention_dropout", 0)
        if self.training.batching == "packed" and (reason := why_not_packed(self.model, self.training.shard)):
            yield f"training.batching=packed {reason}: take padded"
        if self.training.objective == "r_drop" and not has_dropout:
            yield "training.objective=r_drop compares two dropout masks: set model.dropout > 0"
        optimizer = self.training.optimizer
        if isinstance(self.model, RNNAttentionConfig):
            if self.model.variational_dropout and not self.model.dropout:
                yield "model.variational_dropout=true has no effect without dropout: set model.dropout > 0"
            if optimizer.kind == "muon":
                yield "training.optimizer.kind=muon is for Transformers: for an LSTM, take auto or adamw"
            elif optimizer.kind == "auto" and optimizer.differs_from_default("muon_iterations"):
                given = f"training.optimizer.muon_iterations={optimizer.muon_iterations}"
                yield f"{given} is for Transformers: an LSTM is trained by AdamW, leave it out"
            if self.training.compile:
                yield "training.compile=true is for Transformers: set it to false for an LSTM"
        directions = {corpus.direction: corpus for corpus in reversed(directed_corpora(self.data))}
        firsts = list(directions.values())
        first = directions[self.data.direction]
        if any(isinstance(corpus, PileConfig) and corpus.tagged for corpus in firsts):
            reason = "validation and test data come from the first corpus, and have no tags"
            yield f"data.tagged=true is for the second corpus of a mixture and later ones: {reason}"
        for split in SPLITS:
            key = f"{split}_pairs"
            is_held_out = isinstance(self.data, UnsplitConfig) and self.data.differs_from_default(key)
            if is_held_out and all(has_explicit_split(corpus, split) for corpus in firsts):
                given = f"data.{key}={getattr(self.data, key)}"
                yield f"{given} is for a corpus without {split} data: leave it out"
        name, _, _ = self.training.metric.rpartition(".")
        sets = list(named_sets(first, "valid"))
        if len(directions) > 1:
            if any(isinstance(getattr(corpus, "valid", None), dict) for corpus in firsts):
                yield "data.valid with names is for one direction: each of several is a set by itself, name one set"
            if self.text.terms:
                yield "text.terms is for one direction: give translate.py the glossary instead"
            sets = [direction.key for direction in directions]
        if name and name not in sets:
            near = did_you_mean(name, sets)
            yield f"training.metric={self.training.metric}: data.valid has no set {name}{near}"
        if self.training.init_from and self.tokenizer.reuse:
            yield "training.init_from=… takes the tokenizer of that model: leave tokenizer.reuse out"
        if self.tokenizer.extend and not (self.training.init_from or self.tokenizer.reuse):
            needed = "needs a tokenizer to extend: set training.init_from=RUN to fine-tune, or leave it out"
            yield f"tokenizer.extend={self.tokenizer.extend} {needed}"
        if isinstance(self.model, TransformerConfig) and self.model.positions == "learned":
            longest = self.data.max_length + 1  # with EOS
            if (positions := self.model.max_positions) < longest:
                yield f"model.max_positions={positions}: data.max_length={self.data.max_length} needs {longest} or more"
        yield from self.decoding.refuse("the test set is scored on one best translation of plain text", *ONE_BEST)


ResolvedTrainConfig = Resolved[TrainConfig]
"""The config of a run, with the origin of each value."""


def why_not_packed(model: ModelConfig, shard: bool) -> str | None:
    """Return why a model cannot be trained on packed batches; None if it can.

    Args:
        model: The config of the model.
        shard: ``training.shard``.
    """
    if not isinstance(model, TransformerConfig):
        return "is for Transformers"
    if model.attention_dropout:  # packed rows compute every other option: see tests/config/test_config.py
        return f"does not work with model.attention_dropout={model.attention_dropout}"
    return "does not shard, but training.shard=true" if shard else None


class DecodingCommandConfig(PrecisionConfig):
    """The settings that all commands with a search for translations have."""

    decoding: DecodingChoice = DecodingChoice()
    """The search for translations. null: the value in the model's own model.yaml."""

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        if self.decoding.engine == "ctranslate2" and self.precision != "fp32":
            yield f"precision={self.precision} is for PyTorch: with CTranslate2, set decoding.compute_type"


class SharedDecodingConfig(DecodingCommandConfig):
    """The settings of commands that translate with one model or an ensemble, and whose work several processes can
    share."""

    run: Paths
    workers: Processes | Literal["auto"] = 1
    """Number of processes on this machine that share the work. auto: one for each GPU; on a CPU one process, whose
    threads share it. Under torchrun, its processes are used instead."""

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        models = len(as_folders(self.run))
        if self.decoding.engine == "ctranslate2" and models > 1:
            yield f"run has {models} models, and CTranslate2 cannot combine models: set decoding.engine=torch"


class DirectionConfig(Section):
    """The settings of commands that use one direction of a model."""

    source_language: LanguageCode | None = None
    """With a model of several directions: the language to translate from. null: the only one that the model translates
    into target_language."""
    target_language: LanguageCode | None = None
    """With a model of several directions: the language to translate into."""

    @property
    def asked(self) -> AskedDirection:
        return AskedDirection(self.source_language, self.target_language, getattr(self, "zero_shot", False))


class TranslateConfig(SharedDecodingConfig, DirectionConfig):
    """``python translate.py``"""

    run: Paths
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
    translation for each line. Documents: po, xliff, properties, json, yaml, strings, android, srt, vtt, html, markdown,
    docx, odt."""
    retranslate: bool = False
    """In documents with sources and translations: also translate entries that already have a translation."""
    zero_shot: bool = False
    """Whether the model may translate in a direction that it was not trained in, if it knows both languages. Expect
    much worse translations."""
    skip_keys: tuple[Text, ...] = ()
    """In documents with keys (JSON, YAML, properties, .strings, Android): the keys whose values are not translated, as
    patterns such as ``*.id`` or ``meta.*``. A dot separates the keys of nested objects, and items of lists count
    from 0."""
    reference: PathText | None = None
    """File with a translation of each input line. They are scored, instead of searching for translations."""
    confidence: bool = False
    """Whether to estimate for each line the probability that its translation is good (sentence chrF2 of at least 50).
    Each line of text gives a JSON line, as with decoding.n_best."""
    text: KeptConfig = KeptConfig()
    """Glossary, and further text to leave untranslated."""

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        if self.confidence and self.reference is not None:
            yield "confidence=true is for translations that a search finds, not for reference=…: leave one of them out"
        if self.reference is not None:
            keys = ("beam_size", "max_length_ratio", "max_length_extra", "split_sentences", *ONE_BEST)
            yield from self.decoding.refuse("reference=… scores translations of plain text without a search", *keys)


class ServingConfig(DecodingCommandConfig):
    """``python -m mt serve``"""

    run: Paths
    """Run or model folder, or a list of them. The page and requests choose one of these models; they are not an
    ensemble."""
    host: Text = "127.0.0.1"
    """Address to listen on. 127.0.0.1: only this machine can connect. 0.0.0.0: every machine that can reach this
    one."""
    port: Annotated[int, Within(0, 65_535)] = 5000
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
    """Glossary, and further text to leave untranslated."""

    @property
    def runs(self) -> tuple[str, ...]:
        """The folders of all models."""
        return as_folders(self.run)

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        yield from repeated_paths(self.runs)
        if any(run.startswith(TRANSFORMERS) for run in self.runs):
            yield "run=transformers:… is not served: train a small model on its translations, see docs/distillation.md"
        yield from self.decoding.refuse("the server writes no file, and the page shows word alignment", "alignments")
        yield from self.decoding.refuse("each request sets it (format=html)", "markup")
        yield from self.decoding.refuse("each request sets it (alternatives)", "n_best")
        yield from self.decoding.refuse("a server always uses beam search", "method")


class SynthesisConfig(SharedDecodingConfig, DirectionConfig):
    """``python -m mt synthesize``"""

    method: Literal["back_translation", "distillation"]
    """Kind of synthetic pairs. back_translation: translate a text in the language to translate into later, with a run
    of the opposite direction, to get sources for it. distillation: translate the training sources of a run by the run
    itself, or a text by any model, to train a smaller model."""
    run: Paths
    """Run folder that translates, or a list of them: an ensemble. Without input, the corpus of the first run is
    translated. transformers:FOLDER and transformers:OWNER/NAME are models of Hugging Face transformers."""
    input: PathText | None = None
    """The text file to translate (plain, .gz, .xz or .zst), with a sentence on each line, in the source language of the
    run."""
    output: PathText
    """File to write the pairs to, NAME.jsonl. Its provenance is written to NAME.provenance.json."""

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        if self.method == "back_translation" and self.input is None:
            yield "method=back_translation needs a text to translate: set input=FILE"
        elif self.input is None and as_folders(self.run)[0].startswith(TRANSFORMERS):
            yield "a model of transformers has no corpus: set method=distillation input=FILE"
        if not self.output.endswith(".jsonl") or Path(self.output).name == ".jsonl":
            yield f"output={self.output} gets JSON lines: let its name end in .jsonl"
        reason = "each synthetic pair has one translation of plain text"
        yield from self.decoding.refuse(reason, "n_best", "markup", "alignments")


def as_folders(named: Paths) -> tuple[str, ...]:
    """Return a tuple of the paths that a setting names, whether it names one or several."""
    return (named,) if isinstance(named, str) else named


Systems = tuple[tuple[str, ...], ...]
"""The paths of each system, with several if it has a run for each seed."""


class ScoringConfig(MachineConfig):
    """The settings of the commands that score translations of a test set."""

    references: Paths | None = None
    """File with reference translations, or a list of files if each sentence has several. null: the test set of the
    runs."""
    source: PathText | None = None
    """With references: the file with the source sentences, which runs and models translate. null: unknown, if only
    files of translations are scored."""
    source_language: LanguageCode | None = None
    """With references: the language of the source. null: the source language of the runs and models, if it is known.
    Without references: with models of several directions, those from this language."""
    target_language: LanguageCode | None = None
    """With references: the language of the translations. Scores are computed as is usual for it. null: the target
    language of the runs and models, if it is known. Without references: with models of several directions, the one into
    this language. null: all directions that the models have in common."""
    bootstrap_samples: Annotated[int, Within(100, 1_000_000)] = 10_000
    """Number of bootstrap samples of the test set for the 95 % confidence intervals."""


class EvaluationConfig(ScoringConfig):
    """``python -m mt evaluate``"""

    run: PathText
    """Run, model folder or MarianMT model, which translates the test set; or a file with a translation on each line."""
    output: PathText | None = None
    """JSON file to write the scores to. null: they are only printed."""

    @property
    def systems(self) -> Systems:
        """The only system, as in ``CompareConfig.systems``."""
        return ((self.run,),)


class CompareConfig(ScoringConfig):
    """``python -m mt compare``"""

    first: Paths | None = None
    """Baseline system: a run; a list of runs that differ in their seed only; a model without a run (a model folder, a
    MarianMT folder, or a name on the Hugging Face hub); or a file with a translation on each line."""
    second: Paths | None = None
    """System to compare with the baseline. Written as for first."""
    runs: Annotated[tuple[Paths, ...], Field(min_length=2)] | None = None
    """List of two or more systems, starting with the baseline. It replaces first and second."""
    scores: dict[Text, tuple[Paths, ...]] = {}
    """Scores of each test sentence by further metrics or by people: scores.NAME=[a.txt,b.txt], with a file for each
    system and a number on each of its lines. A system with several outputs has a list of files, in the order of its
    outputs: [[a1.txt,a2.txt],b.txt]."""
    better: Annotated[dict[Text, Better], BeforeValidator(lambda x: {"all": x} if isinstance(x, str) else x)] = {}
    """Whether higher or lower values of these metrics are better: better=lower for all, better.NAME=lower for one. By
    default, higher."""
    output: PathText | None = None
    """Folder to write into. null: FIRST-vs-SECOND beside the second system."""
    randomization_trials: Annotated[int, Within(100, 10_000_000)] = 100_000
    """Number of random permutations in the paired randomization test, if there are too many to try them all."""
    examples: PositiveInt = 20
    """Number of example sentences in the report for each of two systems: those where it is better by most."""
    studied_sentences: NonNegativeInt = 100
    """Number of test sentences for the attention statistics. 0: no attention statistics."""
    timed_sentences: NonNegativeInt = 200
    """Number of test sentences for the measurement of translation speed. 0: no measurement."""
    valid_bleu: Annotated[float, NotABool, Field(gt=0, le=100)] | None = None
    """Validation BLEU up to which the report measures training time. null: the highest that all runs reached."""

    @property
    def systems(self) -> Systems:
        """The run folders or files of each system, several if it has a run for each seed. The baseline comes first."""
        given = (self.first, self.second) if self.runs is None else self.runs
        return tuple(as_folders(folders) for folders in given if folders is not None)

    def higher_is_better(self, name: str) -> bool:
        """Return whether higher values of a given metric are better."""
        return self.better.get(name, self.better.get("all")) != "lower"

    def validation_errors(self) -> Iterator[str]:
        if self.runs is not None and (self.first is not None or self.second is not None):
            yield "runs replaces first and second: set either runs, or first and second"
        elif self.runs is None and (self.first is None or self.second is None):
            yield "two runs are needed: first=runs/A second=runs/B, or runs=[runs/A,runs/B,runs/C]"
        yield from repeated_paths(folder for system in self.systems for folder in system)
        yield from repeated_paths(as_folders(self.references) if self.references else ())
        numbers = [len(system) for system in self.systems]
        for name, files in self.scores.items():
            given = [len(as_folders(system)) for system in files]
            if given != numbers:
                yield f"scores.{name} has {given} files, but the systems have {numbers} outputs: list a file for each"
            yield from repeated_paths(path for system in files for path in as_folders(system))
        for name in self.better:
            if name not in (*self.scores, "all"):
                yield f"better.{name} is not a name in scores{did_you_mean(name, [*self.scores])}"


class RobustnessConfig(MachineConfig, DirectionConfig):
    """``python -m mt robustness``"""

    run: PathText
    """Finished run to measure."""
    second: PathText | None = None
    """Another finished run with the same test set, to compare with the first."""
    output: PathText | None = None
    """Folder to write into. null: the folder robustness in the run, or FIRST-vs-SECOND-robustness beside the second
    run."""
    sentences: PositiveInt = 500
    """Number of test sentences, evenly spaced among those with at least four words. In languages without spaces between
    words, at least eight characters count."""
    seed: Seed = 1
    """Random seed for the changes to the sentences, and for confidence intervals and significance tests."""
    decoding: DecodingChoice = DecodingChoice()
    """The search for translations. null: the value in the model's own model.yaml."""

    @property
    def systems(self) -> Systems:
        """The runs, as in ``CompareConfig.systems``."""
        return tuple((folder,) for folder in (self.run, self.second) if folder is not None)

    def validation_errors(self) -> Iterator[str]:
        yield from repeated_paths(path for path in (self.run, self.second) if path is not None)
        reason = "robustness is measured on one best translation, with markup where a sentence needs it"
        yield from self.decoding.refuse(reason, "method", "n_best", "markup", "alignments")


class AveragingConfig(Section):
    """``python -m mt average``"""

    run: Annotated[tuple[PathText, ...], Field(min_length=2)]
    """List of runs, model folders and checkpoints (RUN@UPDATE) with the same tokenizer and architecture."""
    output: PathText
    """Folder to write into. It must be empty or not exist yet."""


class RunListConfig(Section):
    """``python -m mt runs``"""

    runs: PathText = "runs"
    """Folder that contains the run folders."""


class CleaningConfig(Section):
    """``python -m mt clean``"""

    data: DataConfig
    """The corpus: languages, files or dataset, cleaning, held-out pairs."""
    output: PathText
    """Folder to write into. It must be empty or not exist yet."""

    def validation_errors(self) -> Iterator[str]:
        if not self.data.cleaning_rules:
            yield "data.cleaning=false drops no pairs: set it to default, strict or a list of rules"


class ExportConfig(DirectionConfig):
    """``python -m mt export``"""

    format: ExportFormat
    """Program that is to run the exported model: ctranslate2, hugging_face (transformers), or argos (Argos Translate,
    whose packages LibreTranslate accepts, too)."""
    run: PathText
    """Run or model folder to export."""
    output: PathText
    """Folder to write into. It must be empty or not exist yet. With argos: a file to write, FILE.argosmodel."""
    license: License | None = None
    """License of the model for README.md, as model cards name it: mit, cc-by-4.0 … null: README.md says that no license
    is given."""
    quantization: Annotated[StorageType | None, For("format", "ctranslate2", "argos")] = None
    """With ctranslate2 and argos: the number format of the exported weights: int8, int8_float32, int8_float16,
    int8_bfloat16, int16, float16 or bfloat16. null: fp32, without a loss."""
    version: Annotated[PackageVersion, For("format", "argos")] = "1.0"
    """With argos: the version of the package. Argos Translate takes a higher version for a newer package."""

    def validation_errors(self) -> Iterator[str]:
        if self.format != "argos" and any(self.asked):
            yield f"target_language is for format=argos: format={self.format} exports all directions, leave it out"
        if self.format == "argos" and not self.output.endswith(".argosmodel"):
            yield f"output={self.output} is not the name of a package: let it end in .argosmodel"
