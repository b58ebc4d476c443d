"""The choice of a run's settings as a file of the run folder: written once, before the first update, and then read.

``choice.json`` holds what was asked for, what was known of the corpus and of the machine, and each decision with its
reason. A run that goes on takes the decisions from there, so nothing is measured again.
"""

import dataclasses
import logging
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from mt.config import TrainConfig
from mt.config.presets import model_presets
from mt.core.columns import numbers
from mt.core.device import choose_precision, precision_name, processor_name
from mt.core.errors import InputError
from mt.core.json_file import read_json, write_json
from mt.core.wording import format_value
from mt.data.corpus import Corpus, evenly_spaced
from mt.distributed.workers import Workers
from mt.storage.run_folder import CHOICE, MAY_DIFFER_ON_RESUME, flat_config
from mt.training.calibration import measure
from mt.training.choice import RULES, CorpusFacts, Decision, Speed, Value, choose, is_given, with_settings

logger = logging.getLogger(__name__)

OPEN = "auto"
"""Stands in ``asked`` for a setting that the user left open and the choice decided."""
PAIRS_LOOKED_AT = 20_000
"""Training pairs whose lengths and words are looked at."""
NOT_ASKED = ("seed", *MAY_DIFFER_ON_RESUME)
"""Settings that the question does not depend on. Where it runs is in ``machine``."""
STARTING = 4.0
"""Seconds until a command has imported PyTorch."""
REASONS_BEGIN = 54
"""The column of a table in which the reasons begin."""


@dataclass(frozen=True)
class Question:
    """What a choice is made from, but for the measured speed. Equal questions get equal answers."""

    minutes: float
    asked: dict[str, object]
    """Every setting before the choice; OPEN for those that it decides."""
    corpus: CorpusFacts
    machine: dict[str, str | int]
    rules: int = RULES


@dataclass(frozen=True)
class RecordedChoice:
    """The content of choice.json."""

    question: Question
    speed: Speed
    decisions: list[Decision]

    @property
    def settings(self) -> dict[str, Value]:
        """Every setting that was decided on, with its value."""
        return {key: value for decision in self.decisions for key, value in decision.settings.items()}

    def write(self, run: Path) -> None:
        write_json(run / CHOICE, dataclasses.asdict(self))

    @classmethod
    def read(cls, path: Path) -> "RecordedChoice":
        """Reads choice.json, or that of a run folder. Raises InputError if there is none, or if it is damaged."""
        file = path / CHOICE if path.is_dir() else path
        if not file.is_file():
            raise InputError(f"{file}: no such file; a run that was begun with training.minutes has one")
        try:
            return TypeAdapter(cls).validate_python(read_json(file, "question", "decisions"))
        except ValidationError as error:
            wrong = ", ".join(dict.fromkeys(".".join(map(str, one["loc"])) for one in error.errors()))
            raise InputError(f"{file}: damaged or of another version: {wrong}") from None

    def applied(self, config: TrainConfig) -> TrainConfig:
        """Returns the config with every decision on a setting that the user did not give.

        Raises:
            InputError: The settings contradict each other, or training.minutes is not that of this choice.
        """
        minutes = config.training.minutes
        if minutes is not None and minutes != self.question.minutes:
            raise InputError(
                f"training.minutes={minutes:g}: the settings were chosen for "
                f"{self.question.minutes:g} minutes. Give a new run a name of its own (name=…), or set "
                f"training.minutes={self.question.minutes:g}"
            )
        complete = with_settings(config, {"training.minutes": self.question.minutes, **self._open(config)})
        try:
            TrainConfig.model_validate(complete.model_dump())
        except ValidationError as error:
            said = "; ".join(str(one.get("ctx", {}).get("error", one["msg"])) for one in error.errors())
            raise InputError(f"what training.minutes chose does not go with what was given: {said}") from None
        return complete

    def _open(self, config: TrainConfig) -> dict[str, Value]:
        """Returns what was decided of the settings that a config leaves open. Another architecture than that of the
        choice lacks some of the sizes, and has its own."""
        there = flat_config(config)
        return {key: value for key, value in self.settings.items() if key in there and not is_given(config, key)}

    def table(self, config: TrainConfig) -> str:
        """Returns the choice for people: each setting with its value and the reason.

        Args:
            config: What was asked for. Settings that it gives are shown as given.
        """
        rows = [
            (decision.name, format_value(decision.value), decision.reason)
            for decision in self.decisions
            if decision.settings.keys() & self._open(config).keys()
        ]
        given = "given, or follows from training.init_from" if config.training.init_from else "given"
        rows += [
            (key, format_value(value), given)
            for key, value in flat_config(config).items()
            if key in DECIDED and is_given(config, key)
        ]
        lines = [f"{'setting':<34}{'value':<{REASONS_BEGIN - 34}}reason"]
        for name, value, reason in rows:
            head = f"{name:<34}{value:<{REASONS_BEGIN - 34}}"
            lines += textwrap.wrap(head + reason, 120, subsequent_indent=" " * REASONS_BEGIN)
        return "\n".join(lines)


