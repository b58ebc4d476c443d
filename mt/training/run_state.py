"""The state of a run folder (new, unfinished or finished), and the settings that its config inherits."""

import logging
from dataclasses import dataclass
from pathlib import Path

from mt.config import TrainConfig
from mt.config.presets import DEFAULT_ARCHITECTURE, model_presets
from mt.config.resolved import Resolved
from mt.core.errors import InputError
from mt.core.json_file import read_json
from mt.core.wording import format_value
from mt.storage.folders import read_description
from mt.storage.hub import resolve_model_path
from mt.storage.marian import is_marian
from mt.storage.run_folder import (
    RESTORE_OR_SCORE_AGAIN,
    RESULTS,
    WEIGHTS,
    config_differences,
    flat_config,
    read_config,
)
from mt.storage.weights import architecture_settings, refuse_other_tokenizer
from mt.training.checkpoint import Checkpoint, newest_checkpoint
from mt.training.decision import CHOSEN_KEYS

FINE_TUNING_RATE = 1e-3
"""The default learning rate of fine-tuning, up to FINE_TUNING_WIDTH. That of wider models is smaller in proportion."""
FINE_TUNING_WIDTH = 192

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunState:
    """The state of a run folder."""

    resolved: Resolved[TrainConfig]
    """The run's config, with what it inherits from its folder or from the base run."""
    checkpoint: Checkpoint | None
    """The checkpoint to resume from; None for a new run."""
    tokenizer_from: Path | None
    """The folder that the tokenizer comes from; None if one is to be trained."""
    is_finished: bool

    @property
    def config(self) -> TrainConfig:
        return self.resolved.config


def run_state(resolved: Resolved[TrainConfig]) -> RunState:
    """Determine whether a run is new, unfinished or finished, and resolve the settings that it inherits.

    Raises:
        InputError: A file is damaged; or the run was begun with another config; or it is finished and its checkpoints
            are gone, so that it cannot be trained for longer; or the base run is missing or has another model.
    """
    config = resolved.config
    run = config.folder
    checkpoint = newest_checkpoint(run)
    base = config.training.init_from or config.tokenizer.reuse
    if not checkpoint and not (run / RESULTS).is_file():
        if base is None:
            return RunState(resolved, None, None, is_finished=False)
        return RunState(_inherit_from_base(Path(base), resolved), None, Path(base), is_finished=False)
    resolved = _inherit_from_run(run, resolved)
    config = resolved.config
    _refuse_another_config(config)
    if _is_finished(config):
        _refuse_to_extend_early_stop(config)
        return RunState(resolved, checkpoint, run, is_finished=True)
    if checkpoint is None:
        raise InputError(
            f"{run} is finished and its checkpoints are deleted, so training.max_updates={config.training.max_updates} "
            f"cannot extend it. Start a new run from its weights: name=… training.init_from={run}"
        )
    refuse_other_tokenizer(run, checkpoint.folder / WEIGHTS)
    return RunState(resolved, checkpoint, run, is_finished=False)


