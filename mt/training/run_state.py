"""The state of a run folder (new, unfinished or finished), and the settings that the run inherits."""

from dataclasses import dataclass
from pathlib import Path

from mt.config import TrainConfig
from mt.config.resolved import Resolved
from mt.core.errors import InputError
from mt.core.json_file import read_json
from mt.core.wording import format_value
from mt.storage.run_folder import (
    RESTORE_OR_SCORE_AGAIN,
    RESULTS,
    WEIGHTS,
    config_differences,
    flat_config,
    read_config,
    refuse_removed_settings,
)
from mt.storage.weights import refuse_other_tokenizer
from mt.training.checkpoint import Checkpoint, newest_checkpoint
from mt.training.fine_tuning.inheritance import inherit_from_base, inherit_model, inherit_tokenizer
from mt.training.time_budget.decision import CHOSEN_KEYS

CORPUS_PATHS = ("train", "valid", "test", "path")
"""The settings of a corpus that locate it."""


@dataclass(frozen=True)
class RunState:
    """The state of a run folder, with the completed config of the run. ``run_state`` returns one."""

    resolved: Resolved[TrainConfig]
    """The config of the run, with the settings that it inherits from its folder or from the base run."""
    checkpoint: Checkpoint | None
    """The newest checkpoint, to resume from; None if there is none."""
    tokenizer_from: Path | None
    """The folder that the tokenizer comes from; None if one is to be trained."""
    is_finished: bool
    """Whether nothing is left to do: all updates are made (or the run stopped early) and the test set is scored."""

    @property
    def config(self) -> TrainConfig:
        return self.resolved.config


def run_state(resolved: Resolved[TrainConfig]) -> RunState:
    """Determine whether a run is new, unfinished or finished, and resolve the settings that it inherits.

    Raises:
        InputError: A file is damaged, the run was begun with another config, it should be trained for longer but has no
            checkpoints, or the base run is missing or has another model.
    """
    config = resolved.config
    run = config.folder
    checkpoint = newest_checkpoint(run)
    base = config.training.init_from or config.tokenizer.reuse
    if not checkpoint and not (run / RESULTS).is_file():
        if base is None:
            return RunState(resolved, None, None, is_finished=False)
        return RunState(inherit_from_base(Path(base), resolved), None, Path(base), is_finished=False)
    recorded = read_config(run)
    resolved = _inherit_from_run(run, recorded, resolved)
    config = resolved.config
    is_finished = _is_finished(config)
    if not is_finished:
        refuse_removed_settings(run)
    _refuse_another_config(recorded, config, files_may_move=not is_finished)
    if is_finished:
        _refuse_to_extend_early_stop(recorded, config)
        return RunState(resolved, checkpoint, run, is_finished=True)
    if checkpoint is None:
        raise InputError(
            f"{run} is finished and its checkpoints are deleted, so a larger training.max_updates="
            f"{config.training.max_updates} cannot extend it. Start a new run from its weights: name=… "
            f"training.init_from={run}"
        )
    refuse_other_tokenizer(run, checkpoint.folder / WEIGHTS)
    return RunState(resolved, checkpoint, run, is_finished=False)


def _inherit_from_run(run: Path, recorded: TrainConfig, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
    """Return the config with the settings that the first start of the run chose or inherited.

    Settings that ``training.minutes`` chose come back only for the same ``training.minutes``. A chosen setting and the
    learning rate keep a value that the user gives.

    Args:
        run: The run folder.
        recorded: The config in it.
        resolved: The config of the command line.

    Raises:
        InputError: The user gives the tokenizer or the architecture another value than that of the run.
    """
    config, values = resolved.config, flat_config(recorded)
    if config.training.init_from or config.tokenizer.reuse:
        resolved = inherit_tokenizer(run, resolved)
    if config.training.init_from:
        resolved = inherit_model(run, resolved)
        key = "training.optimizer.learning_rate"
        resolved = resolved.with_values({} if resolved.is_given(key) else {key: values[key]}, "inherited")
    if config.choice and config.training.minutes is None:
        resolved = resolved.with_values({"training.minutes": recorded.training.minutes}, "chosen")
    if resolved.config.training.minutes is None or resolved.config.training.minutes != recorded.training.minutes:
        return resolved  # ``_refuse_another_config`` reports a difference
    keys = [key for key in CHOSEN_KEYS if key in values and not resolved.is_given(key)]
    return resolved.with_values({key: values[key] for key in keys}, "chosen")


def _refuse_another_config(recorded: TrainConfig, config: TrainConfig, files_may_move: bool) -> None:
    """Raise InputError if the config differs from that in the run folder in more than a larger training.max_updates.

    With ``files_may_move``, paths of the corpus may differ, too: the content is compared when the run is resumed.
    """
    differing = config_differences(recorded, config, CORPUS_PATHS if files_may_move else ())
    if config.training.max_updates > recorded.training.max_updates:
        del differing["training.max_updates"]
    if differing:
        lines = "\n".join(
            f"  {name}: {format_value(before)} in the run, now {format_value(now)}"
            for name, (before, now) in differing.items()
        )
        raise InputError(
            f"{config.folder} was begun with another config:\n{lines}\n"
            "Set the old values to resume it, or start a new run under another name (name=…). Only "
            "training.max_updates may grow, and files of an unfinished run may move."
        )


def _refuse_to_extend_early_stop(recorded: TrainConfig, config: TrainConfig) -> None:
    """Raise InputError if a finished run that stopped early is given a larger training.max_updates."""
    before = recorded.training.max_updates
    if config.training.max_updates > before:
        raise InputError(
            f"{config.folder} was stopped early by training.patience={config.training.patience}, so a larger "
            f"training.max_updates ({before:,} before) has no effect. Start a new run under another name (name=…)"
        )


def _is_finished(config: TrainConfig) -> bool:
    """Return whether a run has results and cannot go on: it stopped early, or made training.max_updates updates."""
    path = config.folder / RESULTS
    if not path.is_file():
        return False
    results = read_json(path, remedy=RESTORE_OR_SCORE_AGAIN)
    return results.get("stopped_early") is True or results.get("max_updates") == config.training.max_updates
