"""The state of a run folder (new, unfinished or finished), and the settings that the run inherits.

A resumed run inherits the settings of its folder. A fine-tuned run inherits those of the tokenizer, the placeholders
and the model from its base run.
"""

import logging
from pathlib import Path
from typing import NamedTuple

from mt.config import (
    DEFAULT_ARCHITECTURE,
    ResolvedTrainConfig,
    TrainConfig,
    data_directions,
    model_presets,
    split_update,
)
from mt.core.errors import InputError, format_value
from mt.core.language import base_language
from mt.storage.folders import open_folder, read_description, resolve_model_path
from mt.storage.marian import is_transformers_folder
from mt.storage.run_folder import (
    CONFIG,
    RESTORE_OR_SCORE_AGAIN,
    RESULTS,
    WEIGHTS,
    config_differences,
    flat_config,
    read_config,
    refuse_removed_settings,
)
from mt.storage.validation import read_json
from mt.storage.weights import architecture_settings, refuse_other_tokenizer
from mt.training.checkpoint import Checkpoint, newest_checkpoint
from mt.training.continuation import continuation_hint
from mt.training.time_budget import CHOSEN_KEYS

logger = logging.getLogger(__name__)

CORPUS_PATHS = ("train", "valid", "test", "path")
"""The settings of a corpus that locate it."""

FINE_TUNING_RATE = 1e-3
"""Default learning rate of fine-tuning for models up to FINE_TUNING_WIDTH. For wider ones it is FINE_TUNING_RATE ×
FINE_TUNING_WIDTH / width."""
FINE_TUNING_WIDTH = 192


class RunState(NamedTuple):
    """The state of a run folder, with the completed config of the run. ``run_state`` returns one."""

    resolved: ResolvedTrainConfig
    """The config of the run, with the settings that it inherits from its folder or from the base run."""
    checkpoint: Checkpoint | None
    """The newest checkpoint, to resume from; None if there is none."""
    tokenizer_from: Path | None
    """The folder of the tokenizer; None if the run trains one."""
    is_finished: bool = False
    """Whether the test set has been scored after the last update or early stopping."""


def run_state(resolved: ResolvedTrainConfig) -> RunState:
    """Determine whether a run is new, unfinished or finished, and resolve the settings that it inherits.

    Raises:
        InputError: A file is corrupted, the config of the run differs, a finished run is to be trained for longer but
            has no checkpoints, or the base run is missing or has another model.
    """
    config = resolved.config
    run = config.folder
    checkpoint = newest_checkpoint(run)
    if config.training.continue_from and not (run / CONFIG).exists():
        base_run, _ = split_update(config.training.continue_from)
        # With other data, the text layer learns from them, as in fine-tuning.
        tokenizer_from = base_run if "data" in config.training.reset else run
        return RunState(resolved, checkpoint, tokenizer_from)
    base = config.training.init_from or config.tokenizer.reuse
    if not checkpoint and not (run / RESULTS).is_file():
        if base is None:
            return RunState(resolved, None, None)
        return RunState(inherit_from_base(Path(base), resolved), None, Path(base))
    recorded = read_config(run)
    resolved = _inherit_from_run(run, recorded, resolved)
    config = resolved.config
    is_finished = _is_finished(recorded, config)
    if not is_finished:
        refuse_removed_settings(run)
    _refuse_another_config(recorded, config, checkpoint, is_finished)
    if is_finished:
        return RunState(resolved, checkpoint, run, is_finished=True)
    if checkpoint is None:
        raise InputError(
            f"{run} is finished and its checkpoints are deleted, so it cannot be trained for longer. Start a new run "
            f"from its weights: name=… training.init_from={run}"
        )
    refuse_other_tokenizer(run, checkpoint.folder / WEIGHTS)
    return RunState(resolved, checkpoint, run)


