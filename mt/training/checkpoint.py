"""Checkpoints: the exact state of training, tensors as safetensors and the rest as JSON, complete or not there."""

import dataclasses
import re
import shutil
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, NonNegativeFloat, NonNegativeInt, TypeAdapter, ValidationError
from torch import Tensor

from mt.core.errors import InputError
from mt.core.files import new_folder
from mt.core.json_file import read_json, write_json
from mt.storage.run_folder import CHECKPOINTS, WEIGHTS
from mt.storage.weights import read_tensors, write_tensors

START = f"{CHECKPOINTS}/start.safetensors"
"""The weights that a run with training.start_share began with. They are kept with it, because those in the folder of
init_from may be others by the time that the run goes on."""
FORMAT = 1
"""The format of a checkpoint. Raise it whenever checkpoints of another version cannot be continued."""


@dataclass
class Progress:
    """How far training has come. Together with the weights, the optimizer's tensors and the config, this determines
    everything that follows."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    update: NonNegativeInt = 0
    epoch: NonNegativeInt = 0
    batch: NonNegativeInt = 0
    """How many batches of the epoch are done."""
    source_tokens: NonNegativeInt = 0
    target_tokens: NonNegativeInt = 0
    seconds: NonNegativeFloat = 0.0
    """Time spent in updates, without validating and saving."""
    best_score: float | None = None
    best_loss: float = 0.0
    best_update: NonNegativeInt = 0
    validations_without_gain: NonNegativeInt = 0
    validation_due: bool = False
    """Whether these weights are still to be validated. If the run is interrupted before or during that validation, it
    comes first on resuming."""
    bad_updates: NonNegativeInt = 0
    consecutive_bad_updates: NonNegativeInt = 0
    interval_loss: float = 0.0
    """Summed since training was last recorded in metrics.jsonl, like the three fields below."""
    interval_target_tokens: NonNegativeInt = 0
    interval_padded_tokens: NonNegativeInt = 0
    interval_seconds: NonNegativeFloat = 0.0
    metrics_bytes: NonNegativeInt = 0
    """Length of metrics.jsonl. Anything after it is cut off on resuming."""
    scaler: dict[str, int | float] = dataclasses.field(default_factory=dict)
    """State of GradScaler; empty unless training is in fp16."""


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
    """Writes the folder checkpoints/step_N as a whole, every file with its checksum.

    Args:
        belonging: What belongs to the weights, as for ``write_tensors``.
    """
    folder = run / CHECKPOINTS / f"step_{progress.update}"
    with new_folder(folder) as partial:
        write_tensors(partial / WEIGHTS, weights, belonging)
        write_tensors(partial / "optimizer.safetensors", optimizer)
        write_json(partial / "progress.json", {"format": FORMAT} | dataclasses.asdict(progress))


def remove_checkpoints(run: Path, but: Container[int]) -> None:
    """Removes all checkpoints of a run except the newest and those of the updates in ``but``."""
    *older, _ = checkpoint_folders(run).items()
    for update, folder in older:
        if update not in but:
            # Renamed to a hidden folder first: a removal that is cut short must not leave anything like a checkpoint.
            shutil.rmtree(folder.rename(folder.with_name(f".{folder.name}.partial")))


def checkpoint_folders(run: Path) -> dict[int, Path]:
    """Returns the folders of a run's complete checkpoints by update, oldest first."""
    numbered = {
        int(found[1]): path
        for path in (run / CHECKPOINTS).glob("step_*")
        if (found := re.fullmatch(r"step_(\d+)", path.name))
    }
    return dict(sorted(numbered.items()))


def newest_checkpoint(run: Path) -> Checkpoint | None:
    """Returns the newest checkpoint of a run, or None if it has none. Raises InputError if that checkpoint is damaged
    or of another format."""
    folders = checkpoint_folders(run)
    if not folders:
        return None
    folder = folders[max(folders)]
    path = folder / "progress.json"
    content = read_json(path)
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
        raise InputError(f"{path}: records update {progress.update}, but its folder is that of update {max(folders)}")
    return Checkpoint(folder, progress)


def average_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """Returns the mean of several checkpoints' weights (Vaswani et al. 2017, section 6.1)."""
    first, *others = folders
    total = read_tensors(first / WEIGHTS)
    for folder in others:
        for name, tensor in read_tensors(folder / WEIGHTS).items():
            total[name] += tensor
    return {name: tensor / len(folders) for name, tensor in total.items()}
