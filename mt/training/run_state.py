"""What a run folder holds, and what follows from it: begin, go on, or nothing more to do."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mt.config import ModelConfig, RulesConfig, TextConfig, TrainConfig
from mt.config.presets import default_model, model_presets
from mt.core.errors import InputError
from mt.core.json_file import read_json
from mt.core.wording import format_value
from mt.storage.folders import read_description
from mt.storage.hub import resolve_model_path
from mt.storage.marian import is_marian
from mt.storage.run_folder import CHOICE, RESULTS, WEIGHTS, config_differences, read_config
from mt.storage.weights import architecture_settings, refuse_other_tokenizer
from mt.training.checkpoint import Checkpoint, checkpoint_folders, newest_checkpoint
from mt.training.choice_file import RecordedChoice

FINE_TUNING_RATE = 1e-3
"""The learning rate of a run that begins with the weights of another, unless one is given, up to FINE_TUNING_WIDTH. Of
wider models it is smaller in proportion, because they take smaller steps."""
FINE_TUNING_WIDTH = 192

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunState:
    """The state of a run folder."""

    config: TrainConfig
    """The run's config, with the settings of a tokenizer that was trained before."""
    checkpoint: Checkpoint | None
    """The checkpoint to resume from; None for a new run."""
    tokenizer_from: Path | None
    """The folder that the tokenizer comes from; None if one is to be trained."""
    is_finished: bool


def run_state(config: TrainConfig) -> RunState:
    """Determines whether a run is new, unfinished or finished, from its folder and that of the model it starts from.

    Returns:
        Its state. The config in it is completed with what an existing run has already settled.

    Raises:
        InputError: A file is damaged; or the run was begun with another config; or it is finished and its checkpoints
            are gone, so that it cannot be trained for longer; or what it starts from is not there or has another model.
    """
    run = config.folder
    checkpoint = newest_checkpoint(run)
    origin = config.training.init_from or config.tokenizer.reuse
    if checkpoint or (run / RESULTS).is_file():
        config = _with_begun_learning_rate(run, _with_choice(run, config))
        config = _with_tokenizer_of(run, config) if origin else config
        config = _with_model_of(run, config) if config.training.init_from else config
        _refuse_another_config(config)
        if _is_finished(config):
            _refuse_to_extend_what_stopped_early(config)
            return RunState(config, checkpoint, run, is_finished=True)
        if checkpoint is None:
            raise InputError(
                f"{run} is finished and its checkpoints are gone: it cannot go on. Start a new run from its weights: "
                f"name=… training.init_from={run}"
            )
        refuse_other_tokenizer(run, checkpoint.folder / WEIGHTS)
        return RunState(config, checkpoint, run, is_finished=False)
    if twin := _unfinished_run_like(config):
        logger.info("%s is an unfinished run with the same settings: name=%s goes on with it", twin, twin.name)
    if origin is None:
        return RunState(config, None, None, is_finished=False)
    return RunState(_starting_from(Path(origin), config), None, Path(origin), is_finished=False)


def _with_choice(run: Path, config: TrainConfig) -> TrainConfig:
    """Returns the config with the settings that were chosen when the run began, unless they are not asked for."""
    if config.training.minutes is None and config.choice is None:
        return config
    if not (run / CHOICE).exists() and read_config(run).training.minutes is None:
        return config  # nothing was chosen: the difference is told
    own = RecordedChoice.read(run)
    taken = Path(config.choice) if config.choice else None
    if taken and taken.exists() and RecordedChoice.read(taken).decisions != own.decisions:
        raise InputError(f"choice={taken} is not the choice that {run} was begun with: leave it out")
    return own.applied(config)


def _starting_from(origin: Path, config: TrainConfig) -> TrainConfig:
    """Returns the config of a run that begins with the tokenizer, and perhaps the weights, of another."""
    folder = resolve_model_path(origin)
    if not folder.is_dir():
        key = "training.init_from" if config.training.init_from else "tokenizer.reuse"
        raise InputError(f"{key}={origin}: no such run or model folder")
    config = _with_tokenizer_of(origin, config)
    if config.training.init_from:
        config = _with_slow_learning(_with_model_of(origin, config))
    if not is_marian(folder) and ((folder / WEIGHTS).is_file() or config.training.init_from):
        refuse_other_tokenizer(folder, folder / WEIGHTS)
    return config


