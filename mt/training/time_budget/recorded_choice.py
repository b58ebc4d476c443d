"""``choice.json``: the settings that ``training.minutes`` chose for a run, and the measurements they follow from."""

import dataclasses
import logging
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from mt.config import ModelConfig, TrainConfig
from mt.config.presets import model_presets
from mt.config.resolved import Resolved
from mt.core.columns import numbers
from mt.core.device import choose_precision, precision_name, processor_name
from mt.core.errors import InputError
from mt.core.json_file import read_json, write_json
from mt.core.wording import format_value
from mt.data.corpus import Corpus, evenly_spaced
from mt.distributed.workers import Workers
from mt.storage.run_folder import CHOICE_FILE, flat_config
from mt.storage.validation import validate_recorded
from mt.training.time_budget.calibration import measure_speed
from mt.training.time_budget.decision import CHOSEN_KEYS, Decision, SettingValue
from mt.training.time_budget.estimates import CorpusSize, Speed
from mt.training.time_budget.rules import choose_settings

logger = logging.getLogger(__name__)

SAMPLED_PAIRS = 20_000
"""Training pairs whose lengths and words are counted."""
IMPORT_SECONDS = 4.0
"""Time from the start of a command until it has imported PyTorch."""
VALUE_COLUMN, REASON_COLUMN = 34, 54
"""The columns of the table at which the values and the reasons begin."""


@dataclass(frozen=True)
class RecordedChoice:
    """The content of choice.json: the chosen settings of one run, with corpus, machine and speed."""

    minutes: float
    corpus: CorpusSize
    machine: dict[str, str | int]
    speed: Speed
    decisions: list[Decision]

    @property
    def settings(self) -> dict[str, SettingValue]:
        """The chosen values by key."""
        return {key: value for decision in self.decisions for key, value in decision.settings.items()}

    def write(self, run: Path) -> None:
        """Write choice.json into a run folder."""
        write_json(run / CHOICE_FILE, dataclasses.asdict(self))

    @classmethod
    def read(cls, path: Path) -> "RecordedChoice":
        """Read the choice of a run, given its folder or the file itself.

        Raises:
            InputError: There is no such file, or it is damaged.
        """
        file = path / CHOICE_FILE if path.is_dir() else path
        if not file.is_file():
            raise InputError(
                f"choice={path}: {file} does not exist; set choice to a run that was begun with training.minutes"
            )
        return validate_recorded(file, cls, read_json(file, "minutes", "decisions"))

    def applied_to(self, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
        """Set the open settings of another run's config to the chosen values, and return the config.

        Raises:
            InputError: That config asks for other ``training.minutes``.
        """
        minutes = resolved.config.training.minutes
        if minutes is not None and minutes != self.minutes:
            raise InputError(
                f"training.minutes={minutes:g}: the settings were chosen for {self.minutes:g} minutes; leave this out, "
                f"or set training.minutes={self.minutes:g}"
            )
        own = flat_config(resolved.config)  # another architecture lacks some of the keys
        values = {key: value for key, value in self.settings.items() if key in own and not resolved.is_given(key)}
        return resolved.with_values({"training.minutes": self.minutes, **values}, "chosen")

    def table(self, resolved: Resolved[TrainConfig]) -> str:
        """Format the choice as a table of settings, values and reasons.

        Args:
            resolved: The run's config before or after the choice. Settings that it gives have the reason "given".
        """
        given = "given, or follows from training.init_from" if resolved.config.training.init_from else "given"
        rows = [
            *(
                (decision.name, decision.value, decision.reason)
                for decision in self.decisions
                if not all(map(resolved.is_given, decision.settings))
            ),
            *(
                (key, value, given)
                for key, value in flat_config(resolved.config).items()
                if key in CHOSEN_KEYS and resolved.is_given(key)
            ),
        ]
        lines = []
        for name, value, reason in [("setting", "value", "reason"), *rows]:
            head = f"{name:<{VALUE_COLUMN}}{format_value(value):<{REASON_COLUMN - VALUE_COLUMN}}"
            lines += textwrap.wrap(head + reason, 120, subsequent_indent=" " * REASON_COLUMN)
        return "\n".join(lines)


def corpus_size(corpus: Corpus) -> CorpusSize:
    """Count the pairs of a corpus, and the characters and words of an evenly spaced sample of its training pairs."""
    sample = evenly_spaced(corpus.train, SAMPLED_PAIRS)
    sources, targets = list(sample["source"]), list(sample["target"])
    words = {word for line in [*sources, *targets] for word in line.split()}
    return CorpusSize(
        pairs=max(1, round(float(np.sum(numbers(corpus.train, "weight"))))),
        source_characters=_mean_length(sources),
        target_characters=_mean_length(targets),
        distinct_words=None if len(sample) < len(corpus.train) else len(words),
        valid_pairs=len(corpus.valid),
        test_pairs=len(corpus.test),
    )


def _mean_length(lines: list[str]) -> float:
    return round(float(np.mean([len(line) for line in lines])), 2)


def make_choice(
    resolved: Resolved[TrainConfig], corpus: Corpus, workers: Workers, started: float
) -> tuple[Resolved[TrainConfig], RecordedChoice]:
    """Choose the open settings of a new run for ``training.minutes``, or take them from the run named by ``choice``.

    Args:
        resolved: The config before the choice.
        corpus: The corpus, after cleaning.
        workers: All of them have to call this.
        started: The time at which the run began, by ``time.perf_counter``.

    Returns:
        The config with the chosen settings, and the content of its choice.json.

    Raises:
        InputError: The minutes do not suffice, or the other run's choice cannot be used.
    """
    config = resolved.config
    if config.choice:
        recorded = workers.run_on_leader(lambda: RecordedChoice.read(Path(str(config.choice))))
        return recorded.applied_to(resolved), recorded
    assert config.training.minutes is not None
    size = workers.run_on_leader(lambda: corpus_size(corpus))
    logger.info("measuring how fast this machine is")

    def measure(model: ModelConfig, vocabulary_size: int) -> Speed:
        return measure_speed(config, size, workers, model, vocabulary_size)

    def elapsed() -> float:  # the leader's time, so that all workers make the same decisions
        return workers.run_on_leader(lambda: time.perf_counter() - started + IMPORT_SECONDS)

    chosen, decisions, speed = choose_settings(resolved, size, model_presets("transformer"), measure, elapsed)
    machine: dict[str, str | int] = {
        "processor": (
            torch.cuda.get_device_name(workers.device) if workers.device.type == "cuda" else processor_name()
        ),
        "precision": precision_name(choose_precision(config.training.precision, workers.device)),
        "workers": workers.size,
        "threads": torch.get_num_threads(),
    }
    return chosen, RecordedChoice(config.training.minutes, size, machine, speed, decisions)
