"""How a model is trained."""

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from mt.config.fields import (
    For,
    NonNegativeFloat,
    NonNegativeInt,
    NotABool,
    PathText,
    PositiveFloat,
    PositiveInt,
    Probability,
    Processes,
    Section,
)
from mt.config.machine import Precision, PrecisionConfig


class OptimizerConfig(Section):
    kind: Literal["auto", "adamw", "muon"] = "auto"
    """adamw, or muon (Jordan et al. 2024) for a Transformer's hidden matrices and AdamW for everything else. auto: muon
    for a Transformer, adamw for an LSTM.

    An LSTM has no matrices that Muon suits."""
    learning_rate: PositiveFloat = 4e-3
    """The highest learning rate of the schedule. Lower it for a Transformer with adamw, or for a large model. With
    init_from and if it is not set, it is 1e-3 up to model.width=192, and less in proportion for wider models."""
    embedding_factor: PositiveFloat = 2.5
    """Embeddings and output layer learn at this many times learning_rate."""
    muon_iterations: Annotated[int, NotABool, Field(ge=1, le=20), For("kind", "muon", "auto")] = 3
    """Newton-Schulz iterations that orthogonalise Muon's steps. 5 is more exact, and slower on a CPU."""
    betas: tuple[Probability, Probability] = (0.9, 0.98)
    """How slowly AdamW's running means of the gradient and of its square change."""
    epsilon: PositiveFloat = 1e-9
    """Keeps AdamW from dividing by zero."""
    weight_decay: NonNegativeFloat = 0.0
    """In every update the weights shrink by this share, times the learning rate."""


class ScheduleConfig(Section):
    kind: Literal["inverse_sqrt", "cosine", "linear"] = "linear"
    """How the learning rate falls after the warm-up: with the inverse square root of the update, or to zero at
    max_updates, along a cosine or a straight line."""
    warmup: NonNegativeInt = 100
    """How many updates the learning rate takes to rise from zero."""


