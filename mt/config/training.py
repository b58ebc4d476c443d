"""The settings of training: optimizer, schedule, objective, batches, validation and fine-tuning."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from mt.config.fields import (
    FeedProcesses,
    For,
    NonNegativeFloat,
    NonNegativeInt,
    NotABool,
    PathText,
    PositiveFloat,
    PositiveInt,
    Precision,
    PrecisionConfig,
    Probability,
    Processes,
    Section,
    SetMetric,
    Share,
    Texts,
    Within,
)

MetricName = Literal["bleu", "chrf", "ter"]
"""Keys of ``METRICS`` in mt/metrics/registry.py."""


class OptimizerConfig(Section):
    """The settings of the optimizer."""

    kind: Literal["auto", "adamw", "muon"] = "auto"
    """Optimizer. adamw: AdamW. muon: Muon (Jordan et al. 2024) for the hidden matrices of a Transformer, and AdamW for
    its other parameters. auto: muon for a Transformer, adamw for an LSTM."""
    learning_rate: PositiveFloat = 4e-3
    """Peak learning rate of the schedule. Lower it for a Transformer with adamw, or for a large model. If it is not set
    and init_from is, it is 1e-3 up to model.width=192, and lower in inverse proportion to width beyond."""
    embedding_factor: PositiveFloat = 2.5
    """Factor on learning_rate for embeddings and output layer."""
    muon_iterations: Annotated[int, Within(1, 20), For("kind", "muon", "auto")] = 3
    """Number of Newton-Schulz iterations in Muon's orthogonalization. 5 is more exact, and slower on a CPU."""
    betas: tuple[Probability, Probability] = (0.9, 0.98)
    """AdamW's decay rates β₁ and β₂ of the running means of the gradient and of its square."""
    epsilon: PositiveFloat = 1e-9
    """AdamW's ε, which is added to the denominator of an update."""
    weight_decay: NonNegativeFloat = 0.0
    """Decoupled weight decay: an update multiplies weights by 1 - learning rate · weight_decay."""


class ScheduleConfig(Section):
    kind: Literal["inverse_sqrt", "cosine", "linear", "constant", "step", "plateau"] = "linear"
    """Decay of the learning rate after the warm-up. inverse_sqrt: with the inverse square root of the update's number.
    cosine, linear: to zero at max_updates, along a cosine or a straight line. constant: none. step: by a factor after
    given updates. plateau: by a factor when validations do not improve."""
    warmup: NonNegativeInt = 100
    """Number of updates in which the learning rate rises linearly from zero to its peak."""
    steps: Annotated[tuple[PositiveInt, ...], For("kind", "step")] = ()
    """With step: the updates after which the learning rate is multiplied by factor, as a list."""
    factor: Annotated[Share, For("kind", "step", "plateau")] = 0.5
    """With step and plateau: the factor that the learning rate is multiplied by each time."""
    plateau_patience: Annotated[PositiveInt, For("kind", "plateau")] = 2
    """With plateau: number of consecutive validations that are not the best so far, after which the learning rate is
    multiplied by factor."""