def _inherit_from_run(run: Path, recorded: TrainConfig, resolved: ResolvedTrainConfig) -> ResolvedTrainConfig:
    """Return the config with the settings that the first start of the run chose or inherited.

    Settings that ``training.minutes`` chose are inherited only with the same ``training.minutes``. Values that the user
    gives for chosen settings or the learning rate have precedence.

    Args:
        run: The run folder.
        recorded: The config in it.
        resolved: The config of the command line.

    Raises:
        InputError: The user gives the tokenizer or the model other settings than those of the run.
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
    minutes = resolved.config.training.minutes
    if minutes is None or minutes != recorded.training.minutes:
        return resolved  # ``_refuse_another_config`` reports a difference
    keys = [key for key in CHOSEN_KEYS if key in values and not resolved.is_given(key)]
    return resolved.with_values({key: values[key] for key in keys}, "chosen")


def _refuse_another_config(
    recorded: TrainConfig, config: TrainConfig, checkpoint: Checkpoint | None, is_finished: bool
) -> None:
    """Raise InputError if the config differs from that in the run folder in anything but a greater length.

    The length of a run that stopped early cannot grow. The corpus of an unfinished run may have other paths: its
    content is compared when the run is resumed.
    """
    differing = config_differences(recorded, config, () if is_finished else CORPUS_PATHS)
    if config.training.epochs is not None:  # whose max_updates are counted later
        differing.pop("training.max_updates", None)
    is_longer = _is_extended(recorded, config)
    if differing.keys() <= ({"training.max_updates", "training.epochs"} if is_longer and not is_finished else set()):
        return
    lines = [
        f"  {key}: {format_value(before)} in the run, now {format_value(now)}"
        for key, (before, now) in differing.items()
    ]
    update = checkpoint.progress.update if checkpoint and (is_longer or not is_finished) else None
    lines += (
        [] if is_finished else ["Restore the old values to resume it; only its length may grow, and files may move."]
    )
    state = "has ended" if is_finished else "was started"
    if is_finished and is_longer:
        state = f"was stopped early by training.patience={config.training.patience}"
    raise InputError(
        f"{config.folder} {state} with another config:\n"
        + "\n".join([*lines, continuation_hint(config, update, differing)])
    )


def _is_extended(recorded: TrainConfig, config: TrainConfig) -> bool:
    """Return whether the config asks for more epochs, or more updates, than the run folder records."""
    before, now = recorded.training, config.training
    if before.epochs is None or now.epochs is None:
        return before.epochs == now.epochs and now.max_updates > before.max_updates
    return now.epochs > before.epochs


def _is_finished(recorded: TrainConfig, config: TrainConfig) -> bool:
    """Return whether a run has results and is not to be trained for longer, or stopped early."""
    path = config.folder / RESULTS
    if not path.is_file():
        return False
    results = read_json(path, remedy=RESTORE_OR_SCORE_AGAIN)
    return results.get("stopped_early") is True or not _is_extended(recorded, config)


def inherit_from_base(base: Path, resolved: ResolvedTrainConfig) -> ResolvedTrainConfig:
    """Return the config of a new run with the settings that it inherits from the folder of its base run.

    These are the settings of the tokenizer and, with ``training.init_from``, those of the model and a learning rate for
    fine-tuning.

    Raises:
        InputError: There is no such folder, it is corrupted, or the user gave other values for inherited settings.
    """
    training, folder = resolved.config.training, resolve_model_path(base)
    resolved = inherit_tokenizer(base, resolved)
    if training.init_from:
        resolved = inherit_model(base, resolved)
        known = [own.target for own in read_description(base).layers]
        for _, own in data_directions(resolved.config.data):
            if base_language(own) not in map(base_language, known):
                message = "training.init_from=%s translates into %s, but data.target_language=%s"
                logger.warning(message, base, ", ".join(known), own)
    if training.init_from and not resolved.is_given("training.optimizer.learning_rate"):
        rate = float(f"{FINE_TUNING_RATE * min(1, FINE_TUNING_WIDTH / resolved.config.model.width):.3g}")
        logger.info("fine-tuning: training.optimizer.learning_rate=%g, since it is not set", rate)
        resolved = resolved.with_values({"training.optimizer.learning_rate": rate}, "inherited")
    if not is_transformers_folder(folder) and ((folder / WEIGHTS).is_file() or training.init_from):
        refuse_other_tokenizer(folder, folder / WEIGHTS)
    return resolved


def inherit_tokenizer(base: Path, resolved: ResolvedTrainConfig) -> ResolvedTrainConfig:
    """Return the config with the settings of a folder's tokenizer and its number of placeholders.

    ``tokenizer.sampling`` is not inherited.

    Raises:
        InputError: The user gave another value for one of them, or other settings need placeholders or merges that the
            tokenizer lacks.
    """
    folder, config = open_folder(base), resolved.config
    folder.read_tokenizer_files()  # refuses a model without a tokenizer
    description = folder.read_description()
    tokenizer, text = description.tokenizer, description.text
    if tokenizer.kind != "bpe" and config.tokenizer.sampling > 0:
        raise InputError(
            f"tokenizer.sampling={config.tokenizer.sampling} needs a tokenizer of kind=bpe, but that of {base} has "
            f"kind={tokenizer.kind}; set tokenizer.sampling=0"
        )
    values: dict[str, object] = {f"tokenizer.{name}": value for name, value in tokenizer.model_dump().items()}
    values |= {"text.enabled": text.enabled, "text.slots": text.slots}
    values["tokenizer.symbols"] = symbols = tuple(dict.fromkeys(tokenizer.symbols + config.tokenizer.symbols))
    if base != config.folder:
        growth = config.tokenizer.extend + len(symbols) - len(tokenizer.symbols)
        values["tokenizer.vocabulary_size"] = tokenizer.vocabulary_size + growth
    own = config.text
    needs_placeholders = own.terms or own.patterns or own.augmentation.differs_from_default("slots")
    if own.enabled and needs_placeholders and not text.enabled:
        raise InputError(
            "text.terms, text.patterns and text.augmentation.slots need placeholders, which the tokenizer of "
            f"{base} lacks; omit them, or train a new tokenizer"
        )
    differing = {key: value for key, value in values.items() if resolved.value(key) != value}
    fixed = {key: value for key, value in differing.items() if key != "tokenizer.symbols"}
    _refuse_given(resolved, fixed, f"the tokenizer is that of {base}; omit this")
    if differing:
        changes = (
            f"{key} {format_value(value)} instead of {format_value(resolved.value(key))}"
            for key, value in differing.items()
        )
        logger.info("the tokenizer is that of %s, so %s", base, ", ".join(changes))
    if not text.enabled:
        differing["text.augmentation.slots"] = 0.0
    return resolved.with_values(differing, "inherited")


def inherit_model(base: Path, resolved: ResolvedTrainConfig) -> ResolvedTrainConfig:
    """Return the config with the ``architecture_settings`` of a model. Dropout keeps its given or default value.

    Raises:
        InputError: The user asked for another model.
    """
    model, own = read_description(base).model, resolved.config.model
    inherited = architecture_settings(model)
    if inherited == architecture_settings(own):
        return resolved
    # The architecture does not count as given, because the default of model= sets it, too.
    given = [name for name in type(own).model_fields if name != "architecture" and resolved.is_given(f"model.{name}")]
    if model.architecture != own.architecture and (given or own.architecture != DEFAULT_ARCHITECTURE):
        raise InputError(
            f"training.init_from={base} is a {model.architecture}, this run a {own.architecture}; "
            f"omit the model settings, or choose one of model={', '.join(model_presets(model.architecture))}"
        )
    differing = {
        f"model.{name}": value for name, value in inherited.items() if name in given and getattr(own, name) != value
    }
    _refuse_given(resolved, differing, f"the model is that of training.init_from={base}; omit this")
    logger.info("the model is that of %s", base)
    values: dict[str, object] = {"model": inherited}
    if model.architecture == own.architecture:
        values = {f"model.{name}": value for name, value in inherited.items()}
    return resolved.with_values(values, "inherited")


def _refuse_given(resolved: ResolvedTrainConfig, values: dict[str, object], reason: str) -> None:
    """Raise InputError if the user has given one of the keys of ``values``.

    Args:
        resolved: The config of the run.
        values: The values of the base run, by key, that differ from the config.
        reason: The middle of the message, between the given values and the values to set instead.
    """
    if given := [key for key in values if resolved.is_given(key)]:
        asked = " ".join(f"{key}={format_value(resolved.value(key))}" for key in given)
        needed = " ".join(f"{key}={format_value(values[key])}" for key in given)
        raise InputError(f"{asked}: {reason}, or set {needed}")
