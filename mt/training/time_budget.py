"""The rules by which ``training.minutes`` chooses the settings of a run.

Equal arguments of a ``Chooser`` give equal settings. Settings that the user gave are never changed. The comment of a
measured constant names the section of docs/lab-notebook.md; the other constants are guesses.

The estimated times of a run's stages before and after training do not depend on the number of updates.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from mt.config import ModelConfig, ResolvedTrainConfig, RNNAttentionConfig, TrainConfig, TransformerConfig
from mt.core.errors import InputError
from mt.core.language import has_many_characters
from mt.training.initial_weights import MAX_PAIRS, MAX_TOKENS

SIZE_KEYS = tuple(f"model.{name}" for name in ("width", "feed_forward", "heads", "encoder_layers", "decoder_layers"))
"""The settings of a model preset."""
CHOSEN_KEYS = (
    *SIZE_KEYS, "tokenizer.vocabulary_size", "training.batch_tokens", "training.objective", "training.max_updates",
    "model.dropout", "training.optimizer.learning_rate", "training.schedule.warmup", "training.validate_every",
    "training.patience", "training.initial_embeddings",
)  # fmt: skip
"""All settings that training.minutes can choose."""
SettingValue = str | int | float

SLOWDOWN_PER_SIZE = 8
"""Time per token of each size from transformer_small on, relative to the next smaller size."""
SMALL_VOCABULARIES = ((5_000, 2_000), (20_000, 4_000))
"""(pairs, vocabulary size): a corpus with fewer pairs gets this vocabulary size. 8,000 tokens
suit 29,000 pairs ("What helps on little data": 4,000 cost 0.6 BLEU on validation, 16,000 gained 0.3 and are slower)."""

CHARACTERS_PER_TOKEN, HAN_CHARACTERS_PER_TOKEN = 4.2, 1.4
"""Characters per token in languages with an alphabet, and in languages with many characters, such as Chinese."""
MAX_ALIGNMENT_PAIRS = 500
"""Maximum number of validation pairs for choosing the attention head for word alignment, after the last update."""
MAX_CONFIDENCE_PAIRS = 1000
"""Maximum number of validation pairs for fitting the quality estimation, and of test pairs for evaluating it, after the
last update."""
PREPARATION_SECONDS = 4.0
PREPARATION_SECONDS_PER_PAIR = 60e-6
"""Time for training the tokenizer and encoding the pairs, between the choice of settings and the first update."""
SCORING_SECONDS = 3.0
SCORING_SECONDS_PER_PAIR = 1e-3
"""Time for scores and files after the test set has been translated."""

MIN_WORD_VOCABULARY = 500
"""A vocabulary has at most this many tokens plus half of the distinct words: SentencePiece refuses more."""
SMALL_CORPUS_PAIRS = 50_000
"""Up to this number of pairs, a batch has 1,024 tokens, as tuned for Multi30k; for more, 1,536, as tuned for
Tatoeba."""
MAX_UPDATES = 40_000
"""Updates of the longest measured run. With time for more, batches grow, up to MAX_BATCH_TOKENS."""
MAX_BATCH_TOKENS = 25_000
"""Tokens in an update of Vaswani et al. 2017."""
MAX_EPOCHS = 200
"""Longest run, in epochs. An epoch of R-Drop counts twice. "Multi30k" still gained with 168."""
MIN_UPDATE_LIMIT = 5_000
"""MAX_EPOCHS never limits a run to fewer updates than this. It matters for very small corpora."""

DROPOUT = ((2, 0.0), (8, 0.05), (40, 0.1), (math.inf, 0.2))
"""(epochs, dropout): the dropout up to that many epochs. An epoch of R-Drop counts twice. 2: no dropout gained 3 BLEU
on the default corpus. 6 and 8: "Multi30k" (36.5 BLEU with 0.05, 35.8 with 0.1). 21: "What helps on little data" (R-Drop
with 0.1). 42 and more: 0.2."""
MAX_LSTM_DROPOUT = 0.1  # 0.2 was no better
MIN_R_DROP_EPOCHS = 20
"""R-Drop is chosen from this number of epochs on: 39.8 BLEU after 5,000 updates, 38.5 after 10,000 without it, in equal
time ("What helps on little data", "Multi30k"). It predicts every token twice, so there is time for half as many
epochs."""
MIN_CO_OCCURRENCE_UPDATES, MAX_CO_OCCURRENCE_EPOCHS = 100, 1.5
"""Use co-occurrence initialization from this many updates up to this many epochs, if it takes less time than it saves:
30.2 BLEU instead of 28.8 after one epoch of Multi30k, and an LSTM's 34.0 instead of 32.5 after 1.3 of Tatoeba
("Co-occurrence embeddings" in docs/lab-notebook.md)."""
SAVED_UPDATE_SHARE = 1 / 8
"""Share of the updates that co-occurrence embeddings save. Random ones needed 12 to 29 % more updates for the same
validation loss."""
COUNTING_SECONDS_PER_FEATURE = 45e-9
"""Seconds that co-occurrence initialization takes for each token and embedding feature (measured: 39 and 54 ns)."""
LONG_RUN_UPDATES = 10_000
"""Longer runs have three quarters of the learning rate (3e-3 instead of 4e-3 in experiment=multi30k_en_de)."""
MAX_ADAMW_LEARNING_RATE = 1.5e-3  # of a Transformer ("Optimizers")
WARMUP_DIVISOR, MAX_WARMUP = 12, 200
"""Warm up for a twelfth of the updates, as in the default (100 of 1,200), and at most as long as in 40,000 updates of
Multi30k."""

UPDATE_OVERHEAD_FACTOR = 1.08
"""Time of an update relative to the measured one: its batch also has to be made (docs/lab-notebook.md)."""
VALIDATION_SHARE = 0.08
"""Share of the training time for validation, as far as 1 to MAX_VALIDATIONS validations allow it."""
MAX_VALIDATIONS = 20
FORWARD_TIME_SHARE = 1 / 3
"""Time of a validation token relative to a training token: there is no backward pass."""
CHECKPOINT_SECONDS = 0.5  # of a checkpoint before or after a validation
MIN_UPDATES = 50
"""Minimum number of updates. Runs with time for fewer are refused."""


@dataclass(frozen=True)
class Decision:
    """One row of the table in the log. choice.json records all of them."""

    name: str
    """The key of the setting, or ``model`` for a preset, which decides several settings."""
    value: SettingValue
    """The value of the setting, or the name of the preset."""
    settings: dict[str, SettingValue]
    """The chosen values by key, without those that the user gave."""
    reason: str


class ModelSize(NamedTuple):
    """A Transformer preset of conf/model, the conditions for choosing it, and settings that suit it."""

    preset: str
    min_pairs: int
    """Minimum number of training pairs."""
    min_target_tokens: float
    """Minimum number of target tokens, with repetitions, for which there is time. 0: the time is not considered."""
    vocabulary_size: int
    learning_rate: float
    """Peak learning rate of a short run."""


MODEL_SIZES = (
    ModelSize("transformer_tiny", 0, 0, 8_000, 4e-3),
    ModelSize("transformer_small", 20_000, 0, 8_000, 4e-3),  # "Multi30k": 29,000 pairs; beats published tiny models
    ModelSize("transformer_base", 300_000, 100e6, 32_000, 2e-3),
    ModelSize("transformer_big", 5_000_000, 1e9, 32_000, 1e-3),
)
"""From the smallest to the largest."""


def is_transformer(model: ModelConfig) -> bool:
    """Return whether the rules for Transformers apply instead of those for LSTMs. A new model needs a branch."""
    match model:
        case TransformerConfig():
            return True
        case RNNAttentionConfig():
            return False
        case _:
            assert_never(model)


@dataclass(frozen=True)
class CorpusSize:
    """The size of a corpus, counted before a tokenizer is trained. choice.json records it."""

    pairs: int
    """Training pairs in an epoch, after cleaning. In a mixture, each corpus is multiplied by its weight."""
    source_characters: float
    """Mean length of a source."""
    target_characters: float
    """Mean length of a target."""
    distinct_words: int | None
    """Number of distinct words of both sides together; None if only a sample of the pairs was read."""
    valid_pairs: int
    test_pairs: int


@dataclass(frozen=True)
class Speed:
    """The measured speed of one model on this machine, in seconds."""

    update: float
    """The constant part of an update's time."""
    token: float
    """The part of an update's time that grows with the batch, per target token."""
    greedy: float
    """Greedy search, per sentence."""
    beam: float
    """Beam search with the run's decoding settings, per sentence."""


