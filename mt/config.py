"""The typed schema of every config: each key, its range, and the contradictions between keys.

Hydra composes the YAML files in ``conf/`` and the command line; this module says whether the result makes
sense. All mistakes are found at once, before any work (``mt.command_line`` turns them into one message).
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)


def _not_a_switch(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not have a NUL character, which no file name can have")
    return text


NotABool = BeforeValidator(_not_a_switch)
"""Python counts True as 1; a user who writes training.patience=true means something else."""

# Every number has a least and a largest value. Most of these bounds lie far beyond any use: they are there because a
# number beyond them would overflow somewhere in NumPy, PyTorch or the system, or make a command run for ever.

PositiveInt = Annotated[int, NotABool, Field(ge=1, le=2**31 - 1)]
"""Something that is counted, or a budget of tokens. Products of two such numbers still fit into 64 bits."""
NonNegativeInt = Annotated[int, NotABool, Field(ge=0, le=2**31 - 1)]
Seed = Annotated[int, NotABool, Field(ge=0, le=2**63 - 1)]
"""What a signed 64-bit integer can hold, so that every reader of config.yaml reads the same number."""
Threads = Annotated[int, NotABool, Field(ge=0, le=1024)]
"""More than processors have; the system would refuse to start many more, with an error that cannot be caught."""
Processes = Annotated[int, NotABool, Field(ge=1, le=1024)]
Size = Annotated[int, NotABool, Field(ge=1, le=65_536)]
Layers = Annotated[int, NotABool, Field(ge=1, le=256)]
"""A config from elsewhere must not make its own check take for ever."""
PositiveFloat = Annotated[float, NotABool, Field(ge=1e-20, le=1e9)]
"""In fp32 neither such a number nor its square root is zero or infinite."""
NonNegativeFloat = Annotated[float, NotABool, Field(ge=0, le=1e9)]
Probability = Annotated[float, NotABool, Field(ge=0, lt=1)]
Weight = Annotated[float, NotABool, Field(ge=1e-4, le=1e4)]
Text = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
LanguageCode = Annotated[
    str,
    Field(pattern=r"^[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*$", description="a language code such as en or zh_CN"),
]
Folders = Text | Annotated[tuple[Text, ...], Field(min_length=1)]
RunName = Annotated[
    str,
    Field(pattern=r"^[^/\x00-\x1f]+$", max_length=200, description="the name of a folder, without /"),
]
DEVICE = r"^(auto|cpu|mps|cuda(:[1-9]?[0-9])?)$"
"""PyTorch counts GPUs in eight bits and takes cuda:256 for cuda:0, so the number has at most two digits here."""
Device = Annotated[str, Field(pattern=DEVICE, description="auto, cpu, mps, cuda, or cuda:N with N from 0 to 99")]


class Section(BaseModel):
    """A part of the config: unknown keys are refused and values never change after the check."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())

    def contradictions(self) -> Iterator[str]:
        """What cannot be true together, though each value could be by itself; each names its keys."""
        yield from ()

    def is_given(self, key: str) -> bool:
        """Whether a key has another value than its default."""
        return bool(getattr(self, key) != type(self).model_fields[key].default)

    @model_validator(mode="after")
    def _without_contradictions(self) -> Self:
        found = list(self.contradictions())
        if found:
            raise ValueError("\n".join(found))
        return self


# Data -------------------------------------------------------------------------------------------------------

NEWEST_SPLIT: Final = 2
# fmt: off
FILE_FORMATS = frozenset((
    "arrow", "audiofolder", "conll", "csv", "eval", "fasta", "fastq", "genbank", "harbor", "hdf5", "iceberg",
    "imagefolder", "json", "lance", "meshfolder", "mmcif", "niftifolder", "pandas", "parquet", "pdb", "pdffolder",
    "text", "tsfile", "videofolder", "vortex", "webdataset", "xml",
))
# fmt: on
"""The modules of ``datasets`` that ``load_dataset`` takes by name, instead of a data set."""