def _with_tokenizer_of(origin: Path, config: TrainConfig) -> TrainConfig:
    """Returns the config with the settings that the tokenizer of a folder was trained with, whether its text layer is
    on and the number of its slots among them. Sampling stays as it is: it is no property of a tokenizer."""
    theirs = read_description(origin)
    config = config.model_copy(update={"text": _with_slots_of(origin, theirs.text, config.text)})
    ours = config.tokenizer
    tokenizer = ours.model_copy(update=theirs.tokenizer.model_dump())
    if tokenizer.kind == "char" and tokenizer.sampling > 0:
        raise InputError(
            f"tokenizer.sampling={tokenizer.sampling}: the tokenizer of {origin} has kind=char, which cuts a text in "
            "one way only; set tokenizer.sampling=0"
        )
    replaced = [name for name in type(ours).model_fields if getattr(tokenizer, name) != getattr(ours, name)]
    if given := [name for name in replaced if name in ours.model_fields_set]:
        asked = " ".join(f"tokenizer.{name}={format_value(getattr(ours, name))}" for name in given)
        needed = " ".join(f"tokenizer.{name}={format_value(getattr(tokenizer, name))}" for name in given)
        raise InputError(f"{asked}: the tokenizer is that of {origin}; leave this out, or set {needed}")
    if replaced:
        instead = (f"{name} {getattr(tokenizer, name)} instead of {getattr(ours, name)}" for name in replaced)
        logger.info("the tokenizer is that of %s: %s", origin, ", ".join(instead))
    return config.model_copy(update={"tokenizer": tokenizer})


def _with_slots_of(origin: Path, theirs: RulesConfig, ours: TextConfig) -> TextConfig:
    """Return our text layer, turned on or off and with as many slots as another, whose tokenizer we take."""
    replaced = [name for name in ("enabled", "slots") if getattr(theirs, name) != getattr(ours, name)]
    if given := [name for name in replaced if name in ours.model_fields_set]:
        asked = " ".join(f"text.{name}={format_value(getattr(ours, name))}" for name in given)
        needed = " ".join(f"text.{name}={format_value(getattr(theirs, name))}" for name in given)
        raise InputError(f"{asked}: the tokenizer is that of {origin}; leave this out, or set {needed}")
    if not replaced:
        return ours
    instead = (
        f"{name} {format_value(getattr(theirs, name))} instead of {format_value(getattr(ours, name))}"
        for name in replaced
    )
    logger.info("the text layer is that of %s: %s", origin, ", ".join(instead))
    update: dict[str, object] = {name: getattr(theirs, name) for name in replaced}
    if not theirs.enabled:
        if ours.terms or ours.patterns or ours.augmentation.is_given("slots"):
            raise InputError(
                "text.terms, text.patterns and text.augmentation.slots need slots, which the tokenizer of "
                f"{origin} does not have"
            )
        update["augmentation"] = ours.augmentation.model_copy(update={"slots": 0.0})
    return ours.model_copy(update=update)


def _with_begun_learning_rate(run: Path, config: TrainConfig) -> TrainConfig:
    """Return the config of a fine-tuned run with the learning rate that it was begun with, unless one is given."""
    if config.training.init_from and "learning_rate" not in config.training.optimizer.model_fields_set:
        return _with_learning_rate(config, read_config(run).training.optimizer.learning_rate)
    return config