def overhead_seconds(corpus: CorpusSize, speed: Speed) -> float:
    """Estimate the seconds from the choice of settings to the end of the run, except for updates and validations."""
    preparation = PREPARATION_SECONDS + PREPARATION_SECONDS_PER_PAIR * corpus.pairs
    alignment = min(corpus.valid_pairs, MAX_ALIGNMENT_PAIRS) * speed.greedy
    confidence = sum(min(pairs, MAX_CONFIDENCE_PAIRS) for pairs in (corpus.valid_pairs, corpus.test_pairs)) * speed.beam
    scoring = corpus.test_pairs * (speed.beam + SCORING_SECONDS_PER_PAIR) + SCORING_SECONDS
    return preparation + alignment + confidence + scoring


def estimated_tokens(characters: float, language: str) -> float:
    """Estimate the number of tokens, EOS included, of a text with this many characters."""
    per_token = HAN_CHARACTERS_PER_TOKEN if has_many_characters(language) else CHARACTERS_PER_TOKEN
    return 1 + characters / per_token


@dataclass
class Chooser:
    """Chooses the settings of one run, step by step: later decisions depend on earlier ones.

    In all methods, ``training_seconds`` is the time for all updates together.
    """

    resolved: ResolvedTrainConfig
    """The config, with ``training.minutes`` and the settings that have been chosen so far."""
    corpus: CorpusSize
    presets: Mapping[str, ModelConfig]
    """The Transformer presets of conf/model by name."""
    measure: Callable[[ModelConfig, int], Speed]
    """Measures the speed of a model, given its config and the size of its vocabulary."""
    elapsed: Callable[[], float]
    """Returns the seconds since the run began."""
    speed: Speed = field(init=False)
    """The speed of the chosen model, from ``_choose_size`` on."""
    counting_seconds: float = 0.0
    """Time for the initialization of embeddings."""
    decisions: list[Decision] = field(default_factory=list)
    """In the order in which they were made."""

    @property
    def config(self) -> TrainConfig:
        return self.resolved.config

    def choose(self) -> None:
        """Choose every setting in CHOSEN_KEYS that the user has not given.

        Raises:
            InputError: The minutes do not suffice.
        """
        self._choose_size()
        self._choose_length()

    def _choose_size(self) -> None:
        """Choose the sizes of the model and of the vocabulary, and measure the model's speed, in ``speed``.

        An LSTM, a given ``model.width`` and a fine-tuned model keep their size. All workers have to take part.
        """
        asked, pairs = self.resolved, self.corpus.pairs
        is_open = is_transformer(self.config.model) and not asked.is_given("model.width")
        if not is_open or self.config.training.init_from:
            self._choose_vocabulary(MODEL_SIZES[1])
            self._measure_speed()
            return
        candidates = [size for size in MODEL_SIZES if size.min_pairs <= pairs]
        size = next(size for size in reversed(candidates) if not size.min_target_tokens)
        self._choose_preset(size, f"{pairs:,} training pairs")
        self._measure_speed()
        tokens = self._seconds_left() / (self.speed.update / MAX_BATCH_TOKENS + self.speed.token)
        larger = candidates[candidates.index(size) + 1 :]
        fits = [s for n, s in enumerate(larger, 1) if tokens / SLOWDOWN_PER_SIZE**n >= s.min_target_tokens]
        if fits:
            self.resolved, self.decisions = asked, []
            enough = f"time for more than {fits[-1].min_target_tokens / 1e6:,.0f} million target tokens"
            self._choose_preset(fits[-1], f"{pairs:,} training pairs, and {enough}")
            self._measure_speed()

    def _choose_length(self) -> None:
        """Choose the number of updates and the settings that depend on it."""
        seconds = self._seconds_left()
        validation = self._validation_seconds()
        training = self.config.training
        min_validations = training.average if training.weights == "average" else 1
        max_validations = max(MAX_VALIDATIONS, min_validations)
        total = min(max(VALIDATION_SHARE * seconds, min_validations * validation), max_validations * validation)
        training_seconds = max(seconds - total, 0.0)
        self._choose_batch(training_seconds)
        self._choose_objective(training_seconds)
        self._choose_embeddings(training_seconds)
        self._choose_updates(max(training_seconds - self.counting_seconds, 0.0))
        self._refuse_short_run(seconds)
        updates = self.config.training.max_updates
        self._choose_dropout(self._epochs(updates) * self._predictions)
        self._choose_schedule(updates)
        interval = max(1, math.ceil(updates / max(min_validations, int(total / validation))))
        reason = f"{math.ceil(updates / interval)} of them, which take about {validation:,.0f} s each"
        self._set("training.validate_every", interval, reason)
        self._set("training.patience", 0, "the learning rate falls to zero at the end; the best weights are kept")

    def _set(self, key: str, value: SettingValue, reason: str) -> None:
        """Choose the value of one setting unless the user has given it."""
        if not self.resolved.is_given(key):
            self._record(Decision(key, value, {key: value}, reason))

    def _record(self, decision: Decision) -> None:
        self.decisions.append(decision)
        try:
            self.resolved = self.resolved.with_values(decision.settings, "chosen")
        except InputError as error:
            raise InputError(
                f"training.minutes chose {decision.name}={decision.value}, which does not fit settings that you gave: "
                f"{error}. Change those, or also set {decision.name}"
            ) from None

    def _choose_preset(self, size: ModelSize, reason: str) -> None:
        preset = self.presets[size.preset].model_dump()
        settings = {key: preset[key.partition(".")[2]] for key in SIZE_KEYS if not self.resolved.is_given(key)}
        self._record(Decision("model", size.preset, settings, reason))
        self._choose_vocabulary(size)

    def _choose_vocabulary(self, size: ModelSize) -> None:
        """Choose the size of the vocabulary unless a character tokenizer or an existing one is used."""
        if self.config.training.init_from or self.config.tokenizer.reuse or self.config.tokenizer.kind == "char":
            return
        pairs, words, data = self.corpus.pairs, self.corpus.distinct_words, self.config.data
        has_many = has_many_characters(data.source_language) or has_many_characters(data.target_language)
        tokens = next((tokens for limit, tokens in SMALL_VOCABULARIES if pairs < limit), size.vocabulary_size)
        reason = f"usual for {pairs:,} pairs"
        if tokens < size.vocabulary_size and has_many:
            tokens, reason = size.vocabulary_size, "a language with many characters needs a token for each"
        if words is not None and tokens > MIN_WORD_VOCABULARY + words // 2:
            tokens, reason = MIN_WORD_VOCABULARY + words // 2, f"there are only {words:,} different words"
        self._set("tokenizer.vocabulary_size", tokens, reason)

    def _measure_speed(self) -> None:
        self.speed = self.measure(self.config.model, self.config.tokenizer.vocabulary_size)

    def _choose_batch(self, training_seconds: float) -> None:
        batch = 1024 if self.corpus.pairs <= SMALL_CORPUS_PAIRS else 1536
        reason = "small batches learn more from as many tokens"
        while batch < MAX_BATCH_TOKENS and training_seconds / self._update_seconds(batch, 1) > MAX_UPDATES:
            batch = min(2 * batch, MAX_BATCH_TOKENS)
            reason = f"smaller ones would make more than {MAX_UPDATES:,} updates in this time"
        self._set("training.batch_tokens", batch, reason)

    def _choose_objective(self, training_seconds: float) -> None:
        epochs = self._epochs(self._expected_updates(training_seconds, 1))
        if self.resolved.is_given("model.dropout") and self.config.model.dropout == 0:
            objective, reason = "cross_entropy", "R-Drop needs dropout, and model.dropout=0 is given"
        elif epochs < MIN_R_DROP_EPOCHS:
            objective, reason = "cross_entropy", f"R-Drop pays from {MIN_R_DROP_EPOCHS} epochs on"
        else:
            objective = "r_drop"
            reason = f"there is time for {epochs:,.0f} epochs; R-Drop makes half as many, and learns more"
        self._set("training.objective", objective, reason)

    def _choose_embeddings(self, training_seconds: float) -> None:
        """Choose the initialization of embeddings, and set ``counting_seconds``."""
        corpus, config = self.corpus, self.config
        if config.training.init_from:
            return
        source_tokens = estimated_tokens(corpus.source_characters, config.data.source_language)
        tokens_per_pair = source_tokens + self._target_tokens / corpus.pairs
        tokens = min(MAX_TOKENS, min(MAX_PAIRS, corpus.pairs) * tokens_per_pair)
        counting = COUNTING_SECONDS_PER_FEATURE * tokens * config.model.width
        updates = self._expected_updates(training_seconds, self._predictions)
        value = "random"
        if updates < MIN_CO_OCCURRENCE_UPDATES:
            reason = f"counting was not measured for fewer than {MIN_CO_OCCURRENCE_UPDATES} updates"
        elif self._epochs(updates) > MAX_CO_OCCURRENCE_EPOCHS:
            reason = f"in more than {MAX_CO_OCCURRENCE_EPOCHS} epochs, random embeddings learn the same"
        elif counting > SAVED_UPDATE_SHARE * updates * self._update_seconds():
            reason = f"counting takes about {counting:,.0f} s, more than it saves"
        else:
            value, reason = "co_occurrence", f"counting takes about {counting:,.0f} s, and a short run saves more"
        self._set("training.initial_embeddings", value, reason)
        if self.config.training.initial_embeddings == "co_occurrence":
            self.counting_seconds = counting

    def _choose_updates(self, training_seconds: float) -> None:
        """Choose the number of updates: as many as fit in the time, at most MAX_EPOCHS epochs."""
        seconds = self._update_seconds()
        updates = int(training_seconds / seconds)
        limit = max(MIN_UPDATE_LIMIT, int(MAX_EPOCHS / self._predictions / self._epochs(1)))
        epochs = self._epochs(min(updates, limit))
        shown_epochs = f"{_format_count(epochs)} epochs"
        if updates <= limit:
            reason = (
                f"{training_seconds / 60:,.1f} minutes of updates, {seconds:.3f} s each; preparation, validation and "
                f"test take the rest. {shown_epochs}"
            )
        else:
            most = "the most that were tried" if limit == MIN_UPDATE_LIMIT else shown_epochs
            reason = f"{most}; more was not measured on a corpus of this size; {limit * seconds / 60:,.0f} minutes"
        self._set("training.max_updates", max(1, min(updates, limit)), reason)

    def _refuse_short_run(self, seconds: float) -> None:
        """Raise InputError if ``seconds``, the time left for training, do not suffice for MIN_UPDATES."""
        training = self.config.training
        assert training.minutes is not None
        if self.resolved.is_given("training.max_updates") or training.max_updates >= MIN_UPDATES:
            return
        overhead = 60 * training.minutes - seconds + self.counting_seconds
        stages = "preparation, counting and test" if self.counting_seconds else "preparation and test"
        needed = overhead + MIN_UPDATES * self._update_seconds() + self._validation_seconds()
        raise InputError(
            f"training.minutes={training.minutes:g} leaves no time for training: {stages} take about "
            f"{overhead / 60:.1f} minutes here; set training.minutes={math.ceil(2 * needed / 60 + 1)} or more"
        )

    def _choose_dropout(self, predictions: float) -> None:
        """Choose the dropout, given how often the run predicts each token of the corpus."""
        dropout = next(rate for limit, rate in DROPOUT if predictions <= limit)
        reason = f"every token is predicted {_format_count(predictions)} times"
        if not is_transformer(self.config.model) and dropout > MAX_LSTM_DROPOUT:
            dropout, reason = MAX_LSTM_DROPOUT, "more does not help an LSTM"
        if dropout == 0:
            reason += ": the model cannot overfit"
            if self.config.training.objective == "r_drop":
                dropout, reason = DROPOUT[1][1], "R-Drop compares predictions under two dropouts"
        self._set("model.dropout", dropout, reason)

    def _choose_schedule(self, updates: int) -> None:
        """Choose the learning rate and the warm-up, given the number of updates."""
        model, optimizer = self.config.model, self.config.training.optimizer
        transformer = is_transformer(model)
        sizes = (size for size in MODEL_SIZES if transformer and self.presets[size.preset].width == model.width)
        rate, reason = next(sizes, MODEL_SIZES[1]).learning_rate, "short runs take large steps"
        if transformer and optimizer.kind == "adamw":
            rate, reason = min(MAX_ADAMW_LEARNING_RATE, rate), "for a Transformer with AdamW"
        elif updates >= LONG_RUN_UPDATES:
            rate, reason = 0.75 * rate, f"{LONG_RUN_UPDATES:,} updates or more take smaller steps"
        self._set("training.optimizer.learning_rate", rate, reason)
        warmup = min(updates // WARMUP_DIVISOR, MAX_WARMUP)
        self._set("training.schedule.warmup", warmup, f"a twelfth of the updates, at most {MAX_WARMUP}")

    def _seconds_left(self) -> float:
        """Estimate the time for the initialization of embeddings, updates and validations."""
        minutes = self.config.training.minutes
        assert minutes is not None
        return 60 * minutes - self.elapsed() - overhead_seconds(self.corpus, self.speed)

    @property
    def _target_tokens(self) -> float:
        """The estimated number of target tokens in an epoch."""
        return self.corpus.pairs * estimated_tokens(self.corpus.target_characters, self.config.data.target_language)

    @property
    def _predictions(self) -> int:
        """The number of times that an update predicts each token of its batch."""
        return 1 if self.config.training.objective == "cross_entropy" else 2

    def _epochs(self, updates: float) -> float:
        """Convert a number of updates to epochs."""
        training = self.config.training
        return updates * training.batch_tokens * training.accumulate / self._target_tokens

    def _expected_updates(self, training_seconds: float, predictions: int) -> float:
        """Return ``training.max_updates`` if the user gave it, else the updates that take that long."""
        training = self.config.training
        if self.resolved.is_given("training.max_updates"):
            return training.max_updates
        return training_seconds / self._update_seconds(training.batch_tokens, predictions)

    def _update_seconds(self, batch_tokens: int | None = None, predictions: int | None = None) -> float:
        """Estimate the seconds of an update. The defaults are the chosen batch size and objective."""
        training = self.config.training
        tokens = training.accumulate * (batch_tokens or training.batch_tokens) * (predictions or self._predictions)
        return UPDATE_OVERHEAD_FACTOR * (self.speed.update + tokens * self.speed.token)

    def _validation_seconds(self) -> float:
        """Estimate the seconds of a validation and its checkpoints."""
        corpus, speed = self.corpus, self.speed
        tokens = self._target_tokens / corpus.pairs * corpus.valid_pairs
        translated = min(corpus.valid_pairs, self.config.training.valid_bleu_pairs)
        return tokens * speed.token * FORWARD_TIME_SHARE + translated * speed.greedy + CHECKPOINT_SECONDS


def _format_count(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{number:.0f}"
