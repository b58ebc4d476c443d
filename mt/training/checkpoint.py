"""Checkpoints: the exact state of training, with tensors in safetensors files and everything else in JSON.

``python -m mt average`` writes a model with the mean of the weights of several runs or checkpoints.
"""

import dataclasses
import math
import shutil
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import ConfigDict, NonNegativeFloat, NonNegativeInt

from mt.config import AveragingConfig, TrainingConfig, flat_values, split_update
from mt.core.errors import InputError
from mt.core.files import atomic_folder, resolve_new_folder
from mt.storage.folders import open_folder
from mt.storage.run_folder import CHECKPOINTS, WEIGHTS, checkpoint_folders
from mt.storage.validation import read_json, validate_recorded, write_json
from mt.storage.weights import Tensors, read_metadata, read_tensors, remedy_for, weights_metadata, write_tensors

OPTIMIZER = "optimizer.safetensors"
"""File of the state of the optimizer in a checkpoint."""
INITIAL_WEIGHTS = f"{CHECKPOINTS}/start.safetensors"
"""File with a copy of the initial weights of a run with training.start_share, because the base run may change."""
CHECKPOINT_FORMAT = 1
"""The version of the checkpoint format. Raise it whenever runs cannot be resumed from older checkpoints."""


@dataclass
class Progress:
    """The progress of a run. Each worker keeps one up to date, and progress.json of a checkpoint records it.

    With weights, optimizer state and config, it determines the rest of the run exactly.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    update: NonNegativeInt = 0
    """Updates done."""
    epoch: NonNegativeInt = 0
    batch: NonNegativeInt = 0
    """Batches of the current epoch that are done."""
    source_tokens: NonNegativeInt = 0
    """Source tokens of all updates and workers, without padding; ``target_tokens`` likewise."""
    target_tokens: NonNegativeInt = 0
    seconds: NonNegativeFloat = 0.0
    """Time spent in updates, without validations and checkpoints."""
    best_score: float | None = None
    """Best score of training.metric on validation, negative where lower is better; None before the first
    validation."""
    best_chrf: float | None = None
    """chrF2 of the best validation; None before the first validation, and in a checkpoint of mt 1.0."""
    best_loss: float = 0.0
    best_update: NonNegativeInt = 0
    validations_without_gain: NonNegativeInt = 0
    """Validations since the best one."""
    rate_reductions: NonNegativeInt = 0
    """Number of times that the schedule ``plateau`` has lowered the learning rate."""
    validation_due: bool = False
    """Whether a validation of the current weights is due."""
    bad_updates: NonNegativeInt = 0
    """Updates that were skipped because their gradient was not finite."""
    consecutive_bad_updates: NonNegativeInt = 0
    interval_loss: float = 0.0
    """Loss of the updates since the last line of metrics.jsonl, summed over target tokens and workers. The three fields
    below are sums over the same updates."""
    interval_target_tokens: NonNegativeInt = 0
    interval_padded_tokens: NonNegativeInt = 0
    interval_seconds: NonNegativeFloat = 0.0
    metrics_bytes: NonNegativeInt = 0
    """Length of metrics.jsonl at the checkpoint. A resumed run cuts the file to it."""
    schedule_start: NonNegativeInt = 0
    """Updates before the first one of the schedule, more than 0 with training.reset=[schedule]."""
    scaler: dict[str, int | float] = dataclasses.field(default_factory=dict)
    """State of GradScaler; empty unless the precision is fp16."""

    def record_validation(self, score: float, chrf: float, loss: float) -> bool:
        """Record a validation of the current weights.

        Args:
            score: The score of training.metric, the higher the better.
            chrf: chrF2, which decides between equal scores: BLEU stays 0 if no line has four words.
            loss: The validation loss, which decides if chrF2 is equal, too.

        Returns:
            Whether these weights are the best so far. Otherwise, the validation counts against patience.
        """
        best = True
        if self.best_score is not None:
            best_chrf = chrf if self.best_chrf is None else self.best_chrf
            best = _validation_rank(score, chrf, loss) > _validation_rank(self.best_score, best_chrf, self.best_loss)
        if best:
            self.best_score, self.best_chrf, self.best_loss, self.best_update = score, chrf, loss, self.update
        self.validations_without_gain = 0 if best else self.validations_without_gain + 1
        return best


def _validation_rank(score: float, chrf: float, loss: float) -> tuple[float, ...]:
    """Return the sort key of a validation, in which NaN is less than any number: a first loss of NaN must not stay the
    best."""
    return tuple(-math.inf if math.isnan(value) else value for value in (score, chrf, -loss))


class Checkpoint(NamedTuple):
    """A complete checkpoint on the disk, whose progress has been read, but not its tensors."""

    folder: Path
    progress: Progress


def save_checkpoint(
    run: Path,
    progress: Progress,
    weights: Tensors,
    metadata: Mapping[str, object],
    optimizer: Tensors,
) -> None:
    """Write the folder checkpoints/step_N of update N. It appears only once it is complete.

    If the folder exists, only the progress is written again: a validation changes nothing else after an update.

    Args:
        run: The run folder.
        progress: The progress after update N.
        weights: The weights of the model by name.
        metadata: The metadata of the weights file, as for ``write_tensors``.
        optimizer: The tensors of the optimizer by name.
    """
    folder = run / CHECKPOINTS / f"step_{progress.update}"
    content = {"format": CHECKPOINT_FORMAT} | dataclasses.asdict(progress)
    if folder.exists():
        write_json(folder / "progress.json", content)
        return
    with atomic_folder(folder) as partial:
        write_tensors(partial / WEIGHTS, weights, metadata)
        write_tensors(partial / OPTIMIZER, optimizer)
        write_json(partial / "progress.json", content)


def remove_checkpoints(run: Path, kept_updates: Container[int]) -> None:
    """Remove all checkpoints of a run except the newest and those of ``kept_updates``."""
    *older, _ = checkpoint_folders(run).items()
    for update, folder in older:
        if update not in kept_updates:
            # Renamed to a hidden folder first, so that a killed process leaves no incomplete checkpoint.
            shutil.rmtree(folder.rename(folder.with_name(f".{folder.name}.partial")))


def is_scheduled(update: int, settings: TrainingConfig) -> bool:
    """Return whether a run saves a checkpoint after this update without being interrupted."""
    intervals = (settings.validate_every, settings.save_every or settings.validate_every)
    return update == settings.max_updates or any(update % interval == 0 for interval in intervals)


def scheduled_checkpoints(run: Path, settings: TrainingConfig) -> dict[int, Path]:
    """Map the update of each scheduled checkpoint of a run to its folder, oldest first.

    Checkpoints of interruptions are omitted: they must not influence which ones are kept or averaged.
    """
    return {update: folder for update, folder in checkpoint_folders(run).items() if is_scheduled(update, settings)}


def newest_checkpoint(run: Path) -> Checkpoint | None:
    """Return the newest checkpoint of a run; None if it has none.

    Raises:
        InputError: It is corrupted or of another format.
    """
    if not (folders := checkpoint_folders(run)):
        return None
    update, folder = folders.popitem()
    path = folder / "progress.json"
    remedy = remedy_for(path)
    content = read_json(path, "format", remedy=remedy)
    if (version := content.pop("format")) != CHECKPOINT_FORMAT:
        raise InputError(
            f"{path}: checkpoint format {version}, but this version of mt reads format {CHECKPOINT_FORMAT}; resume "
            "with the version that began the run, or train again under another name (name=…)"
        )
    progress = validate_recorded(path, Progress, content, remedy)
    if progress.update != update:
        raise InputError(
            f"{path}: records update {progress.update}, but its folder is that of update {update}; restore the name "
            f"step_{progress.update}"
        )
    return Checkpoint(folder, progress)


def average_weights(folders: Sequence[Path]) -> Tensors:
    """Return the mean of the weights in several checkpoint folders by name (Vaswani et al. 2017, section 6.1)."""
    first, *others = folders
    mean = read_tensors(first / WEIGHTS)
    for number, folder in enumerate(others, 2):
        for name, tensor in read_tensors(folder / WEIGHTS).items():
            mean[name].lerp_(tensor, 1 / number)  # the mean of equal numbers is exact, unlike with a sum
    return mean


def average(config: AveragingConfig) -> None:
    """Write the mean of the weights to ``config.output``, with all other files of the first model.

    Raises:
        InputError: A folder or file is missing or corrupted, two models differ in tokenizer or architecture, or the
            output exists.
    """
    output = resolve_new_folder(config.output)
    base = open_folder(split_update(config.run[0])[0])
    metadata = weights_metadata(base.read_description().model, base.read_tokenizer_files())
    folders = []
    for path in config.run:
        run, update = split_update(path)
        folder = open_folder(run).path / ("" if update is None else f"{CHECKPOINTS}/step_{update}")
        recorded = dict(flat_values(read_metadata(folder / WEIGHTS)))
        for key, value in flat_values(metadata):
            if recorded.get(key) != value:
                raise InputError(
                    f"{path} cannot be averaged with {config.run[0]}: {key} is {recorded.get(key)} instead of {value}; "
                    "give models with the same tokenizer and architecture"
                )
        folders.append(folder)
    with atomic_folder(output) as partial:
        for name in base.files:
            if (base.path / name).exists():
                shutil.copyfile(base.path / name, partial / name)
        write_tensors(partial / WEIGHTS, average_weights(folders), metadata | {"averaged": config.run})