class CorpusConfig(Section):
    """What every kind of corpus has."""

    source_language: LanguageCode
    target_language: LanguageCode
    max_length: PositiveInt = 128
    """Training pairs with more pieces than this on either side are dropped (and counted)."""
    weight: Weight = 1.0
    """How often each training pair is seen in an epoch: 2 is twice, 0.5 every second epoch on average."""
    split_version: Annotated[Literal[1, 2], NotABool] = NEWEST_SPLIT
    """When a held-out sentence and one to learn from are the same: 1 if their text is; 2 also if they differ only in
    case, punctuation, symbols or white space (``mt.data.split``). An unfinished run keeps the version that it was begun
    with."""

    def with_split(self, version: Literal[1, 2]) -> Self:
        return self.model_copy(update={"split_version": version})

    def contradictions(self) -> Iterator[str]:
        if self.source_language == self.target_language:
            yield f"source_language and target_language are the same: {self.source_language}"


class UnsplitConfig(CorpusConfig):
    """A corpus that may lack a validation or test split."""

    valid_pairs: PositiveInt = 2000
    """Held out from the training pairs when there is no validation split; likewise test_pairs."""
    test_pairs: PositiveInt = 2000


def _language_suffix(file: str) -> str:
    """``en`` of ``train.en`` or ``train.en.gz``."""
    path = Path(file)
    return (Path(path.stem) if path.suffix in (".gz", ".xz", ".zst") else path).suffix.removeprefix(".")


class FilesConfig(UnsplitConfig):
    """Two parallel text files a split, one sentence a line; plain, .gz, .xz or .zst."""

    kind: Literal["files"]
    train: tuple[Text, Text]
    valid: tuple[Text, Text] | None = None
    test: tuple[Text, Text] | None = None

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        for split, files in (("train", self.train), ("valid", self.valid), ("test", self.test)):
            if files and files[0] == files[1]:
                yield f"{split} has the same file on both sides: {files[0]}"
            if files and [_language_suffix(file) for file in files] == [self.target_language, self.source_language]:
                yield f"{split}=[{','.join(files)}] has the {self.target_language} file first: the source comes first"


class TableConfig(UnsplitConfig):
    """One file a split with a column for each side: TSV (unquoted), CSV, JSONL, Parquet; or a translation memory (TMX),
    whose languages are its columns."""

    kind: Literal["table"]
    train: Text
    valid: Text | None = None
    test: Text | None = None
    source_column: Text | NonNegativeInt | None = None
    """A number (from 0; the file then has no header) or a name; defaults to the language code."""
    target_column: Text | NonNegativeInt | None = None

    @property
    def columns(self) -> tuple[str | int, str | int]:
        source, target = self.source_column, self.target_column
        return (
            self.source_language if source is None else source,
            self.target_language if target is None else target,
        )

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        source, target = self.columns
        if source == target:
            yield f"source_column and target_column are the same: {source}"
        if isinstance(source, int) != isinstance(target, int):
            yield "source_column and target_column must both be numbers (no header) or both be names"


class HubConfig(UnsplitConfig):
    """A Hugging Face data set (or a local folder of the same layout) that loads without a script."""

    kind: Literal["hub"]
    path: Text
    subset: Text | None = None
    revision: Text | None = None
    train_split: Text = "train"
    valid_split: Text | None = "validation"
    test_split: Text | None = "test"
    source_column: Text | None = None
    """Defaults to the language code, as a column of its own or inside a ``translation`` column."""
    target_column: Text | None = None

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.path.removeprefix("hf://datasets/") in FILE_FORMATS:
            yield (
                f"path={self.path} is no data set but a file format of the library datasets, which would read whatever "
                "lies in the current folder: data=files and data=table read files of your own"
            )


class RecipeConfig(CorpusConfig):
    """A corpus that a script in ``data/`` fetches, verifies and splits by itself, always in the same way."""

    kind: Literal["recipe"]
    recipe: Literal["tatoeba_en_fr"]


SingleCorpusConfig = Annotated[FilesConfig | TableConfig | HubConfig | RecipeConfig, Field(discriminator="kind")]