class TrainingConfig(PrecisionConfig):
    """The settings of training."""

    max_updates: PositiveInt = 1200
    """Number of updates of the run. It may grow when a run is resumed."""
    epochs: Annotated[float, NotABool, Field(gt=0, le=1e5)] | None = None
    """Length of the run in epochs, such as 3 or 0.5, instead of max_updates, which then becomes the number of updates
    that use all batches of these epochs. It may grow when a run is resumed. null: max_updates is the length."""
    minutes: Annotated[float, NotABool, Field(gt=0, le=1e6)] | None = None
    """Time budget of the whole run, from reading the corpus to scoring the test set. The trainer chooses those of these
    settings that you do not set: model size, vocabulary, initialization of embeddings, dropout, batch size, learning
    rate, objective and number of updates. null: no budget, and settings have their defaults."""
    batch_tokens: PositiveInt = 1536
    """Maximum number of source tokens, and of target tokens, in a batch, including padding."""
    batching: Literal["auto", "padded", "packed"] = "auto"
    """Layout of batches. padded or auto: sentences of similar lengths, padded to the longest. packed: random sentences,
    one after another in rows of the same length in every batch, with which an update of a Transformer on a CUDA GPU
    with bf16 is one CUDA graph; batch_tokens is their mean. packed is there to try: its speed has not been measured on
    a GPU yet. A resumed run keeps its layout."""
    accumulate: Annotated[int, Within(1, 65_536)] = 1
    """Number of batches whose gradients one update adds up. All of these batches are in memory at once."""
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    objective: Literal["cross_entropy", "simcut", "r_drop"] = "cross_entropy"
    """Training objective: cross_entropy, simcut or r_drop. simcut (Gao et al. 2022) and r_drop (Liang et al. 2021) add
    a consistency loss, with which an update takes twice as long, and models of small corpora become better."""
    consistency: Annotated[PositiveFloat, For("objective", "simcut", "r_drop")] = 3.0
    """With simcut and r_drop: the weight α of the divergence between the two predictions of a token."""
    cutoff: Annotated[Probability, For("objective", "simcut")] = 0.05
    """With simcut: the share of token embeddings that are set to zero for the second prediction."""
    label_smoothing: Probability = 0.1
    """Share of the target probability that label smoothing spreads evenly over the vocabulary."""
    clip_norm: NonNegativeFloat = 1.0
    """Maximum norm of the gradient. A gradient with a larger norm is scaled down to it. 0: no clipping."""
    max_bad_steps: PositiveInt = 20
    """Maximum number of consecutive updates with a gradient that is not finite. Then the run stops."""
    precision: Precision = "auto"
    """Number format of matrix products. auto: bf16 if the processor has instructions for it, fp16 on older GPUs,
    otherwise fp32."""
    workers: Processes | Literal["auto"] = 1
    """Number of data-parallel processes on this machine. auto: one for each GPU; on a CPU, one for each core, as long
    as each has 1,024 of batch_tokens. Under torchrun, its processes are used instead."""
    feed_processes: FeedProcesses | Literal["auto"] = "auto"
    """Number of processes of each worker that augment training pairs and sample subwords. The batches are the same with
    any number. 0: the worker does it itself. auto: 0 on a CPU; for a GPU, its share of the CPU cores without one, at
    most 8. Without text.augmentation and tokenizer.sampling, there are none."""
    shard: bool = False
    """Shard weights, gradients and optimizer state over the processes (FSDP2), if one GPU cannot hold all three. Each
    GPU must be able to hold the weights."""
    compile: bool = False
    """Compile a Transformer with torch.compile. This takes a minute or more at the start, and makes training on a CPU
    slower."""
    validate_every: PositiveInt = 240
    """Number of updates between validations. Each validation also saves a checkpoint."""
    valid_bleu_pairs: PositiveInt = 500
    """Number of validation pairs that a validation translates greedily for BLEU and the other scores, divided equally
    among several validation sets. The validation loss is computed over all pairs."""
    save_every: PositiveInt | None = None
    """Number of updates between additional checkpoints. null: only validations save checkpoints."""
    keep_last: PositiveInt = 1
    """Number of checkpoints to keep. An interruption can leave one more."""
    log_every: PositiveInt = 50
    """Number of updates between records in metrics.jsonl and TensorBoard."""
    metric: Literal[MetricName, "loss"] | SetMetric = "bleu"
    """Validation score (bleu, chrf, ter or loss) that decides which weights are best, and when patience ends. Of ter
    and loss, the lowest is best; ter makes validations slower. Of several validation sets, the first one decides, or
    the named one, as in news.bleu. If scores are equal, such as BLEU 0 where no line has four words, the higher
    chrF2 is best, then the lower loss."""
    patience: NonNegativeInt = 0
    """Number of consecutive validations that are not the best so far, after which the run stops early. 0: never."""
    weights: Literal["best", "last", "average"] = "best"
    """Final weights in model.safetensors: the best on validation, the last, or the average of the last checkpoints."""
    average: Annotated[PositiveInt, For("weights", "average")] = 5
    """With weights=average: the number of checkpoints to average. keep_last must be at least as large."""
    initial_embeddings: Literal["random", "co_occurrence"] = "random"
    """Initialization of embeddings. co_occurrence: similar vectors for tokens that occur in the same pairs, such as
    translations of each other, which helps short runs. An untied output matrix (model.tie_embeddings=false) stays
    random."""
    freeze: Annotated[Texts, Field(max_length=1_000)] = ()
    """Parts of the model that stay as they are: [encoder], [embeddings], [encoder.layers.0,decoder.layers.0] and so on.
    embeddings are all token and position embeddings, and with them the output layer if it is tied to them. The log says
    how many parameters are trained."""
    init_from: PathText | None = None
    """Base model for fine-tuning, which gives the initial weights, the tokenizer and the model settings: a run or model
    folder, a MarianMT folder, or a MarianMT model on the Hugging Face hub, OWNER/NAME[@REVISION]."""
    start_share: Annotated[Probability, For("init_from")] = 0.0
    """With init_from: the weight (0–1) of the initial weights when they are averaged with the trained ones for
    validation and for the final model. A larger one forgets less. 0: the trained weights alone. 0.25 is often better
    than 0 on both new and old text."""

    continue_from: PathText | None = None
    """Run to continue in a new run with other settings: its folder, or FOLDER@UPDATE for an earlier checkpoint than the
    newest. Weights, optimizer state, progress and all settings that you do not type come from there."""
    reset: Annotated[tuple[Literal["optimizer", "schedule", "data"], ...], For("continue_from")] = ()
    """With continue_from: the parts of the state that begin anew, as a list. optimizer: no optimizer state. schedule:
    the first of the remaining updates is the first of the schedule, with its warm-up. data: the first batch of the
    first epoch; the training data may be others."""

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        if self.continue_from and self.epochs is not None:
            yield f"epochs={self.epochs:g} is for a run from its start: with continue_from, set max_updates"
        saved = scheduled_checkpoint_count(self.max_updates, self.validate_every, self.save_every)
        given = self.model_fields_set | self.schedule.model_fields_set
        is_open = self.minutes is not None and not {"max_updates", "validate_every", "warmup"} <= given
        is_open |= self.epochs is not None and "max_updates" not in given
        if self.epochs is not None and self.minutes is not None:
            yield f"epochs={self.epochs:g} contradicts minutes, which chooses the number of updates: set one of them"
        if self.weights == "average" and self.keep_last < self.average:
            yield f"average={self.average} needs as many checkpoints: set training.keep_last={self.average}"
        if self.weights == "average" and self.average > saved and not is_open:
            hint = f"take average={saved}, or save more often (save_every)"
            yield f"average={self.average} is more than the {saved} checkpoints of the run: {hint}"
        if self.init_from and self.initial_embeddings != "random":
            yield f"initial_embeddings={self.initial_embeddings} contradicts init_from: set initial_embeddings=random"
        if self.batching == "packed" and self.freeze:
            yield "batching=packed trains all parts of a model: take padded, or leave training.freeze out"
        steps = list(self.schedule.steps)
        if self.schedule.kind == "step" and not 0 < max(steps, default=0) < self.max_updates and not is_open:
            yield f"schedule.steps={steps} must be updates before max_updates={self.max_updates}, such as [800,1000]"
        if self.schedule.kind == "plateau" and 0 < self.patience <= self.schedule.plateau_patience:
            yield f"patience={self.patience} is to be larger than schedule.plateau_patience, or the rate never falls"
        warmup = self.schedule.warmup
        if self.schedule.kind != "inverse_sqrt" and warmup >= self.max_updates and not is_open:
            yield f"schedule.warmup={warmup} takes all of max_updates={self.max_updates}: try {self.max_updates // 10}"


def split_update(path: str) -> tuple[Path, int | None]:
    """Split FOLDER@UPDATE into the folder of a run and the update of a checkpoint, None without @UPDATE."""
    folder, _, update = path.rpartition("@")
    return (Path(folder), int(update)) if update.isdecimal() and folder else (Path(path), None)


def scheduled_checkpoint_count(max_updates: int, validate_every: int, save_every: int | None) -> int:
    """Return the number of checkpoints that a run without interruptions saves: one at each multiple of either interval,
    and one at the end.

    Args:
        max_updates: The number of updates of the run.
        validate_every: The updates between validations.
        save_every: The updates between additional checkpoints. None: there are no additional ones.
    """
    save_every = save_every or validate_every
    both = max_updates // math.lcm(validate_every, save_every)
    at_the_end = max_updates % validate_every > 0 and max_updates % save_every > 0
    return max_updates // validate_every + max_updates // save_every - both + at_the_end
