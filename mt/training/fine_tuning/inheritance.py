"""The settings that a run inherits from its base run: those of the tokenizer, the placeholders and the model."""

import logging
from pathlib import Path

from mt.config import TrainConfig
from mt.config.presets import DEFAULT_ARCHITECTURE, model_presets
from mt.config.resolved import Resolved
from mt.core.errors import InputError
from mt.core.wording import format_value
from mt.storage.folders import read_description
from mt.storage.hub import resolve_model_path
from mt.storage.marian import is_transformers_folder
from mt.storage.run_folder import WEIGHTS
from mt.storage.weights import architecture_settings, refuse_other_tokenizer

FINE_TUNING_RATE = 1e-3
"""Default learning rate of fine-tuning for models up to FINE_TUNING_WIDTH. For wider ones it is FINE_TUNING_RATE ×
FINE_TUNING_WIDTH / width."""
FINE_TUNING_WIDTH = 192

logger = logging.getLogger(__name__)


def inherit_from_base(base: Path, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
    """Return the config of a new run with the settings that it inherits from the folder of its base run.

    These are the settings of the tokenizer and, with ``training.init_from``, those of the model and a learning rate for
    fine-tuning.

    Raises:
        InputError: There is no such folder, it is damaged, or the user gave other values for inherited settings.
    """
    training, folder = resolved.config.training, resolve_model_path(base)
    if not folder.is_dir():
        key = "training.init_from" if training.init_from else "tokenizer.reuse"
        raise InputError(f"{key}={base}: no such run or model folder; give the path of one")
    resolved = inherit_tokenizer(base, resolved)
    if training.init_from:
        resolved = inherit_model(base, resolved)
    if training.init_from and not resolved.is_given("training.optimizer.learning_rate"):
        rate = float(f"{FINE_TUNING_RATE * min(1, FINE_TUNING_WIDTH / resolved.config.model.width):.3g}")
        logger.info("fine-tuning: training.optimizer.learning_rate=%g, because you set none", rate)
        resolved = resolved.with_values({"training.optimizer.learning_rate": rate}, "inherited")
    if not is_transformers_folder(folder) and ((folder / WEIGHTS).is_file() or training.init_from):
        refuse_other_tokenizer(folder, folder / WEIGHTS)
    return resolved


def inherit_tokenizer(base: Path, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
    """Return the config with the settings of a folder's tokenizer and the number of its placeholders.

    ``tokenizer.sampling`` is not inherited.

    Raises:
        InputError: The user gave another value for one of them, or the tokenizer lacks what other settings need.
    """
    description, config = read_description(base), resolved.config
    tokenizer, text = description.tokenizer, description.text
    if tokenizer.kind != "bpe" and config.tokenizer.sampling > 0:
        raise InputError(
            f"tokenizer.sampling={config.tokenizer.sampling} needs a tokenizer of kind=bpe, but that of {base} has "
            f"kind={tokenizer.kind}; set tokenizer.sampling=0"
        )
    values: dict[str, object] = {f"tokenizer.{name}": value for name, value in tokenizer.model_dump().items()}
    values |= {"text.enabled": text.enabled, "text.slots": text.slots}
    own = config.text
    needs_placeholders = own.terms or own.patterns or own.augmentation.differs_from_default("slots")
    if own.enabled and needs_placeholders and not text.enabled:
        raise InputError(
            "text.terms, text.patterns and text.augmentation.slots need placeholders, which the tokenizer of "
            f"{base} lacks; leave them out, or train a tokenizer of your own"
        )
    differing = {key: value for key, value in values.items() if resolved.value(key) != value}
    _refuse_given(resolved, differing, f"the tokenizer is that of {base}; leave this out")
    if differing:
        own_values = {key: format_value(resolved.value(key)) for key in differing}
        changes = (f"{key} {format_value(value)} instead of {own_values[key]}" for key, value in differing.items())
        logger.info("the tokenizer is that of %s, so %s", base, ", ".join(changes))
    if not text.enabled:
        differing["text.augmentation.slots"] = 0.0
    return resolved.with_values(differing, "inherited")


def inherit_model(base: Path, resolved: Resolved[TrainConfig]) -> Resolved[TrainConfig]:
    """Return the config with the ``architecture_settings`` of a model. Dropout keeps its given or default value.

    Raises:
        InputError: The user asked for another model.
    """
    model, own = read_description(base).model, resolved.config.model
    if architecture_settings(model) == architecture_settings(own):
        return resolved
    # The architecture does not count as given, because the default of model= sets it, too.
    given = [name for name in type(own).model_fields if name != "architecture" and resolved.is_given(f"model.{name}")]
    if model.architecture != own.architecture and (given or own.architecture != DEFAULT_ARCHITECTURE):
        raise InputError(
            f"training.init_from={base} is a {model.architecture}, this run a {own.architecture}; "
            f"leave out the model settings, or take one of model={', '.join(model_presets(model.architecture))}"
        )
    differing = {
        f"model.{name}": value
        for name, value in architecture_settings(model).items()
        if name in given and getattr(own, name) != value
    }
    _refuse_given(resolved, differing, f"the model is that of training.init_from={base}; leave this out")
    logger.info("the model is that of %s", base)
    inherited = architecture_settings(model)
    if model.architecture != own.architecture:
        return resolved.with_values({"model": inherited}, "inherited")
    return resolved.with_values({f"model.{name}": value for name, value in inherited.items()}, "inherited")


def _refuse_given(resolved: Resolved[TrainConfig], values: dict[str, object], reason: str) -> None:
    """Raise InputError if the user has given one of the keys of ``values``.

    Args:
        resolved: The config of the run.
        values: The values of the base run, by key, that differ from the config.
        reason: The part of the message between the given values and the values to set instead.
    """
    if given := [key for key in values if resolved.is_given(key)]:
        asked = " ".join(f"{key}={format_value(resolved.value(key))}" for key in given)
        needed = " ".join(f"{key}={format_value(values[key])}" for key in given)
        raise InputError(f"{asked}: {reason}, or set {needed}")
