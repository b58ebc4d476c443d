"""The choice of settings for ``training.minutes``, recorded in choice.json with the measurements that it is based on.

The speeds of training and translation are measured by a few real updates and searches on random tokens: the time
depends only on the number of tokens. All workers measure at the same time, so that the time they wait for each other is
included.
"""

import logging
import statistics
import textwrap
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from mt.config import DecodingConfig, ModelConfig, ResolvedTrainConfig, TrainConfig, model_presets
from mt.core.columns import numbers
from mt.core.device import autocast, choose_precision, precision_name, processor_name, tf32_in_recurrent_layers
from mt.core.errors import InputError, format_value
from mt.data.batching.batch import Batch, collate
from mt.data.corpus import Corpus, evenly_spaced_pairs
from mt.distributed.replication import unsharded
from mt.distributed.workers import Workers
from mt.models.build import build_for_sizes
from mt.models.seq2seq import Seq2Seq
from mt.storage.run_folder import CHOICE_FILE, flat_config
from mt.storage.validation import read_json, validate_recorded, write_json
from mt.tokenizer.tokenizer import SPECIAL_TOKENS
from mt.training.checkpoint import Progress
from mt.training.objective import Objective
from mt.training.time_budget import CHOSEN_KEYS, Chooser, CorpusSize, Decision, SettingValue, Speed, estimated_tokens
from mt.training.updater import UpdateBatches, Updater
from mt.translation.engine import SearchRequest
from mt.translation.torch_engine import TorchEngine

logger = logging.getLogger(__name__)

CPU_BATCH_TOKENS = (256, 1024)
"""Target tokens of the two timed batches on a CPU."""
GPU_BATCH_TOKENS = (1024, 16384)
"""Target tokens of the two timed batches on a GPU, where small batches take as long as larger ones."""
REPEATS = 3
"""Number of timed updates with each batch, of which the median is used. An untimed one precedes them to allocate
memory."""
CALIBRATION_SENTENCES = 64
"""Number of sentences of a timed search."""
MIN_SECONDS = 1e-9
"""Lower limit of a measured time, in case noise hides the difference between the batches."""

SAMPLED_PAIRS = 20_000
"""Number of training pairs whose lengths and words are counted."""
IMPORT_SECONDS = 4.0
"""Time that a command takes to import PyTorch."""
VALUE_COLUMN, REASON_COLUMN = 34, 54
"""Start columns of the values and of the reasons in the table."""