DECIDED = (
    "model.width", "model.feed_forward", "model.heads", "model.encoder_layers", "model.decoder_layers",
    "tokenizer.vocabulary_size", "training.batch_tokens", "training.objective", "training.max_updates",
    "model.dropout", "training.optimizer.learning_rate", "training.schedule.warmup", "training.validate_every",
    "training.patience", "training.initial_embeddings",
)  # fmt: skip
"""Every setting that a choice may decide on."""


def question_of(config: TrainConfig, corpus: CorpusFacts, machine: dict[str, str | int]) -> Question:
    """Returns the question that a config with training.minutes asks."""
    assert config.training.minutes is not None
    asked = {
        key: OPEN if key in DECIDED and not is_given(config, key) else value
        for key, value in flat_config(config).items()
        if key not in NOT_ASKED
    }
    return Question(config.training.minutes, asked, corpus, machine)


def corpus_facts(corpus: Corpus) -> CorpusFacts:
    """Returns what the rules know of a corpus."""
    some = evenly_spaced(corpus.train, PAIRS_LOOKED_AT)
    sources, targets = list(some["source"]), list(some["target"])
    words = {word for line in [*sources, *targets] for word in line.split()}
    return CorpusFacts(
        pairs=max(1, round(float(np.sum(numbers(corpus.train, "weight"))))),
        source_characters=round(float(np.mean([len(line) for line in sources])), 2),
        target_characters=round(float(np.mean([len(line) for line in targets])), 2),
        distinct_words=None if len(some) < len(corpus.train) else len(words),
        valid_pairs=len(corpus.valid),
        test_pairs=len(corpus.test),
    )


def same_question(config: TrainConfig, question: Question) -> tuple[Path, RecordedChoice] | None:
    """Returns a choice that was made for the same question, and the folder of its run: this run, if it was stopped
    before its first checkpoint, or one that differs in its seed."""
    for file in sorted(Path(config.runs).glob(f"*/{CHOICE}"), key=lambda file: (file.parent != config.folder, file)):
        try:
            found = RecordedChoice.read(file)
        except InputError as error:
            logger.warning("%s", error)
            continue
        if found.question == question:
            return file.parent, found
    return None


def make_choice(config: TrainConfig, corpus: Corpus, workers: Workers, started: float) -> RecordedChoice:
    """Returns the choice for a new run: that of ``choice=FILE``, one that was made for the same question, or a new one.

    Args:
        config: What is asked for, ``training.minutes`` or ``choice`` among it.
        corpus: The corpus, after cleaning.
        workers: All of them have to call this.
        started: When the run began, by ``time.perf_counter``.

    Raises:
        InputError: The file of ``choice`` cannot be used, or the minutes do not suffice.
    """
    if config.choice:
        file = Path(config.choice)
        return workers.run_on_leader(lambda: RecordedChoice.read(file))
    facts = workers.run_on_leader(lambda: corpus_facts(corpus))
    machine: dict[str, str | int] = {
        "processor": (
            torch.cuda.get_device_name(workers.device) if workers.device.type == "cuda" else processor_name()
        ),
        "precision": precision_name(choose_precision(config.training.precision, workers.device)),
        "workers": workers.size,
        "threads": torch.get_num_threads(),
    }
    question = workers.run_on_leader(lambda: question_of(config, facts, machine))
    if found := workers.run_on_leader(lambda: same_question(config, question)):
        run, recorded = found
        logger.info("%s asked the same, so its choice is taken", run)
        return recorded
    logger.info("measuring how fast this machine is")
    decisions, speed = choose(
        config,
        facts,
        model_presets("transformer"),
        lambda model, vocabulary: measure(config, facts, workers, model, vocabulary),
        # Every worker has to come to the same decisions.
        lambda: workers.run_on_leader(lambda: time.perf_counter() - started + STARTING),
    )
    return RecordedChoice(question, speed, decisions)
