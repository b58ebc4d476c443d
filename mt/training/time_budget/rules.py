"""The rules of ``training.minutes``, which chooses the settings of a run for a number of minutes.

``choose`` is a function of the config, the corpus, the measured speed and the remaining seconds.
It reads no clock, no file and no random number, so equal arguments give equal choices. A setting that the user gave is
never chosen. Where a figure comes from a measurement, the comment names the table of docs/lab-notebook.md; every other
figure is a guess, and docs/time-budget.md says so.
"""

import math
from collections.abc import Callable, Mapping

from mt.config import ModelConfig, TrainConfig
from mt.config.resolved import Resolved
from mt.core.errors import InputError
from mt.core.language import has_many_characters
from mt.training.initial_embeddings import MAX_PAIRS, MAX_TOKENS
from mt.training.time_budget import model_sizes
from mt.training.time_budget.decision import Decision, Value
from mt.training.time_budget.estimates import CorpusFacts, Speed, overhead_seconds, tokens_of_text
from mt.training.time_budget.model_sizes import SIZE_KEYS, SIZES, SMALL_VOCABULARIES, TIMES_AS_SLOW, is_transformer

Measure = Callable[[ModelConfig, int], Speed]
"""Measures a model with a vocabulary of the given size."""

MIN_WORD_VOCABULARY = 500
"""A vocabulary has at most this many tokens and half of the distinct words: SentencePiece refuses more than the text
has."""
FEW_PAIRS = 50_000
"""Up to here a batch has 1,024 tokens, as it was tuned for Multi30k, and above 1,536, as for Tatoeba."""
MAX_UPDATES = 40_000
"""Updates of the longest measured run. With time for more, batches grow, up to MAX_BATCH_TOKENS."""
MAX_BATCH_TOKENS = 25_000
"""Tokens in an update of Vaswani et al. 2017."""
MAX_EPOCHS = 200
"""Upper limit in epochs. An epoch of R-Drop counts twice, here and below. "Multi30k" still gained with 168."""
MIN_UPDATE_LIMIT = 5_000
"""Lower limit of the updates that MAX_EPOCHS allows, for very small corpora."""

DROPOUT = ((2, 0.0), (8, 0.05), (40, 0.1), (math.inf, 0.2))
"""Dropout by passes over the pairs. 2: none gained 3 BLEU on the default corpus. 6 and 8: "Multi30k" (36.5 BLEU with
0.05, 35.8 with 0.1). 21: "What helps on little data" (R-Drop with 0.1); 42 and more: 0.2."""
LSTM_DROPOUT = 0.1
"""Maximum dropout of an LSTM: 0.2 did not help."""
CONSISTENCY_EPOCHS = 20
"""From here on R-Drop is taken: 39.8 BLEU after 5,000 updates, 38.5 after 10,000 without it, in equal time ("What helps
on little data", "Multi30k"). It predicts every token twice, so it makes half as many passes."""
COUNTED_UPDATES, COUNTED_EPOCHS = 100, 1.5
"""Use co-occurrence initialisation from this many updates up to this many epochs, if it takes no longer than it saves:
30.2 BLEU instead of 28.8 after one epoch of Multi30k, and an LSTM's 34.0 instead of 32.5 after 1.3 of Tatoeba
("Co-occurrence embeddings" in docs/lab-notebook.md)."""
COUNTING_UPDATE_SHARE = 1 / 8
"""Share of the updates that co-occurrence embeddings save. Random ones needed 12 to 29 % more updates for the same
validation loss."""
COUNTING_SECONDS_PER_FEATURE = 45e-9
"""Seconds of counting for each token and embedding feature (measured: 39 and 54 ns)."""
LONG_RUN_UPDATES = 10_000
"""Longer runs have three quarters of the learning rate (3e-3 instead of 4e-3 in experiment=multi30k_en_de)."""
ADAMW_RATE = 1.5e-3
"""Maximum learning rate of a Transformer with AdamW ("Optimizers")."""
WARMUP_DIVISOR, MAX_WARMUP = 12, 200
"""Warm up for a twelfth of the updates, as in the default (100 of 1,200), and at most as long as in 40,000 updates of
Multi30k."""

UPDATE_OVERHEAD_FACTOR = 1.08
"""Time of an update relative to the measured one: its batch also has to be made (docs/lab-notebook.md)."""
VALIDATION_SHARE = 0.08
"""Share of the training time for validation, as far as 1 to MAX_VALIDATIONS validations allow it."""
MAX_VALIDATIONS = 20
FORWARD_SHARE = 1 / 3
"""Time of a validation token relative to a training token: there is no backward pass."""
CHECKPOINT_SECONDS = 0.5
"""Time for the checkpoints around a validation."""
MIN_UPDATES = 50
"""Runs with time for fewer updates are refused."""