class MixtureConfig(UnsplitConfig):
    """Several corpora of one direction in one run; validation and test come from the first."""

    kind: Literal["mixture"]
    corpora: Annotated[tuple[SingleCorpusConfig, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _corpora_inherit(cls, values: object) -> object:
        if not isinstance(values, dict) or not isinstance(values.get("corpora"), list | tuple):
            return values
        inherited = {
            name: values[name]
            for name in ("source_language", "target_language", "max_length", "split_version")
            if name in values
        }
        held_out = {name: values[name] for name in ("valid_pairs", "test_pairs") if name in values}
        corpora = [
            (inherited | ({} if entry.get("kind") == "recipe" else held_out) | entry)
            if isinstance(entry, dict)
            else entry
            for entry in values["corpora"]
        ]
        return values | {"corpora": corpora}

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        for entry in self.corpora:
            if (entry.source_language, entry.target_language) != (self.source_language, self.target_language):
                yield (
                    f"the corpora of a mixture have its own source_language and target_language, not "
                    f"{entry.source_language} and {entry.target_language}"
                )
            if entry.max_length != self.max_length:
                yield f"the corpora of a mixture have its own max_length, {self.max_length}, not {entry.max_length}"
            if entry.split_version != self.split_version:
                yield (
                    f"the corpora of a mixture have its own split_version, {self.split_version}, not "
                    f"{entry.split_version}"
                )
        for number, entry in enumerate(self.corpora[1:], start=1):
            for split in ("valid", "test"):
                if isinstance(entry, FilesConfig | TableConfig) and getattr(entry, split) is not None:
                    yield f"corpora[{number}].{split} is not read: validation and test come from the first corpus"

    def with_split(self, version: Literal[1, 2]) -> Self:
        corpora = tuple(entry.with_split(version) for entry in self.corpora)
        return self.model_copy(update={"split_version": version, "corpora": corpora})


def _names(corpus: SingleCorpusConfig, split: str) -> bool:
    """Whether a corpus says where a split is, so that none is held out of the training pairs. The usual names of a hub
    data set's splits are only a guess: where there are no such splits, pairs are held out."""
    match corpus:
        case FilesConfig() | TableConfig():
            return getattr(corpus, split) is not None
        case HubConfig():
            return getattr(corpus, f"{split}_split") is not None and corpus.is_given(f"{split}_split")
        case RecipeConfig():
            return True


DataConfig = Annotated[
    FilesConfig | TableConfig | HubConfig | RecipeConfig | MixtureConfig, Field(discriminator="kind")
]


# Tokens -----------------------------------------------------------------------------------------------------


class PiecesConfig(Section):
    """What a tokenizer is once it is trained, whoever uses it."""

    kind: Literal["bpe", "unigram", "char"] = "bpe"
    vocabulary_size: Annotated[int, NotABool, Field(ge=264, le=1_000_000)] = 8000
    """An upper bound for char. All 256 bytes and four special pieces are among them."""
    joint: bool = True
    """One vocabulary for both languages, or one for each."""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] | None = None
    """null: none where a language is Chinese, Japanese or Korean, whose wide punctuation NFKC would replace by ASCII;
    else nmt_nfkc."""
    character_coverage: Annotated[float, NotABool, Field(gt=0.9, le=1)] | None = None
    """Share of characters that get a piece of their own, the rest become bytes; null: 0.9995 for Chinese,
    Japanese and Korean, else 1."""


class TokenizerConfig(PiecesConfig):
    """SentencePiece, trained on the training split alone."""

    sampling: Probability = 0.0
    """BPE: probability that a merge is left out (BPE-dropout, Provilkov et al. 2020); unigram: 1 - α of Kudo 2018."""
    reuse: Text | None = None
    """A run or model folder whose tokenizer to take instead of training one."""

    def contradictions(self) -> Iterator[str]:
        if self.kind == "char" and self.sampling > 0:
            yield "sampling needs kind=bpe or unigram: characters can be cut in one way only"


# Model ------------------------------------------------------------------------------------------------------


class TransformerConfig(Section):
    """Vaswani et al. 2017; the letters in brackets are the paper's."""

    architecture: Literal["transformer"]
    width: Size = 192
    """Size of every vector between layers (d_model)."""
    feed_forward: Size = 768
    """Inner size of the feed-forward blocks (d_ff)."""
    heads: Size = 4
    """Attention heads (h); must divide width."""
    encoder_layers: Layers = 3
    decoder_layers: Layers = 3
    dropout: Probability = 0.1
    """On embeddings, residual branches and the feed-forward activation (P_drop)."""
    attention_dropout: Probability = 0.0
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["pre", "post"] = "pre"
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    max_positions: Annotated[int, NotABool, Field(ge=1, le=1_000_000)] = 512
    """Longest sequence that learned positions can take."""
    tie_embeddings: bool = True
    """Target embedding = output matrix, and with a joint vocabulary = source embedding too."""

    def contradictions(self) -> Iterator[str]:
        if self.width % self.heads:
            divisors = [n for n in range(1, self.width + 1) if self.width % n == 0]
            below = max(n for n in divisors if n < self.heads)
            above = [n for n in divisors if n > self.heads][:1]
            nearest = " or ".join(str(n) for n in [below, *above])
            yield f"heads={self.heads} does not divide width={self.width}; nearest that does: {nearest}"
        if self.positions == "sinusoidal" and self.width % 2:
            yield f"sinusoidal positions need an even width, not {self.width}"
        if self.positions == "sinusoidal" and self.is_given("max_positions"):
            yield f"max_positions={self.max_positions} is for positions=learned, not sinusoidal"


class RNNAttentionConfig(Section):
    """Bahdanau et al. 2015 with LSTMs, and what later made recurrent models strong; the paper's letters in brackets."""

    architecture: Literal["rnn_attention"]
    width: Size = 192
    """Size of embeddings (m) and of the readout (l)."""
    hidden: Size = 352
    """Size of the decoder's states (n); each of the encoder's two directions has half of it."""
    encoder_layers: Layers = 2
    decoder_layers: Layers = 1
    attention: Literal["additive", "dot"] = "additive"
    dropout: Probability = 0.1
    """On embeddings, what each layer hands on (the memory included) and the readout."""
    variational_dropout: bool = False
    """One mask for all positions of a sentence (Gal & Ghahramani 2016), or a new one at each."""
    layer_norm: bool = True
    """After every encoder layer and the readout (Ba et al. 2016)."""
    residual: bool = True
    """Around every layer but the first (Wu et al. 2016, section 3.1)."""
    readout: bool = True
    """Predict from [state; context; embedding] (appendix A.2.2), or from the state alone."""
    tie_embeddings: bool = True
    """Target embedding = output matrix, and with a joint vocabulary = source embedding too."""

    def contradictions(self) -> Iterator[str]:
        if self.hidden % 2:
            yield f"hidden={self.hidden} is shared by two directions: take {self.hidden + 1}"
        if self.tie_embeddings and not self.readout and self.hidden != self.width:
            yield (
                f"tie_embeddings=true without a readout needs hidden={self.width}, the embeddings' width, "
                f"not {self.hidden}"
            )


ModelConfig = Annotated[TransformerConfig | RNNAttentionConfig, Field(discriminator="architecture")]


# Training ---------------------------------------------------------------------------------------------------


class OptimizerConfig(Section):
    kind: Literal["auto", "adamw", "muon"] = "auto"
    """muon (Jordan et al. 2024) moves a Transformer's hidden matrices, and AdamW everything else; adamw moves all. auto
    is muon for a Transformer, and adamw for an LSTM, which has no matrices for Muon."""
    learning_rate: PositiveFloat = 4e-3
    """The schedule's peak."""
    embedding_factor: PositiveFloat = 2.5
    """The learning rate of embeddings and output layer is this many times as high."""
    muon_iterations: Annotated[int, NotABool, Field(ge=1, le=20)] = 3
    """Newton-Schulz iterations, which bring the singular values of a step towards 1."""
    betas: tuple[Probability, Probability] = (0.9, 0.98)
    epsilon: PositiveFloat = 1e-9
    weight_decay: NonNegativeFloat = 0.0

    def contradictions(self) -> Iterator[str]:
        if self.kind == "adamw" and self.is_given("muon_iterations"):
            yield f"muon_iterations={self.muon_iterations} is for kind=muon or auto, not adamw"


class ScheduleConfig(Section):
    kind: Literal["inverse_sqrt", "cosine", "linear"] = "linear"
    """After the warm-up: ∝ 1/√update, or to zero at max_updates along a cosine or a line."""
    warmup: NonNegativeInt = 100
    """Updates over which the learning rate rises from zero."""


def scheduled_checkpoints(max_updates: int, validate_every: int, save_every: int | None) -> int:
    """How many checkpoints an undisturbed run saves: at each multiple of both intervals, and in the end."""
    save_every = save_every or validate_every
    both = max_updates // math.lcm(validate_every, save_every)
    at_the_end = max_updates % validate_every > 0 and max_updates % save_every > 0
    return max_updates // validate_every + max_updates // save_every - both + at_the_end


class TrainingConfig(Section):
    max_updates: PositiveInt = 960
    batch_tokens: PositiveInt = 1536
    """Most target tokens (and most source tokens) in a batch, padding included."""
    accumulate: Annotated[int, NotABool, Field(ge=1, le=65_536)] = 1
    """Batches whose gradients make one update; all of them wait in memory for it."""
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    objective: Literal["cross_entropy", "simcut", "r_drop"] = "cross_entropy"
    label_smoothing: Probability = 0.1
    consistency: PositiveFloat = 3.0
    """α, the weight of the divergence that simcut and r_drop add to the cross-entropy."""
    cutoff: Probability = 0.05
    """The share of embeddings that simcut sets to zero."""
    clip_norm: NonNegativeFloat = 1.0
    """Largest gradient norm; 0 switches clipping off."""
    max_bad_steps: PositiveInt = 20
    """Consecutive updates with a non-finite gradient after which the run stops."""

    device: Device = "auto"
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """auto: bf16 where the processor multiplies it natively, fp16 on older GPUs, else fp32."""
    threads: Threads = 0
    """CPU threads; 0 leaves the choice to torch."""
    workers: Processes | Literal["auto"] = 1
    """Processes that train together on this machine; auto: one a GPU, or one a CPU core as long as each has 1,024 of
    the batch's tokens. torchrun starts its own."""
    shard: bool = False
    """Spread weights, gradients and optimizer state over the workers (FSDP2); each must be able to hold the weights."""
    compile: bool = False
    """Let torch.compile make the training's kernels, from the pieces up to the output layer; Transformers only."""

    validate_every: PositiveInt = 240
    """Updates between validations; each also saves a checkpoint."""
    valid_bleu_pairs: PositiveInt = 500
    """How many validation pairs are translated (greedily) each time; the loss takes all that data.max_length allows."""
    save_every: PositiveInt | None = None
    """Updates between further checkpoints; null saves at validations alone."""
    keep_last: PositiveInt = 1
    """Checkpoints kept."""
    log_every: PositiveInt = 50
    metric: Literal["bleu", "loss"] = "bleu"
    """What decides which weights are best, on validation."""
    patience: NonNegativeInt = 0
    """Validations without improvement before the run stops early; 0 never stops early."""
    weights: Literal["best", "last", "average"] = "best"
    """What model.safetensors holds in the end."""
    average: PositiveInt = 5
    """With weights=average: how many of the last checkpoints."""
    init_from: Text | None = None
    """A run or model folder to start from (fine-tuning): its weights and its tokenizer."""

    def contradictions(self) -> Iterator[str]:
        if self.weights == "average" and self.keep_last < self.average:
            yield (
                f"weights=average over average={self.average} checkpoints needs keep_last ≥ {self.average}, "
                f"not {self.keep_last}"
            )
        saved = scheduled_checkpoints(self.max_updates, self.validate_every, self.save_every)
        if self.weights == "average" and self.average > saved:
            yield (
                f"average={self.average} is more than the {saved} checkpoints of max_updates={self.max_updates}: take "
                f"average={saved}, or save more often (save_every)"
            )
        if self.weights != "average" and self.is_given("average"):
            yield f"average={self.average} is for weights=average, not {self.weights}"
        if self.objective == "cross_entropy" and self.is_given("consistency"):
            yield f"consistency={self.consistency} is for objective=simcut or r_drop, not cross_entropy"
        if self.objective != "simcut" and self.is_given("cutoff"):
            yield f"cutoff={self.cutoff} is for objective=simcut, not {self.objective}"
        if self.device == "cpu" and self.precision == "fp16":
            yield "precision=fp16 needs a GPU: on device=cpu take bf16 or fp32"
        if self.schedule.kind != "inverse_sqrt" and self.schedule.warmup >= self.max_updates:
            yield (
                f"schedule.warmup={self.schedule.warmup} leaves nothing of max_updates={self.max_updates}: "
                f"take less, such as {self.max_updates // 10}"
            )


# Decoding ---------------------------------------------------------------------------------------------------


StorageType = Literal["int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"]
"""CTranslate2's names of number formats below fp32."""
ComputeType = Literal[
    "float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"
]


Engine = Literal["torch", "ctranslate2"]
Method = Literal["beam", "sample"]
NBest = Annotated[int, NotABool, Field(ge=1, le=10_000)]
Temperature = Annotated[float, NotABool, Field(gt=0, le=1e9)]
BeamSize = Annotated[int, NotABool, Field(ge=1, le=1000)]
LengthPenalty = Annotated[float, NotABool, Field(ge=0, le=10)]
Share = Annotated[float, NotABool, Field(gt=0, le=1)]
LengthRatio = Annotated[float, NotABool, Field(gt=0, le=1000)]
LengthExtra = Annotated[int, NotABool, Field(ge=0, le=1_000_000)]


class DecodingConfig(Section):
    engine: Engine = "torch"
    """Who searches: the model itself, or CTranslate2 with an export of it."""
    compute_type: ComputeType | None = None
    """Of engine=ctranslate2: the number format of its products. null: float32, in which both engines find the same."""
    method: Method = "beam"
    beam_size: BeamSize = 5
    """1 is greedy search; method=sample has no beam."""
    length_penalty: LengthPenalty = 1.0
    """α in score = log P(hypothesis) / lengthᵅ."""
    n_best: NBest = 1
    """More than 1 writes one JSON line of scored hypotheses for each input line."""
    temperature: Temperature = 1.0
    top_k: NonNegativeInt = 0
    """Sample among the k likeliest pieces only; 0 is all of them."""
    top_p: Share = 1.0
    """Sample among the likeliest pieces that hold this much probability."""
    seed: Seed = 1
    """Sampling is keyed by this and the line number."""
    max_length_ratio: LengthRatio = 2.0
    """A hypothesis has at most ratio · source pieces + extra pieces."""
    max_length_extra: LengthExtra = 20
    max_source_length: PositiveInt = 256
    """Longer lines are cut into parts of at most so many pieces, translated and rejoined, with a warning."""
    batch_tokens: PositiveInt = 4096
    """Most source tokens in a batch, padding and beams included."""

    def contradictions(self) -> Iterator[str]:
        if self.method == "beam" and self.n_best > self.beam_size:
            yield f"n_best={self.n_best} needs beam_size ≥ {self.n_best}, not {self.beam_size}"
        for key in ("temperature", "top_k", "top_p"):
            if self.method == "beam" and self.is_given(key):
                yield f"{key}={getattr(self, key)} is for sampling: it needs method=sample, not beam"
        if self.engine == "ctranslate2" and self.method == "sample":
            yield "engine=ctranslate2 does not sample: method=sample needs engine=torch"
        if self.engine == "torch" and self.compute_type is not None:
            yield f"compute_type={self.compute_type} is CTranslate2's: it needs engine=ctranslate2, not torch"


class DecodingChoice(Section):
    """What the user of a model wants otherwise than the model's own DecodingConfig, key by key; None is the model's."""

    engine: Engine | None = None
    compute_type: ComputeType | None = None
    method: Method | None = None
    beam_size: BeamSize | None = None
    length_penalty: LengthPenalty | None = None
    n_best: NBest | None = None
    temperature: Temperature | None = None
    top_k: NonNegativeInt | None = None
    top_p: Share | None = None
    seed: Seed | None = None
    max_length_ratio: LengthRatio | None = None
    max_length_extra: LengthExtra | None = None
    max_source_length: PositiveInt | None = None
    batch_tokens: PositiveInt | None = None

    def over(self, own: DecodingConfig) -> DecodingConfig:
        """The choice completed by a model's own decoding. Raises ValidationError if the two contradict each other."""
        return DecodingConfig.model_validate(own.model_dump() | self.model_dump(exclude_none=True))

    def contradictions(self) -> Iterator[str]:
        # A model's own decoding (ModelDescription) can only be a plain beam search: of what contradictions are about,
        # its beam alone is not known before the model is.
        widest = {"beam_size": 1000}
        yield from DecodingConfig.model_construct(**widest | self.model_dump(exclude_none=True)).contradictions()


# Commands ---------------------------------------------------------------------------------------------------


class TrainConfig(Section):
    """``python train.py``"""

    name: RunName
    runs: Text = "runs"
    """Folder that holds the run folders."""
    seed: Seed = 1
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    """How the test set is translated."""

    @property
    def folder(self) -> Path:
        return Path(self.runs) / self.name

    @field_validator("name")
    @classmethod
    def _not_a_way_out(cls, name: str) -> str:
        if name in (".", ".."):
            raise ValueError("a run needs a name of its own")
        return name

    def contradictions(self) -> Iterator[str]:
        holds_none_out = not isinstance(self.data, MixtureConfig | RecipeConfig) and all(
            _names(self.data, split) for split in ("valid", "test")
        )
        if holds_none_out and self.data.is_given("split_version"):
            yield "data.split_version is for held-out pairs, but validation and test data are both named: leave it out"
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
            elif optimizer.kind == "auto" and optimizer.is_given("muon_iterations"):
                yield (
                    f"training.optimizer.muon_iterations={optimizer.muon_iterations} is for Transformers: an LSTM is "
                    "moved by AdamW"
                )
        first = self.data.corpora[0] if isinstance(self.data, MixtureConfig) else self.data
        for split in ("valid", "test"):
            key = f"{split}_pairs"
            corpora = [one for one in (first, self.data) if isinstance(one, UnsplitConfig) and one.is_given(key)]
            if corpora and _names(first, split):
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
        elif self.decoding.is_given("seed"):
            yield f"decoding.seed={self.decoding.seed} is for sampling, and the test set is translated by beam search"
        if self.decoding.engine != "torch":
            yield "the test set is translated by the model that was trained: leave decoding.engine=torch"


class ModelDescription(Section):
    """``model.yaml``: all that translating must know beside the tokenizer and the weights."""

    source_language: LanguageCode
    target_language: LanguageCode
    model: ModelConfig
    tokenizer: PiecesConfig
    decoding: DecodingConfig
    """How its user gets his translations unless he says otherwise."""

    @classmethod
    def of(cls, config: TrainConfig) -> Self:
        """The part of a run's config that outlives the run."""
        return cls(
            source_language=config.data.source_language,
            target_language=config.data.target_language,
            model=config.model,
            tokenizer=PiecesConfig(**{name: getattr(config.tokenizer, name) for name in PiecesConfig.model_fields}),
            decoding=config.decoding,
        )

    def contradictions(self) -> Iterator[str]:
        if self.decoding.method != "beam" or self.decoding.n_best > 1 or self.decoding.engine != "torch":
            yield (
                "a model's own decoding is one best translation by the model itself: decoding.method=beam, "
                "decoding.n_best=1, decoding.engine=torch"
            )


class TranslateConfig(Section):
    """``python translate.py``"""

    run: Text
    """A run or model folder."""
    input: Text | None = None
    """null: standard input."""
    output: Text | None = None
    """null: standard output."""
    reference: Text | None = None
    """Translations to score instead of searching for one, line by line."""
    device: Device = "auto"
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "fp32"
    threads: Threads = 0
    decoding: DecodingChoice = DecodingChoice()

    def contradictions(self) -> Iterator[str]:
        if self.output is not None and self.output in (self.input, self.reference):
            yield f"output={self.output} would overwrite what is read: give output another name"
        if self.reference is not None and (self.decoding.n_best or 1) > 1:
            yield "reference has one translation a line to score: leave decoding.n_best=1"
        if self.reference is not None and self.decoding.method == "sample":
            yield "reference is scored, not searched for: leave decoding.method=beam"
        elif self.decoding.method == "sample" and self.decoding.is_given("beam_size"):
            yield f"decoding.beam_size={self.decoding.beam_size} is for decoding.method=beam: sampling has no beam"
        elif self.decoding.method != "sample" and self.decoding.is_given("seed"):
            yield f"decoding.seed={self.decoding.seed} is for sampling: it needs decoding.method=sample"
        for key in ("beam_size", "max_length_ratio", "max_length_extra"):
            if self.reference is not None and self.decoding.is_given(key):
                given = f"decoding.{key}={getattr(self.decoding, key)}"
                yield f"reference is scored, not searched for: {given} is for a search"
        if self.reference is not None and self.decoding.engine == "ctranslate2":
            yield "reference is scored by the model itself: leave decoding.engine=torch"
        if self.precision != "fp32" and self.decoding.engine == "ctranslate2":
            yield f"precision={self.precision} is PyTorch's: with decoding.engine=ctranslate2 set decoding.compute_type"
        if self.device == "cpu" and self.precision == "fp16":
            yield "precision=fp16 needs a GPU: on device=cpu take bf16 or fp32"


class ExportConfig(Section):
    """``python -m mt.translation.ctranslate2``"""

    run: Text
    """A run or model folder."""
    output: Text
    quantization: StorageType | None = None
    """How the weights are stored; null: as they are, in fp32."""


class CompareConfig(Section):
    """``python -m mt.comparison``"""

    first: Folders | None = None
    """The baseline: a run, runs of one config with several seeds, or a file with a translation a line."""
    second: Folders | None = None
    runs: Annotated[tuple[Folders, ...], Field(min_length=2)] | None = None
    """Instead of first and second: two or more of the same, the first of them the baseline."""
    references: Text | None = None
    """Where no run is compared: the file with the reference translations, line by line."""
    source: Text | None = None
    """Where no run is compared: the file with what was translated."""
    source_language: LanguageCode | None = None
    """Where no run is compared; null: not known."""
    target_language: LanguageCode | None = None
    """Where no run is compared: it decides how scores are counted."""
    output: Text | None = None
    """null: FIRST-vs-SECOND beside the second."""
    bootstrap_samples: Annotated[int, NotABool, Field(ge=100, le=1_000_000)] = 10_000
    """Test sets drawn at random for the 95 % intervals."""
    randomization_trials: Annotated[int, NotABool, Field(ge=100, le=10_000_000)] = 100_000
    """Random exchanges of the paired randomisation test."""
    examples: PositiveInt = 20
    """Sentences shown for each side's clearest wins."""
    studied_sentences: NonNegativeInt = 100
    """Test sentences over which attention is averaged; 0 leaves attention out."""
    timed_sentences: NonNegativeInt = 200
    """Test sentences translated to measure speed; 0 leaves it out."""
    valid_bleu: Annotated[float, NotABool, Field(gt=0, le=100)] | None = None
    """The report tells the training time to this validation BLEU; null: the highest that all runs reached."""
    device: Device = "auto"
    threads: Threads = 0

    @property
    def systems(self) -> tuple[tuple[str, ...], ...]:
        """The folders of each system; the first is the baseline."""
        given = (self.first, self.second) if self.runs is None else self.runs
        return tuple((one,) if isinstance(one, str) else one for one in given if one is not None)

    def contradictions(self) -> Iterator[str]:
        if self.runs is not None and (self.first is not None or self.second is not None):
            yield "runs replaces first and second: give either"
        elif self.runs is None and (self.first is None or self.second is None):
            yield "two runs are needed: first=runs/A second=runs/B, or runs=[runs/A,runs/B,runs/C]"
        folders = [os.path.abspath(folder) for system in self.systems for folder in system]
        for folder in sorted({folder for folder in folders if folders.count(folder) > 1}):
            yield f"{folder} is given twice"
