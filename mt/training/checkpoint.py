"""The exact state of training: safetensors for tensors, JSON for the rest, complete or not there."""

import dataclasses
import re
import shutil
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, NonNegativeFloat, NonNegativeInt, TypeAdapter, ValidationError
from torch import Tensor

from mt.errors import InputError
from mt.files import new_folder
from mt.json_file import read_sealed_json, write_sealed_json
from mt.run_folder import CHECKPOINTS, WEIGHTS
from mt.weights import read_tensors, write_tensors

FORMAT = 2
"""Raised whenever older checkpoints cannot be continued."""


@dataclass
class Progress:
    """Where training stands; with the weights, the optimizer's tensors and the config it decides all that follows."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    update: NonNegativeInt = 0
    epoch: NonNegativeInt = 0
    batch: NonNegativeInt = 0
    """Batches of the epoch that are done."""
    source_tokens: NonNegativeInt = 0
    target_tokens: NonNegativeInt = 0
    seconds: NonNegativeFloat = 0.0
    """Spent in updates: neither validating nor saving."""
    best_score: float | None = None
    best_loss: float = 0.0
    best_update: NonNegativeInt = 0
    validations_without_gain: NonNegativeInt = 0
    validation_due: bool = False
    """Interrupted during a validation, which comes first on resuming."""
    bad_updates: NonNegativeInt = 0
    consecutive_bad_updates: NonNegativeInt = 0
    interval_loss: float = 0.0
    """Summed since the last line of metrics.jsonl, like the three below."""
    interval_target_tokens: NonNegativeInt = 0
    interval_padded_tokens: NonNegativeInt = 0
    interval_seconds: NonNegativeFloat = 0.0
    metrics_bytes: NonNegativeInt = 0
    """Length of metrics.jsonl; whatever stands behind is cut off on resuming."""
    scaler: dict[str, int | float] = dataclasses.field(default_factory=dict)
    """GradScaler's state (fp16)."""


@dataclass(frozen=True)
class Checkpoint:
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
    belonging: Mapping[str, object],
    optimizer: dict[str, Tensor],
) -> None:
    """Writes checkpoints/step_N as a whole, every file with its checksum; ``belonging`` as for ``write_tensors``."""
    folder = run / CHECKPOINTS / f"step_{progress.update}"
    with new_folder(folder) as partial:
        write_tensors(partial / WEIGHTS, weights, belonging)
        write_tensors(partial / "optimizer.safetensors", optimizer)
        write_sealed_json(partial / "progress.json", {"format": FORMAT} | dataclasses.asdict(progress))


def remove_checkpoints(run: Path, but: Container[int]) -> None:
    """All but those of the given updates and the newest."""
    *older, _ = checkpoint_folders(run).items()
    for update, folder in older:
        if update not in but:
            # Out of sight first: a removal cut short must not look like a checkpoint.
            shutil.rmtree(folder.rename(folder.with_name(f".{folder.name}.partial")))


def checkpoint_folders(run: Path) -> dict[int, Path]:
    """The complete checkpoints of a run by their update, oldest first."""
    numbered = {
        int(found[1]): path
        for path in (run / CHECKPOINTS).glob("step_*")
        if (found := re.fullmatch(r"step_(\d+)", path.name))
    }
    return dict(sorted(numbered.items()))


def newest_checkpoint(run: Path) -> Checkpoint | None:
    """Raises InputError if it is damaged or of another version."""
    folders = checkpoint_folders(run)
    if not folders:
        return None
    folder = folders[max(folders)]
    path = folder / "progress.json"
    content = read_sealed_json(path)
    version = content.pop("format", None)
    if version != FORMAT:
        raise InputError(f"{path}: checkpoint format {version}, but this version of the code reads format {FORMAT}")
    if missing := {field.name for field in dataclasses.fields(Progress)} - content.keys():
        raise InputError(f"{path}: not the progress of a run: no {', '.join(sorted(missing))}")
    try:
        progress = TypeAdapter(Progress).validate_python(content)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}" for mistake in error.errors())
        raise InputError(f"{path}: not the progress of a run: {wrong}") from None
    if progress.update != max(folders):
        raise InputError(f"{path}: of update {progress.update}, not of {max(folders)}")
    return Checkpoint(folder, progress)


def average_weights(folders: list[Path]) -> dict[str, Tensor]:
    """The mean of several checkpoints' weights (Vaswani et al. 2017, section 6.1)."""
    first, *others = folders
    total = read_tensors(first / WEIGHTS)
    for folder in others:
        for name, tensor in read_tensors(folder / WEIGHTS).items():
            total[name] += tensor
    return {name: tensor / len(folders) for name, tensor in total.items()}