def _inherit_from_run(run: Path, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
    """Take the settings that the run's first start chose or inherited, unless the user has given them."""
    config, recorded = resolved.config, read_config(run)
    values = flat_config(recorded)
    if config.training.init_from or config.tokenizer.reuse:
        resolved = _inherit_tokenizer(run, resolved)
    if config.training.init_from:
        resolved = _inherit_model(run, resolved)
        key = "training.optimizer.learning_rate"
        resolved = resolved.with_values({} if resolved.is_given(key) else {key: values[key]}, "inherited")
    if config.choice and config.training.minutes is None:
        resolved = resolved.with_values({"training.minutes": recorded.training.minutes}, "chosen")
    if resolved.config.training.minutes is None or resolved.config.training.minutes != recorded.training.minutes:
        return resolved  # a difference is reported
    keys = [key for key in CHOSEN_KEYS if key in values and not resolved.is_given(key)]
    return resolved.with_values({key: values[key] for key in keys}, "chosen")


def _inherit_from_base(base: Path, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
    """Take the tokenizer's settings, and with training.init_from the model's, from the base run."""
    training, folder = resolved.config.training, resolve_model_path(base)
    if not folder.is_dir():
        key = "training.init_from" if training.init_from else "tokenizer.reuse"
        raise InputError(f"{key}={base}: no such run or model folder")
    resolved = _inherit_tokenizer(base, resolved)
    if training.init_from:
        resolved = _inherit_model(base, resolved)
    if training.init_from and not resolved.is_given("training.optimizer.learning_rate"):
        rate = float(f"{FINE_TUNING_RATE * min(1, FINE_TUNING_WIDTH / resolved.config.model.width):.3g}")
        logger.info("fine-tuning: training.optimizer.learning_rate=%g, as none is given", rate)
        resolved = resolved.with_values({"training.optimizer.learning_rate": rate}, "inherited")
    if not is_marian(folder) and ((folder / WEIGHTS).is_file() or training.init_from):
        refuse_other_tokenizer(folder, folder / WEIGHTS)
    return resolved


def _inherit_tokenizer(base: Path, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
    """Take the settings of the base's tokenizer and of the slots of its text layer. Sampling is not among them."""
    description, config = read_description(base), resolved.config
    tokenizer, text = description.tokenizer, description.text
    if tokenizer.kind == "char" and config.tokenizer.sampling > 0:
        raise InputError(
            f"tokenizer.sampling={config.tokenizer.sampling}: the tokenizer of {base} has kind=char, which cuts a text "
            "in one way only; set tokenizer.sampling=0"
        )
    values: dict[str, object] = {f"tokenizer.{name}": value for name, value in tokenizer.model_dump().items()}
    values |= {"text.enabled": text.enabled, "text.slots": text.slots}
    own = config.text
    needs_slots = own.terms or own.patterns or own.augmentation.differs_from_default("slots")
    if own.enabled and needs_slots and not text.enabled:
        raise InputError(
            "text.terms, text.patterns and text.augmentation.slots need slots, which the tokenizer of "
            f"{base} does not have"
        )
    differing = {key: value for key, value in values.items() if resolved.value(key) != value}
    _refuse_given(resolved, differing, f"the tokenizer is that of {base}; leave this out")
    if differing:
        own_values = {key: format_value(resolved.value(key)) for key in differing}
        changes = (f"{key} {format_value(value)} instead of {own_values[key]}" for key, value in differing.items())
        logger.info("the tokenizer is that of %s: %s", base, ", ".join(changes))
    if not text.enabled:
        differing["text.augmentation.slots"] = 0.0
    return resolved.with_values(differing, "inherited")


def _inherit_model(base: Path, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
    """Take the model of a folder, whose weights fit no other. Only dropout may differ."""
    model, own = read_description(base).model, resolved.config.model
    if architecture_settings(model) == architecture_settings(own):
        return resolved
    # The default option of model= sets the architecture, too, so it does not count as given.
    given = [name for name in type(own).model_fields if name != "architecture" and resolved.is_given(f"model.{name}")]
    if model.architecture != own.architecture and (given or own.architecture != DEFAULT_ARCHITECTURE):
        raise InputError(
            f"training.init_from={base} is a {model.architecture}, this run a {own.architecture}: "
            f"leave the model out, or take one of model={', '.join(model_presets(model.architecture))}"
        )
    differing = {
        f"model.{name}": value
        for name, value in architecture_settings(model).items()
        if name in given and getattr(own, name) != value
    }
    _refuse_given(resolved, differing, f"the model is that of training.init_from={base}; leave the model out")
    logger.info("the model is that of %s", base)
    kept = {name: getattr(own, name) for name in given if name in type(model).model_fields}
    return resolved.with_values({"model": model.model_dump() | kept}, "inherited")


def _refuse_given(resolved: Resolved[TrainConfig], values: dict[str, object], reason: str) -> None:
    """Raise InputError if the user has given one of the keys, because the base run has these other values."""
    if given := [key for key in values if resolved.is_given(key)]:
        asked = " ".join(f"{key}={format_value(resolved.value(key))}" for key in given)
        needed = " ".join(f"{key}={format_value(values[key])}" for key in given)
        raise InputError(f"{asked}: {reason}, or set {needed}")


def _refuse_another_config(config: TrainConfig) -> None:
    """Raise InputError unless a run has the config that it was begun with. training.max_updates may have grown."""
    old = read_config(config.folder)
    differing = config_differences(old, config)
    if config.training.max_updates > old.training.max_updates:
        del differing["training.max_updates"]
    if differing:
        lines = "\n".join(
            f"  {name}: {format_value(before)} in the run, now {format_value(now)}"
            for name, (before, now) in differing.items()
        )
        raise InputError(
            f"{config.folder} was begun with another config:\n{lines}\n"
            "Give this run a name of its own (name=…), or the old values to go on; training.max_updates alone may grow."
        )


def _refuse_to_extend_early_stop(config: TrainConfig) -> None:
    before = read_config(config.folder).training.max_updates
    if config.training.max_updates > before:
        raise InputError(
            f"{config.folder} was stopped early by training.patience={config.training.patience}, so a larger "
            f"training.max_updates ({before:,} before) has no effect. Give a new run a name of its own (name=…)"
        )


def _is_finished(config: TrainConfig) -> bool:
    """Return whether a run has come to its end, which may be early."""
    path = config.folder / RESULTS
    if not path.is_file():
        return False
    results = read_json(path, remedy=RESTORE_OR_SCORE_AGAIN)
    return results.get("stopped_early") is True or results.get("max_updates") == config.training.max_updates
