"""The start of a run that continues another run with other settings (``training.continue_from``).

The new folder starts as a copy of the other run at a checkpoint, without config.yaml and with the progress adapted to
the new settings. If the run is stopped before config.yaml is written, the next attempt makes a new copy. After that,
the other run is no longer needed.
"""

import logging
import shlex
import shutil
from collections.abc import Mapping

from mt.config import TrainConfig, TrainingConfig, split_update
from mt.core.errors import InputError, format_value
from mt.core.installation import as_typed_here
from mt.storage.folders import refuse_links_out
from mt.storage.run_folder import (
    CHECKPOINTS,
    CONFIG,
    LOG,
    RESULTS,
    SCORED,
    WEIGHTS,
    config_differences,
    read_config,
    refuse_removed_settings,
)
from mt.storage.weights import write_tensors
from mt.training.checkpoint import OPTIMIZER, Progress, checkpoint_folders, newest_checkpoint, save_checkpoint

logger = logging.getLogger(__name__)

VALIDATION_SETTINGS = ("training.metric", "training.valid_bleu_pairs", "decoding", "data.valid")
"""Settings whose change makes validation scores incomparable with earlier ones."""
# fmt: off
NEEDED_RESETS = {
    **dict.fromkeys((
        "data.source_language", "data.target_language", "training.init_from", "training.start_share",
        "training.initial_embeddings", "training.batching", "training.minutes",
    ), "run"),
    **dict.fromkeys(("training.optimizer.kind", "training.freeze"), "optimizer"),
    **dict.fromkeys((
        "training", *VALIDATION_SETTINGS, "data.train", "data.test", "data.path", "model.dropout",
        "model.attention_dropout", "model.variational_dropout",
    ), None),
    **dict.fromkeys(("data", "seed", "text.augmentation", "tokenizer.sampling"), "data"),
    "": "run",
}
# fmt: on
"""Prefix of a key → the part of the state to reset if such a setting changes: a value of ``training.reset``, the whole
run, or None. The first matching prefix applies. Settings in MAY_DIFFER_ON_RESUME may change, too. Files of the training
data may move: their pairs are compared later."""


def _needed_reset(key: str) -> str | None:
    return next(NEEDED_RESETS[part] for part in NEEDED_RESETS if key.startswith(part))


def continuation_hint(config: TrainConfig, update: int | None, differing: Mapping[str, tuple]) -> str:
    """Return a hint how to train with other settings than those of a run: under another name, from the start or from
    the newest checkpoint of the run.

    Args:
        config: The config with the other settings.
        update: The update of the checkpoint; None if the run has no updates left after it.
        differing: The differences, as ``config_differences`` returns them.
    """
    hint = "To train with these settings from the start, choose another name (name=…)."
    if update is None or any(map(_needed_reset, differing)):
        return hint
    words = [f"name={config.name}-2", f"runs={config.runs}", f"training.continue_from={config.folder}"]
    words += [f"{key}={format_value(now)}" for key, (_, now) in differing.items()]
    command = as_typed_here(f"python train.py {shlex.join(words)}")
    return f"{hint} To continue from update {update:,} of this run with them:\n  {command}"


def copy_base_run(config: TrainConfig) -> None:
    """Copy the files of the run to continue into the new run folder.

    Raises:
        InputError: That run cannot be continued, or not with these settings.
    """
    settings, run = config.training, config.folder
    base, chosen = split_update(str(settings.continue_from))
    refuse_links_out(base)
    folders = checkpoint_folders(base)
    update = max(folders, default=-1) if chosen is None else chosen
    if update not in folders:
        raise InputError(
            f"training.continue_from={settings.continue_from}: the checkpoints of {base} are those of the updates "
            f"{format_value(list(folders))}; choose one of them, or start a new run from the weights: "
            f"training.init_from={base}"
        )
    refuse_removed_settings(base)
    if (run / RESULTS).exists():
        raise InputError(f"{run} holds the results of another run; choose another name (name=…)")
    recorded = read_config(base)
    differing = config_differences(recorded, config)
    if lines := [
        f"  {key}: {format_value(before)} in {base}, now {format_value(now)} (needs a reset: {part})"
        for key, (before, now) in differing.items()
        if (part := _needed_reset(key)) not in (None, *settings.reset)
    ]:
        raise InputError(
            "\n".join([f"the training of {base} cannot continue with other values of these settings:", *lines])
            + "\nOmit them, or reset these parts: optimizer and data with training.reset, the run by fine-tuning with "
            f"training.init_from={base} instead of training.continue_from"
        )
    if settings.max_updates <= update:
        raise InputError(
            f"training.max_updates={settings.max_updates} includes the {update:,} updates of {base}: set a larger value"
        )
    shutil.rmtree(run / CHECKPOINTS, ignore_errors=True)  # of an attempt that ended early
    later = [folder.name for number, folder in folders.items() if number > update]
    skipped = shutil.ignore_patterns(".*", CONFIG, LOG, RESULTS, SCORED, *later)
    shutil.copytree(base, run, ignore=skipped, dirs_exist_ok=True)
    newest, checkpoint = newest_checkpoint(base), newest_checkpoint(run)
    assert newest and checkpoint
    progress = checkpoint.progress
    is_lost = recorded.training.weights != "best" or newest.progress.best_update != progress.best_update
    if is_lost:
        (run / WEIGHTS).unlink(missing_ok=True)  # not the best up to this update
    is_other_score = "data" in settings.reset or any(key.startswith(VALIDATION_SETTINGS) for key in differing)
    if is_other_score or (is_lost and settings.weights == "best"):
        logger.info("the best weights so far are lost or not comparable: the next validations choose new ones")
        # Only weights that the other run validated are validated, so that equal settings give an equal run.
        progress.validation_due |= is_other_score or progress.best_update == update
        progress.best_score = None
    _adapt_progress(progress, recorded.training.batch_tokens, settings)
    save_checkpoint(run, progress, weights={}, metadata={}, optimizer={})  # its folder exists: writes the progress only
    if "optimizer" in settings.reset:
        write_tensors(checkpoint.folder / OPTIMIZER, {})
    logger.info("continuing %s after update %s", base, f"{update:,}")


def _adapt_progress(progress: Progress, batch_tokens: int, settings: TrainingConfig) -> None:
    """Adapt the position in data, schedule and patience to the settings of the new run, in place.

    Args:
        progress: The progress at the checkpoint.
        batch_tokens: The batch size of the other run.
        settings: The settings of the new run.
    """
    if batch_tokens != settings.batch_tokens:
        progress.batch = round(progress.batch * batch_tokens / settings.batch_tokens)
        logger.info("the batch size changes: some pairs may occur twice or not at all in epoch %d", progress.epoch)
    if "data" in settings.reset:
        progress.epoch = progress.batch = 0
    if "schedule" in settings.reset:
        progress.schedule_start = progress.update
    if "schedule" in settings.reset or settings.schedule.kind != "plateau":
        progress.rate_reductions = 0
    if progress.best_score is None or 0 < settings.patience <= progress.validations_without_gain:
        progress.validations_without_gain = 0