class Choice:
    """Makes the decisions of one run, one after another. Later ones depend on earlier ones."""

    def __init__(self, resolved: Resolved[TrainConfig], facts: CorpusFacts, presets: Mapping[str, ModelConfig]) -> None:
        """
        Args:
            resolved: The config before the choice. What is given there is not chosen.
            facts: The corpus.
            presets: The models in conf/model, by name.
        """
        self.resolved = resolved
        self.facts = facts
        self.presets = presets
        self.decisions: list[Decision] = []
        self.counting = 0.0
        """Seconds that the first embeddings take."""

    @property
    def config(self) -> TrainConfig:
        return self.resolved.config

    def set(self, name: str, value: Value, reason: str) -> None:
        """Choose the value of one setting unless the user has given it."""
        if not self.resolved.is_given(name):
            self._decide(Decision(name, value, {name: value}, reason))

    def _decide(self, decision: Decision) -> None:
        self.decisions.append(decision)
        try:
            self.resolved = self.resolved.with_values(decision.settings, "chosen")
        except InputError as error:
            raise InputError(f"what training.minutes chose does not go with what was given: {error}") from None

    def choose_size(self, measure: Measure, seconds: Callable[[Speed], float]) -> Speed:
        """Choose the size of the model and of the vocabulary, and returns the speed of the model.

        Args:
            measure: Measures a model.
            seconds: Returns the time for training with a model of that speed.
        """
        asked, pairs = self.resolved, self.facts.pairs
        is_open = is_transformer(self.config.model) and not asked.is_given("model.width")
        if not is_open or self.config.training.init_from:
            self._choose_vocabulary(SIZES[1])
            return measure(self.config.model, self.config.tokenizer.vocabulary_size)
        fitting = [size for size in SIZES if size.fewest_pairs <= pairs]
        size = next(size for size in reversed(fitting) if not size.fewest_tokens)
        self._take_size(size, f"{pairs:,} training pairs")
        speed = measure(self.config.model, self.config.tokenizer.vocabulary_size)
        tokens = seconds(speed) / (speed.update / MAX_BATCH_TOKENS + speed.token)
        larger = fitting[fitting.index(size) + 1 :]
        affordable = [size for n, size in enumerate(larger, 1) if tokens / TIMES_AS_SLOW**n >= size.fewest_tokens]
        if not affordable:
            return speed
        self.resolved, self.decisions = asked, []
        enough = f"time for more than {affordable[-1].fewest_tokens / 1e6:,.0f} million target tokens"
        self._take_size(affordable[-1], f"{pairs:,} training pairs, and {enough}")
        return measure(self.config.model, self.config.tokenizer.vocabulary_size)

    def _take_size(self, size: model_sizes.Size, reason: str) -> None:
        preset = self.presets[size.preset].model_dump()
        settings = {key: preset[key.partition(".")[2]] for key in SIZE_KEYS if not self.resolved.is_given(key)}
        self._decide(Decision("model", size.preset, settings, reason))
        self._choose_vocabulary(size)

    def _choose_vocabulary(self, size: model_sizes.Size) -> None:
        if self.config.training.init_from or self.config.tokenizer.reuse or self.config.tokenizer.kind == "char":
            return
        facts, data = self.facts, self.config.data
        tokens = next((few for below, few in SMALL_VOCABULARIES if facts.pairs < below), size.vocabulary)
        reason = f"usual for {facts.pairs:,} pairs"
        if tokens < size.vocabulary and any(map(has_many_characters, (data.source_language, data.target_language))):
            tokens, reason = size.vocabulary, "a language with many characters needs a token for each"
        words = facts.distinct_words
        if words is not None and tokens > (most := MIN_WORD_VOCABULARY + words // 2):
            tokens, reason = most, f"there are only {words:,} different words"
        self.set("tokenizer.vocabulary_size", tokens, reason)

    def choose_length(self, speed: Speed, seconds: float) -> None:
        """Choose the length of the run and the settings that depend on it.

        Args:
            speed: Of the chosen model.
            seconds: For the first embeddings, updates and validations.
        """
        validation = self._validation_seconds(speed)
        fewest = self.config.training.average if self.config.training.weights == "average" else 1
        most = max(MAX_VALIDATIONS, fewest)
        validating = min(max(VALIDATION_SHARE * seconds, fewest * validation), most * validation)
        updating = max(seconds - validating, 0.0)
        self._choose_batch(speed, updating)
        self._choose_objective(speed, updating)
        self._choose_embeddings(speed, updating)
        self._choose_updates(speed, max(updating - self.counting, 0.0))
        self._refuse_short_run(speed, seconds)
        updates = self.config.training.max_updates
        self._choose_dropout(self._passes(updates) * self._predictions)
        self._choose_schedule(updates)
        every = max(1, math.ceil(updates / max(fewest, int(validating / validation))))
        why = f"{math.ceil(updates / every)} of them, which take about {validation:,.0f} s each"
        self.set("training.validate_every", every, why)
        self.set("training.patience", 0, "the learning rate falls to zero at the end; the best weights are kept anyway")

    def _refuse_short_run(self, speed: Speed, seconds: float) -> None:
        """Raise InputError if the minutes do not suffice for MIN_UPDATES."""
        minutes = self.config.training.minutes
        if minutes is None or self.resolved.is_given("training.max_updates"):
            return
        if self.config.training.max_updates < MIN_UPDATES:
            overhead = 60 * minutes - seconds + self.counting
            steps = "preparation, counting and test" if self.counting else "preparation and test"
            needed = overhead + self.seconds_of(MIN_UPDATES, speed)
            raise InputError(
                f"training.minutes={minutes:g} leaves no time for training: {steps} take about "
                f"{overhead / 60:.1f} minutes here; take training.minutes={math.ceil(2 * needed / 60 + 1)} or more"
            )

    @property
    def _target_tokens(self) -> float:
        """How many target tokens an epoch has: an estimate, as there is no tokenizer yet."""
        return self.facts.pairs * tokens_of_text(self.facts.target_characters, self.config.data.target_language)

    @property
    def _predictions(self) -> int:
        """How often an update predicts each token of its batch."""
        return 1 if self.config.training.objective == "cross_entropy" else 2

    def _passes(self, updates: float) -> float:
        """Return how many passes over the pairs so many updates are."""
        training = self.config.training
        return updates * training.batch_tokens * training.accumulate / self._target_tokens

    def _update_seconds(self, speed: Speed, batch: int, predictions: int) -> float:
        return UPDATE_OVERHEAD_FACTOR * (
            speed.update + self.config.training.accumulate * batch * speed.token * predictions
        )

    def seconds_of(self, updates: int, speed: Speed) -> float:
        """Return how long so many updates and a validation take with the chosen settings."""
        each = self._update_seconds(speed, self.config.training.batch_tokens, self._predictions)
        return updates * each + self._validation_seconds(speed)

    def _validation_seconds(self, speed: Speed) -> float:
        facts = self.facts
        tokens = self._target_tokens / facts.pairs * facts.valid_pairs
        translated = min(facts.valid_pairs, self.config.training.valid_bleu_pairs)
        return tokens * speed.token * FORWARD_SHARE + translated * speed.greedy + CHECKPOINT_SECONDS

    def _choose_batch(self, speed: Speed, updating: float) -> None:
        batch = 1024 if self.facts.pairs <= FEW_PAIRS else 1536
        why = "small batches learn more from as many tokens"
        while batch < MAX_BATCH_TOKENS and updating / self._update_seconds(speed, batch, 1) > MAX_UPDATES:
            batch = min(2 * batch, MAX_BATCH_TOKENS)
            why = f"smaller ones would make more than {MAX_UPDATES:,} updates in this time"
        self.set("training.batch_tokens", batch, why)

    def _choose_objective(self, speed: Speed, updating: float) -> None:
        training = self.config.training
        updates = updating / self._update_seconds(speed, training.batch_tokens, 1)
        passes = self._passes(training.max_updates if self.resolved.is_given("training.max_updates") else updates)
        if self.resolved.is_given("model.dropout") and self.config.model.dropout == 0:
            objective, why = "cross_entropy", "R-Drop needs dropout, and model.dropout=0 is given"
        elif passes < CONSISTENCY_EPOCHS:
            objective, why = "cross_entropy", f"R-Drop pays from {CONSISTENCY_EPOCHS} passes over the pairs on"
        else:
            objective, why = (
                "r_drop",
                f"there is time for {passes:,.0f} passes; R-Drop makes half as many, and learns more",
            )
        self.set("training.objective", objective, why)

    def _choose_embeddings(self, speed: Speed, updating: float) -> None:
        """Choose the initialisation of embeddings. Set ``counting`` to the seconds that it takes."""
        facts, data, training = self.facts, self.config.data, self.config.training
        if training.init_from:
            return
        lengths = tokens_of_text(facts.source_characters, data.source_language) + self._target_tokens / facts.pairs
        tokens = min(MAX_TOKENS, min(MAX_PAIRS, facts.pairs) * lengths)
        counting = COUNTING_SECONDS_PER_FEATURE * tokens * self.config.model.width
        each = self._update_seconds(speed, training.batch_tokens, self._predictions)
        updates = training.max_updates if self.resolved.is_given("training.max_updates") else updating / each
        value = "random"
        if updates < COUNTED_UPDATES:
            why = f"counting was not measured for fewer than {COUNTED_UPDATES} updates"
        elif self._passes(updates) > COUNTED_EPOCHS:
            why = f"in more than {COUNTED_EPOCHS} passes over the pairs a model learns by itself what counting tells"
        elif counting > COUNTING_UPDATE_SHARE * updates * each:
            why = f"counting takes about {counting:,.0f} s, more than it saves"
        else:
            value, why = "co_occurrence", f"counting takes about {counting:,.0f} s, and a short run saves more"
        self.set("training.initial_embeddings", value, why)
        if self.config.training.initial_embeddings == "co_occurrence":
            self.counting = counting

    def _choose_updates(self, speed: Speed, updating: float) -> None:
        training = self.config.training
        each = self._update_seconds(speed, training.batch_tokens, self._predictions)
        updates = int(updating / each)
        most = max(MIN_UPDATE_LIMIT, int(MAX_EPOCHS / self._predictions / self._passes(1)))
        if updates <= most:
            why = (
                f"{updating / 60:,.1f} minutes of updates, {each:.3f} s each; preparation, validation and test take "
                f"the rest. {_shown(self._passes(updates))} passes over the pairs"
            )
        else:
            updates = most
            passes = _shown(self._passes(most))
            limit = "as many as were ever tried" if most == MIN_UPDATE_LIMIT else f"{passes} passes"
            why = f"{limit}, more was not measured on a corpus of this size; {most * each / 60:,.0f} minutes"
        self.set("training.max_updates", max(1, updates), why)

    def _choose_dropout(self, passes: float) -> None:
        dropout = next(rate for most, rate in DROPOUT if passes <= most)
        reason = f"every token is predicted {_shown(passes)} times"
        if not is_transformer(self.config.model) and dropout > LSTM_DROPOUT:
            dropout, reason = LSTM_DROPOUT, "more does not help an LSTM"
        if dropout == 0:
            reason += ": the model has no chance to learn pairs by heart"
            if self.config.training.objective == "r_drop":
                dropout, reason = DROPOUT[1][1], "R-Drop compares predictions under two dropouts"
        self.set("model.dropout", dropout, reason)

    def _choose_schedule(self, updates: int) -> None:
        config, training = self.config, self.config.training
        transformer = is_transformer(config.model)
        fitting = [size for size in SIZES if transformer and self.presets[size.preset].width == config.model.width]
        size = fitting[0] if fitting else SIZES[1]
        if transformer and training.optimizer.kind == "adamw":
            rate, reason = min(ADAMW_RATE, size.rate), "for a Transformer that AdamW moves"
        else:
            rate, reason = size.rate, "short runs take large steps"
            if updates >= LONG_RUN_UPDATES:
                rate, reason = 0.75 * rate, f"{LONG_RUN_UPDATES:,} updates or more take smaller steps"
        self.set("training.optimizer.learning_rate", rate, reason)
        warmup = min(updates // WARMUP_DIVISOR, MAX_WARMUP)
        self.set("training.schedule.warmup", warmup, f"a twelfth of the updates, at most {MAX_WARMUP}")


def choose(
    resolved: Resolved[TrainConfig],
    facts: CorpusFacts,
    presets: Mapping[str, ModelConfig],
    measure: Measure,
    elapsed: Callable[[], float],
) -> tuple[Resolved[TrainConfig], list[Decision], Speed]:
    """Choose the settings of a run that the user has left open, and return the decisions and the model's speed, too.

    Args:
        resolved: The config before the choice, with ``training.minutes``.
        facts: The corpus.
        presets: The models in conf/model, by name.
        measure: Measures the speed of a model with a vocabulary.
        elapsed: Returns the seconds of the run that are over.

    Raises:
        InputError: The minutes do not suffice.
    """
    minutes = resolved.config.training.minutes
    assert minutes is not None
    choice = Choice(resolved, facts, presets)

    def left(speed: Speed) -> float:
        return 60 * minutes - elapsed() - overhead_seconds(facts, speed)

    speed = choice.choose_size(measure, left)
    choice.choose_length(speed, left(speed))
    return choice.resolved, choice.decisions, speed


def _shown(passes: float) -> str:
    return f"{passes:.1f}" if passes < 10 else f"{passes:.0f}"