def _with_model_of(origin: Path, config: TrainConfig) -> TrainConfig:
    """Returns the config with the model of a folder, whose weights fit no other. Only dropout may differ.

    Raises:
        InputError: Another model was asked for.
    """
    theirs, ours = read_description(origin).model, config.model
    if architecture_settings(theirs) == architecture_settings(ours):
        return config
    _refuse_another_model(theirs, config, origin)
    asked = {name: getattr(ours, name) for name in _given(ours) if name in type(theirs).model_fields}
    logger.info("the model is that of %s", origin)
    config = config.model_copy(update={"model": theirs.model_copy(update=asked)})
    if wrong := list(config.contradictions()):
        raise InputError("; ".join(wrong))
    return config


def _given(model: ModelConfig) -> list[str]:
    """Returns the settings of a model that were asked for, one by one or by the name of a preset. The architecture has
    no part in this: the option that stands for "none asked for" has one, too."""
    return [name for name in type(model).model_fields if name in model.model_fields_set - {"architecture"}]


def _with_slow_learning(config: TrainConfig) -> TrainConfig:
    """Returns the config of a run that begins with another's weights: with a lower learning rate, if none is given."""
    optimizer = config.training.optimizer
    if "learning_rate" in optimizer.model_fields_set:
        return config
    rate = float(f"{FINE_TUNING_RATE * min(1, FINE_TUNING_WIDTH / config.model.width):.3g}")
    logger.info("fine-tuning: training.optimizer.learning_rate=%g, as none is given", rate)
    return _with_learning_rate(config, rate)


def _with_learning_rate(config: TrainConfig, rate: float) -> TrainConfig:
    optimizer = config.training.optimizer.model_copy(update={"learning_rate": rate})
    return config.model_copy(update={"training": config.training.model_copy(update={"optimizer": optimizer})})


def _refuse_another_model(theirs: ModelConfig, config: TrainConfig, origin: Path) -> None:
    """Raises InputError if another model was asked for than the one whose weights are in a folder."""
    ours = config.model
    if theirs.architecture != ours.architecture and (_given(ours) or ours.architecture != default_model().architecture):
        raise InputError(
            f"training.init_from={origin} is a {theirs.architecture}, this run a {ours.architecture}: "
            f"leave the model out, or take one of model={', '.join(model_presets(theirs.architecture))}"
        )
    named = [name for name in _given(ours) if name in architecture_settings(ours)]
    if wrong := [name for name in named if getattr(theirs, name) != getattr(ours, name)]:
        asked, needed = (
            " ".join(f"model.{name}={format_value(getattr(one, name))}" for name in wrong) for one in (ours, theirs)
        )
        raise InputError(
            f"{asked}: the model is that of training.init_from={origin}; leave the model out, or set {needed}"
        )


def _refuse_another_config(config: TrainConfig) -> None:
    """Raises InputError unless a run has the config that it was begun with. training.max_updates may have grown."""
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


def _refuse_to_extend_what_stopped_early(config: TrainConfig) -> None:
    before = read_config(config.folder).training.max_updates
    if config.training.max_updates > before:
        raise InputError(
            f"{config.folder} was stopped early by training.patience={config.training.patience}, so a larger "
            f"training.max_updates ({before:,} before) has no effect. Give a new run a name of its own (name=…)"
        )


def _unfinished_run_like(config: TrainConfig) -> Path | None:
    """Returns a run of another name that has the settings of this one and is not finished. Its user may have begun it
    under another default name."""
    return next((folder for folder in _unfinished_runs(config) if not _differs(folder, config)), None)


def _unfinished_runs(config: TrainConfig) -> Iterator[Path]:
    for folder in sorted(Path(config.runs).glob("*")):
        if folder != config.folder and checkpoint_folders(folder) and not (folder / RESULTS).is_file():
            yield folder


def _differs(folder: Path, config: TrainConfig) -> bool:
    with contextlib.suppress(InputError):
        return bool(config_differences(read_config(folder), _with_begun_learning_rate(folder, config)))
    return True


def _is_finished(config: TrainConfig) -> bool:
    """Returns whether a run has come to its end, which may be early."""
    path = config.folder / RESULTS
    if not path.is_file():
        return False
    results = read_json(path)
    return results.get("stopped_early") is True or results.get("max_updates") == config.training.max_updates
