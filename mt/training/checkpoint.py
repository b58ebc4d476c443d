"""Checkpoints: the exact state of training, tensors as safetensors and the rest as JSON, written as a whole."""

import dataclasses
import math
import re
import shutil
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, NonNegativeFloat, NonNegativeInt, TypeAdapter, ValidationError
from torch import Tensor

from mt.config import TrainingConfig
from mt.core.errors import InputError, damaged_file, wrong_keys
from mt.core.files import new_folder
from mt.core.json_file import read_json, write_json
from mt.storage.run_folder import CHECKPOINTS, WEIGHTS
from mt.storage.weights import read_tensors, remedy_for, write_tensors

START = f"{CHECKPOINTS}/start.safetensors"
"""The initial weights of a run with training.start_share, because those in the folder of init_from may change."""
FORMAT = 1
"""The version of the checkpoint format. Raise it whenever older checkpoints cannot be continued."""


@dataclass
class Progress:
    """The progress of a run. With weights, optimizer state and config, it determines everything that follows."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    update: NonNegativeInt = 0
    epoch: NonNegativeInt = 0
    batch: NonNegativeInt = 0
    """The number of batches of the epoch that are done."""
    source_tokens: NonNegativeInt = 0
    target_tokens: NonNegativeInt = 0
    seconds: NonNegativeFloat = 0.0
    """Time spent in updates, without validating and saving."""
    best_score: float | None = None
    best_loss: float = 0.0
    best_update: NonNegativeInt = 0
    validations_without_gain: NonNegativeInt = 0
    validation_due: bool = False
    """Whether these weights are still to be validated. A run that is interrupted before that resumes with it."""
    bad_updates: NonNegativeInt = 0
    consecutive_bad_updates: NonNegativeInt = 0
    interval_loss: float = 0.0
    """Summed since training was last recorded in metrics.jsonl, like the three fields below."""
    interval_target_tokens: NonNegativeInt = 0
    interval_padded_tokens: NonNegativeInt = 0
    interval_seconds: NonNegativeFloat = 0.0
    metrics_bytes: NonNegativeInt = 0
    """Length of metrics.jsonl. It is cut to this length on resuming."""
    scaler: dict[str, int | float] = dataclasses.field(default_factory=dict)
    """State of GradScaler; empty unless training is in fp16."""

    def record_validation(self, score: float, loss: float) -> bool:
        """Update the best scores and the count of validations without gain. Return whether this one is the best."""
        gained = self.best_score is None or _is_greater(score, self.best_score)
        # Early on, BLEU is often 0 time after time. Then the loss decides which weights are better.
        best = gained or (score == self.best_score and _is_greater(-loss, -self.best_loss))
        if best:
            self.best_score, self.best_loss, self.best_update = score, loss, self.update
        self.validations_without_gain = 0 if gained else self.validations_without_gain + 1
        return best


def _is_greater(a: float, b: float) -> bool:
    """Return whether a > b, where NaN is less than any number: a loss of NaN that came first must not stay the best."""
    return a > b or (math.isnan(b) and not math.isnan(a))


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint on the disk."""

    folder: Path
    progress: Progress

    def weights(self) -> dict[str, Tensor]:
        return read_tensors(self.folder / WEIGHTS)

    def optimizer_tensors(self) -> dict[str, Tensor]:
        return read_tensors(self.folder / "optimizer.safetensors")


def save_checkpoint(
    run: Path,
    progress: Progress,
    weights: dict[str, Tensor],
    metadata: Mapping[str, object],
    optimizer: dict[str, Tensor],
) -> None:
    """Write the folder checkpoints/step_N as a whole, every file with its checksum.

    Args:
        run: The run folder.
        progress: The progress, at update N.
        weights: The model's weights.
        metadata: Of the weights, as for ``write_tensors``.
        optimizer: The optimizer's tensors.
    """
    folder = run / CHECKPOINTS / f"step_{progress.update}"
    with new_folder(folder) as partial:
        write_tensors(partial / WEIGHTS, weights, metadata)
        write_tensors(partial / "optimizer.safetensors", optimizer)
        write_json(partial / "progress.json", {"format": FORMAT} | dataclasses.asdict(progress))


def remove_checkpoints(run: Path, but: Container[int]) -> None:
    """Remove all checkpoints of a run except the newest and those of the updates in ``but``."""
    *older, _ = checkpoint_folders(run).items()
    for update, folder in older:
        if update not in but:
            # Renamed to a hidden folder first: a removal that is cut short must not leave anything like a checkpoint.
            shutil.rmtree(folder.rename(folder.with_name(f".{folder.name}.partial")))


def checkpoint_folders(run: Path) -> dict[int, Path]:
    """Return the folders of a run's complete checkpoints by update, oldest first."""
    paths = [path for path in (run / CHECKPOINTS).glob("step_*") if re.fullmatch(r"step_\d+", path.name)]
    return dict(sorted((int(path.name.removeprefix("step_")), path) for path in paths))


def is_scheduled(update: int, settings: TrainingConfig) -> bool:
    """Return whether an undisturbed run saves a checkpoint at this update.

    A checkpoint that an interruption made must not change which ones are kept or averaged.
    """
    intervals = (settings.validate_every, settings.save_every or settings.validate_every)
    return update == settings.max_updates or any(update % interval == 0 for interval in intervals)


def scheduled_checkpoints(run: Path, settings: TrainingConfig) -> dict[int, Path]:
    """Return the folders of the scheduled checkpoints by update, oldest first, without those of interruptions."""
    return {update: folder for update, folder in checkpoint_folders(run).items() if is_scheduled(update, settings)}


def newest_checkpoint(run: Path) -> Checkpoint | None:
    """Return the newest checkpoint of a run; None if it has none.

    Raises:
        InputError: That checkpoint is damaged or of another format.
    """
    if not (folders := checkpoint_folders(run)):
        return None
    update, folder = folders.popitem()
    path = folder / "progress.json"
    remedy = remedy_for(path)
    content = read_json(path, "format", *(field.name for field in dataclasses.fields(Progress)), remedy=remedy)
    if (version := content.pop("format")) != FORMAT:
        raise InputError(f"{path}: checkpoint format {version}, but this version of the code reads format {FORMAT}")
    try:
        progress = TypeAdapter(Progress).validate_python(content)
    except ValidationError as error:
        wrong = wrong_keys(str(mistake["loc"][0]) for mistake in error.errors())
        raise damaged_file(path, wrong, remedy) from None
    if progress.update != update:
        raise InputError(f"{path}: records update {progress.update}, but its folder is that of update {update}")
    return Checkpoint(folder, progress)


def average_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of several checkpoints' weights (Vaswani et al. 2017, section 6.1)."""
    first, *others = folders
    total = read_tensors(first / WEIGHTS)
    for folder in others:
        for name, tensor in read_tensors(folder / WEIGHTS).items():
            total[name] += tensor
    return {name: tensor / len(folders) for name, tensor in total.items()}