def measure_speed(
    config: TrainConfig, corpus: CorpusSize, workers: Workers, model_config: ModelConfig, vocabulary_size: int
) -> Speed:
    """Measure the speed of a model with random weights. All workers have to call this, and get the same result.

    Args:
        config: The config of the run, for the settings of training and decoding.
        corpus: The size of the corpus, for the lengths of the random sentences.
        workers: The processes that train together.
        model_config: The model.
        vocabulary_size: The number of tokens on the source side, and on the target side.
    """
    source = round(estimated_tokens(corpus.source_characters, config.data.source_language))
    target = round(estimated_tokens(corpus.target_characters, config.data.target_language))
    precision = choose_precision(config.training.precision, workers.device)
    torch.manual_seed(0)
    model = build_for_sizes(model_config, vocabulary_size, vocabulary_size, config.tokenizer.joint).to(workers.device)
    batch_tokens = CPU_BATCH_TOKENS if workers.device.type == "cpu" else GPU_BATCH_TOKENS
    small, large = (max(1, tokens // (target * workers.size)) for tokens in batch_tokens)
    batches = [
        _random_batch(pairs, source, target, vocabulary_size).to(workers.device)
        for pairs in (small, max(2 * small, large))
    ]
    training = config.training.model_copy(update={"objective": "cross_entropy"})
    config = config.model_copy(update={"training": training})
    updater = Updater(config, Objective(model, training), workers, precision, Progress())
    with tf32_in_recurrent_layers(precision):
        small_seconds, large_seconds = (_update_seconds(updater, batch) for batch in batches)
    with autocast(workers.device, precision), unsharded(updater.replica):
        greedy, beam = (
            _search_seconds(model.eval(), config.decoding, source, target, is_greedy) for is_greedy in (True, False)
        )
    small_tokens, large_tokens = (batch.target_tokens for batch in batches)
    token = max((large_seconds - small_seconds) / (large_tokens - small_tokens) / workers.size, MIN_SECONDS)
    update = max(small_seconds - small_tokens * workers.size * token, MIN_SECONDS)
    return workers.run_on_main(lambda: Speed(update, token, greedy / workers.size, beam / workers.size))


def _random_batch(pairs: int, source_length: int, target_length: int, vocabulary_size: int) -> Batch:
    """Return a batch of random tokens. The lengths of its sentences include EOS."""
    source, target = (
        torch.randint(len(SPECIAL_TOKENS), vocabulary_size, (pairs, max(1, length - 1))).tolist()
        for length in (source_length, target_length)
    )
    return collate(source, target)


def _update_seconds(updater: Updater, batch: Batch) -> float:
    """Return the median seconds of REPEATS updates on a batch, which change the weights."""
    tokens = batch.target_tokens * updater.workers.size
    ready = UpdateBatches([batch], epoch=0, batch=0, source_tokens=0, target_tokens=tokens, padded_tokens=tokens)

    def update() -> None:
        updater.train_step(ready)
        updater.finish_pending_step()  # waits for the GPU

    update()
    return statistics.median(_elapsed_seconds(update) for _ in range(REPEATS))


def _search_seconds(
    model: Seq2Seq, decoding: DecodingConfig, source_length: int, target_length: int, greedy: bool
) -> float:
    """Time a search. Return its seconds per sentence.

    Hypotheses of an untrained model rarely end with EOS, so they are limited to the mean length of a target.
    """
    limited = decoding.model_copy(update={"max_length_ratio": 1e-6, "max_length_extra": target_length})
    engine = TorchEngine(model, limited)
    beams = 1 if greedy else decoding.beam_size
    sentences = max(1, min(CALIBRATION_SENTENCES, decoding.batch_tokens // (source_length * beams)))
    tokens = torch.randint(len(SPECIAL_TOKENS), model.output_weight.shape[0], (sentences, source_length - 1)).tolist()
    keys = [(number,) for number in range(sentences)]
    threads = torch.get_num_threads() if model.device.type == "cpu" else 1
    if threads > 1:
        torch.set_num_threads(1)  # because each core translates batches of its own
    engine.search(SearchRequest(tokens[:2], keys[:2], greedy=greedy))
    seconds = _elapsed_seconds(lambda: engine.search(SearchRequest(tokens, keys, greedy=greedy)))
    if threads > 1:
        torch.set_num_threads(threads)
    return seconds / sentences / threads


def _elapsed_seconds(work: Callable[[], object]) -> float:
    """Return the seconds that a call of ``work`` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@dataclass(frozen=True)
class RecordedChoice:
    """The content of choice.json: the chosen settings of a run, and the corpus, machine and speed."""

    minutes: float
    corpus: CorpusSize
    machine: dict[str, str | int]
    speed: Speed
    decisions: list[Decision]

    @property
    def settings(self) -> dict[str, SettingValue]:
        """The chosen values by key."""
        return {key: value for decision in self.decisions for key, value in decision.settings.items()}

    @classmethod
    def read(cls, path: Path) -> "RecordedChoice":
        """Read the choice of a run, given its folder or the file itself.

        Raises:
            InputError: There is no such file, or it is corrupted.
        """
        file = path / CHOICE_FILE if path.is_dir() else path
        if not file.is_file():
            raise InputError(
                f"choice={path}: {file} does not exist; set choice to a run that was started with training.minutes"
            )
        return validate_recorded(file, cls, read_json(file, "minutes", "decisions"))

    def applied_to(self, resolved: ResolvedTrainConfig) -> ResolvedTrainConfig:
        """Return the config of another run, with the chosen values of all settings that its user has not given.

        Raises:
            InputError: The config has other ``training.minutes``.
        """
        minutes = resolved.config.training.minutes
        if minutes is not None and minutes != self.minutes:
            raise InputError(
                f"training.minutes={minutes:g}: the settings were chosen for {self.minutes:g} minutes; omit this, or "
                f"set training.minutes={self.minutes:g}"
            )
        keys = flat_config(resolved.config)  # another architecture lacks some of them
        values = {key: value for key, value in self.settings.items() if key in keys and not resolved.is_given(key)}
        return resolved.with_values({"training.minutes": self.minutes, **values}, "chosen")

    def table(self, resolved: ResolvedTrainConfig) -> str:
        """Return a table of settings, values and reasons.

        Args:
            resolved: The run's config before or after the choice. Settings that its user gave have the reason "given".
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
    sample = evenly_spaced_pairs(corpus.train, SAMPLED_PAIRS)
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


def choose_settings(
    resolved: ResolvedTrainConfig, corpus: Corpus, workers: Workers, started: float
) -> ResolvedTrainConfig:
    """Choose the settings of a new run for ``training.minutes``, or copy those of the run in ``choice``, and write
    choice.json.

    Without ``training.minutes`` and ``choice``, return the config unchanged, and remove the choice.json of an earlier
    attempt that ended before its first checkpoint.

    Args:
        resolved: The config before the choice.
        corpus: The corpus, after cleaning.
        workers: All of them have to call this.
        started: The time at which the run began, by ``time.perf_counter``.

    Raises:
        InputError: The minutes do not suffice, or choice.json of the other run is missing or corrupted.
    """
    config, minutes = resolved.config, resolved.config.training.minutes
    path = config.folder / CHOICE_FILE
    if config.choice:
        recorded = workers.run_on_main(lambda: RecordedChoice.read(Path(str(config.choice))))
        chosen = recorded.applied_to(resolved)
    elif minutes is None:
        if workers.is_main:
            path.unlink(missing_ok=True)
        return resolved
    else:
        size = workers.run_on_main(lambda: corpus_size(corpus))
        logger.info("measuring how fast this machine is")

        def elapsed() -> float:  # the main process's time, so that all workers make the same decisions
            return workers.run_on_main(lambda: time.perf_counter() - started + IMPORT_SECONDS)

        measure = partial(measure_speed, config, size, workers)
        chooser = Chooser(resolved, size, model_presets("transformer"), measure, elapsed)
        chooser.choose()
        machine: dict[str, str | int] = {
            "processor": (
                torch.cuda.get_device_name(workers.device) if workers.device.type == "cuda" else processor_name()
            ),
            "precision": precision_name(choose_precision(config.training.precision, workers.device)),
            "workers": workers.size,
            "threads": torch.get_num_threads(),
        }
        chosen = chooser.resolved
        recorded = RecordedChoice(minutes, size, machine, chooser.speed, chooser.decisions)
    logger.info("chosen for training.minutes=%g:\n%s", recorded.minutes, recorded.table(resolved))
    if workers.is_main:
        write_json(path, asdict(recorded))
    return chosen
