"""``choice.json``: the settings that ``training.minutes`` chose for a run, with the facts that they follow from."""

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
from mt.config.resolved import Resolved
from mt.core.columns import numbers
from mt.core.device import choose_precision, precision_name, processor_name
from mt.core.errors import InputError, damaged_file, wrong_keys
from mt.core.json_file import read_json, write_json
from mt.core.wording import format_value
from mt.data.corpus import Corpus, evenly_spaced
from mt.distributed.workers import Workers
from mt.storage.run_folder import CHOICE, flat_config
from mt.training.time_budget.calibration import measure
from mt.training.time_budget.decision import CHOSEN_KEYS, Decision, Value
from mt.training.time_budget.estimates import CorpusFacts, Speed
from mt.training.time_budget.rules import choose

logger = logging.getLogger(__name__)

SAMPLED_PAIRS = 20_000
"""Training pairs whose lengths and words are counted."""
IMPORT_SECONDS = 4.0
"""Time until a command has imported PyTorch."""
REASON_COLUMN = 54
"""The column of a table in which the reasons begin."""


@dataclass(frozen=True)
class RecordedChoice:
    """The content of choice.json."""

    minutes: float
    corpus: CorpusFacts
    machine: dict[str, str | int]
    speed: Speed
    decisions: list[Decision]

    @property
    def settings(self) -> dict[str, Value]:
        """The value of every chosen setting."""
        return {key: value for decision in self.decisions for key, value in decision.settings.items()}

    def write(self, run: Path) -> None:
        write_json(run / CHOICE, dataclasses.asdict(self))

    @classmethod
    def read(cls, run: Path) -> "RecordedChoice":
        """Read the choice of a run, or its file. Raise InputError if there is none, or if it is damaged."""
        file = run / CHOICE if run.is_dir() else run
        if not file.is_file():
            raise InputError(f"{file}: no such file; a run that was begun with training.minutes has one")
        try:
            return TypeAdapter(cls).validate_python(read_json(file, "minutes", "decisions"))
        except ValidationError as error:
            wrong = wrong_keys(".".join(map(str, details["loc"])) for details in error.errors())
            raise damaged_file(file, wrong) from None

    def applied_to(self, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
        """Give the open settings of another config these values. Raise InputError if it asks for other minutes."""
        minutes = resolved.config.training.minutes
        if minutes is not None and minutes != self.minutes:
            raise InputError(
                f"training.minutes={minutes:g}: the settings were chosen for {self.minutes:g} minutes; leave this out, "
                f"or set training.minutes={self.minutes:g}"
            )
        own = flat_config(resolved.config)  # another architecture has other sizes
        values = {key: value for key, value in self.settings.items() if key in own and not resolved.is_given(key)}
        return resolved.with_values({"training.minutes": self.minutes, **values}, "chosen")

    def table(self, resolved: Resolved[TrainConfig]) -> str:
        """Format the choice for people: each setting with its value and the reason. Given settings are shown as
        given."""
        rows = [
            (decision.name, format_value(decision.value), decision.reason)
            for decision in self.decisions
            if any(not resolved.is_given(key) for key in decision.settings)
        ]
        given = "given, or follows from training.init_from" if resolved.config.training.init_from else "given"
        rows += [
            (key, format_value(value), given)
            for key, value in flat_config(resolved.config).items()
            if key in CHOSEN_KEYS and resolved.is_given(key)
        ]
        lines = [f"{'setting':<34}{'value':<{REASON_COLUMN - 34}}reason"]
        for name, value, reason in rows:
            head = f"{name:<34}{value:<{REASON_COLUMN - 34}}"
            lines += textwrap.wrap(head + reason, 120, subsequent_indent=" " * REASON_COLUMN)
        return "\n".join(lines)


def corpus_facts(corpus: Corpus) -> CorpusFacts:
    """Count the facts about a corpus that the rules use."""
    sample = evenly_spaced(corpus.train, SAMPLED_PAIRS)
    sources, targets = list(sample["source"]), list(sample["target"])
    words = {word for line in [*sources, *targets] for word in line.split()}
    return CorpusFacts(
        pairs=max(1, round(float(np.sum(numbers(corpus.train, "weight"))))),
        source_characters=round(float(np.mean([len(line) for line in sources])), 2),
        target_characters=round(float(np.mean([len(line) for line in targets])), 2),
        distinct_words=None if len(sample) < len(corpus.train) else len(words),
        valid_pairs=len(corpus.valid),
        test_pairs=len(corpus.test),
    )


def make_choice(
    resolved: Resolved[TrainConfig], corpus: Corpus, workers: Workers, started: float
) -> tuple[Resolved[TrainConfig], RecordedChoice]:
    """Choose the open settings of a new run for ``training.minutes``, or take the choice of another run.

    Args:
        resolved: The config before the choice.
        corpus: The corpus, after cleaning.
        workers: All of them have to call this.
        started: When the run began, by ``time.perf_counter``.

    Raises:
        InputError: The minutes do not suffice.
    """
    config = resolved.config
    if config.choice:
        recorded = workers.run_on_leader(lambda: RecordedChoice.read(Path(str(config.choice))))
        return recorded.applied_to(resolved), recorded
    assert config.training.minutes is not None
    facts = workers.run_on_leader(lambda: corpus_facts(corpus))
    logger.info("measuring how fast this machine is")
    chosen, decisions, speed = choose(
        resolved,
        facts,
        model_presets("transformer"),
        lambda model, vocabulary: measure(config, facts, workers, model, vocabulary),
        # Every worker has to come to the same decisions.
        lambda: workers.run_on_leader(lambda: time.perf_counter() - started + IMPORT_SECONDS),
    )
    machine: dict[str, str | int] = {
        "processor": (
            torch.cuda.get_device_name(workers.device) if workers.device.type == "cuda" else processor_name()
        ),
        "precision": precision_name(choose_precision(config.training.precision, workers.device)),
        "workers": workers.size,
        "threads": torch.get_num_threads(),
    }
    return chosen, RecordedChoice(config.training.minutes, facts, machine, speed, decisions)