class TrainingConfig(PrecisionConfig):
    max_updates: PositiveInt = 1200
    """The length of the run. This is the one setting that may grow when the same command goes on."""
    minutes: Annotated[float, NotABool, Field(gt=0, le=1e6)] | None = None
    """The time of the whole run, from reading the corpus to the test scores. The trainer chooses size, vocabulary,
    first embeddings, dropout, batch, learning rate, objective and length for it, except for what is given. null: it
    chooses nothing."""
    batch_tokens: PositiveInt = 1536
    """The most target tokens, and the most source tokens, in a batch, padding included."""
    accumulate: Annotated[int, NotABool, Field(ge=1, le=65_536)] = 1
    """How many batches make one update. All of them wait in memory for it."""
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    objective: Literal["cross_entropy", "simcut", "r_drop"] = "cross_entropy"
    """simcut (Gao et al. 2022) and r_drop (Liang et al. 2021) add consistency training: twice the work of an update,
    and better models where pairs are few."""
    consistency: Annotated[PositiveFloat, For("objective", "simcut", "r_drop")] = 3.0
    """With simcut and r_drop: the weight of the divergence between the two predictions of a piece (α)."""
    cutoff: Annotated[Probability, For("objective", "simcut")] = 0.05
    """With simcut: the share of embeddings that are set to zero for the second prediction."""
    label_smoothing: Probability = 0.1
    """The share of the target probability that is spread over the whole vocabulary."""
    clip_norm: NonNegativeFloat = 1.0
    """The largest gradient norm; longer gradients are scaled down to it. 0 switches clipping off."""
    max_bad_steps: PositiveInt = 20
    """The run stops after this many updates in a row whose gradient is not finite."""
    precision: Precision = "auto"
    """The number format of matrix products. auto: bf16 where the processor has instructions for it, fp16 on older GPUs,
    otherwise fp32."""
    workers: Processes | Literal["auto"] = 1
    """Processes that train together on this machine. auto: one for each GPU; on a CPU one for each core, as long as
    each has 1,024 of batch_tokens. torchrun starts its own."""
    shard: bool = False
    """Spread weights, gradients and optimizer state over the workers (FSDP2), for models of which one GPU cannot hold
    all three. It must be able to hold the weights."""
    compile: bool = False
    """Let torch.compile make the kernels of a Transformer. It takes a minute or more at the start, and is slower on a
    CPU."""
    validate_every: PositiveInt = 240
    """Updates between validations. Each validation also saves a checkpoint."""
    valid_bleu_pairs: PositiveInt = 500
    """How many validation pairs are translated (greedily) each time. The validation loss is computed over all."""
    save_every: PositiveInt | None = None
    """Updates between further checkpoints. null: only validations save one."""
    keep_last: PositiveInt = 1
    """How many checkpoints are kept; after an interruption one more."""
    log_every: PositiveInt = 50
    """Updates between lines in metrics.jsonl and points in TensorBoard."""
    metric: Literal["bleu", "loss"] = "bleu"
    """Which validation score decides which weights are best."""
    patience: NonNegativeInt = 0
    """The run stops early after this many validations without improvement. 0: never."""
    weights: Literal["best", "last", "average"] = "best"
    """Which weights model.safetensors holds in the end: the best on validation, the last, or the mean of the last
    checkpoints."""
    average: Annotated[PositiveInt, For("weights", "average")] = 5
    """With weights=average: how many checkpoints. keep_last must keep as many."""
    initial_embeddings: Literal["random", "co_occurrence"] = "random"
    """How the embeddings are initialised. co_occurrence: pieces that occur in the same pairs, such as translations of
    each other, get similar vectors, so that a short run need not learn that first. An output matrix of its own
    (model.tie_embeddings=false) stays random."""
    init_from: PathText | None = None
    """What to start from (fine-tuning), with its weights, its tokenizer and its model settings: a run or model folder,
    or a MarianMT model: its folder, or OWNER/NAME[@REVISION] on the Hugging Face hub."""
    replay: Annotated[Probability, For("init_from")] = 0.0
    """With init_from: the share of each epoch's pairs that is taken from the training pairs of that run, so that it
    does not forget them. Its corpus must still be there; what it held out, or replayed itself, is not among them."""
    start_share: Annotated[Probability, For("init_from")] = 0.0
    """With init_from: the share that the weights which the run begins with have in those that it validates and
    delivers, which are the weighted mean of the first weights and the learnt ones. A larger share forgets less. 0: the
    learnt weights alone; 0.25 often is better than 0 on both new and old text; 0.5: half of each."""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        saved = scheduled_checkpoints(self.max_updates, self.validate_every, self.save_every)
        given = self.model_fields_set | self.schedule.model_fields_set
        is_open = self.minutes is not None and not {"max_updates", "validate_every", "warmup"} <= given
        if self.weights == "average" and self.keep_last < self.average:
            yield f"average={self.average} checkpoints need keep_last ≥ {self.average}, not {self.keep_last}"
        if self.weights == "average" and self.average > saved and not is_open:
            yield (
                f"average={self.average} is more than the {saved} checkpoints of max_updates={self.max_updates}: take "
                f"average={saved}, or save more often (save_every)"
            )
        if self.init_from and self.initial_embeddings != "random":
            yield (
                f"initial_embeddings={self.initial_embeddings} (which some experiments set): the model of init_from "
                "has embeddings already, take training.initial_embeddings=random"
            )
        warmup = self.schedule.warmup
        if self.schedule.kind != "inverse_sqrt" and warmup >= self.max_updates and not is_open:
            yield (
                f"schedule.warmup={warmup} leaves nothing of max_updates={self.max_updates}: take less, such as "
                f"{self.max_updates // 10}"
            )


def scheduled_checkpoints(max_updates: int, validate_every: int, save_every: int | None) -> int:
    """Return how many checkpoints an undisturbed run saves: one at each multiple of both intervals, and one in the
    end."""
    save_every = save_every or validate_every
    both = max_updates // math.lcm(validate_every, save_every)
    at_the_end = max_updates % validate_every > 0 and max_updates % save_every > 0
    return max_updates // validate_every + max_updates // save_every - both + at_the_end
