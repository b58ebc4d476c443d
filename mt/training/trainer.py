"""The training loop: train steps, validations and checkpoints. A resumed run continues as if it had not been
stopped."""

import contextlib
import logging
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar

import torch

from mt.config import ResolvedTrainConfig
from mt.core.columns import release_memory
from mt.core.device import choose_precision, return_freed_memory, tf32_in_recurrent_layers
from mt.core.errors import Interrupted
from mt.core.files import make_folder
from mt.core.process import StopRequest
from mt.data.batching.batches import BatchSettings, TrainingBatches
from mt.data.cleaning.findings import write_dropped
from mt.data.corpus import evenly_spaced_pairs
from mt.distributed.replication import unsharded
from mt.distributed.workers import Workers
from mt.storage.model_description import AlignmentConfig, ConfidenceConfig, ModelDescription
from mt.storage.model_folder import write_description, write_words
from mt.storage.run_folder import CHECKPOINTS, PROVENANCE, RESULTS, WEIGHTS, write_config
from mt.storage.validation import write_json
from mt.storage.weights import load_weights, read_tensors, weights_metadata, weights_of, write_tensors
from mt.training.checkpoint import (
    INITIAL_WEIGHTS,
    Checkpoint,
    Progress,
    is_scheduled,
    remove_checkpoints,
    save_checkpoint,
    scheduled_checkpoints,
)
from mt.training.final_outputs import fit_confidence, write_scores, write_weights
from mt.training.hints import log_hints, run_length_hint
from mt.training.initial_weights import initial_model
from mt.training.objective import Objective
from mt.training.preparation import PreparedData
from mt.training.provenance import begin_provenance, recorded_batching, resolved_settings, resumed_provenance
from mt.training.time_budget import MAX_ALIGNMENT_PAIRS
from mt.training.updater import UpdateBatches, Updater, feed_process_count, prefetch_updates
from mt.training.validation import Monitor, Validator
from mt.translation.alignment import choose_alignment

logger = logging.getLogger(__name__)

OnValidation = Callable[[int, dict[str, float]], object]
"""A user's function to call after each validation. Arguments: the number of updates done; the loss and the scores by
metric key."""
ON_VALIDATION: ContextVar[OnValidation | None] = ContextVar("on_validation", default=None)
"""The user's function. A context variable stays in the process that sets it: worker processes could not unpickle a
function of a notebook, and only the main process calls it."""


class Trainer:
    """Trains the model of one run. Each worker holds one, with its replica of the model and its share of the data."""

    def __init__(
        self,
        resolved: ResolvedTrainConfig,
        data: PreparedData,
        workers: Workers,
        checkpoint: Checkpoint | None,
    ) -> None:
        """
        Args:
            resolved: The config of the run, with the origins of its settings.
            data: The data of the run.
            workers: All of them have to construct a trainer.
            checkpoint: The checkpoint to resume from; None for a new run.
        """
        config = resolved.config
        self.data = data
        self.workers = workers
        self.run = config.folder
        self.precision = choose_precision(config.training.precision, workers.device)
        self.weights_metadata = weights_metadata(config.model, data.tokenizers.files())
        model, self.interpolation, initial_checksum = initial_model(config, data, workers, checkpoint)
        self.model = model.to(workers.device)
        # The weights of training.init_from are validated before the first update, because they may stay the best.
        self.progress = checkpoint.progress if checkpoint else Progress(validation_due=initial_checksum is not None)
        self.objective = Objective(self.model, config.training)
        batching = recorded_batching(config.folder) if checkpoint else config.training.batching
        batch_settings = BatchSettings(
            config.text.augmentation,
            config.tokenizer.sampling,
            config.seed,
            config.training.batch_tokens,
            packed=batching == "packed",
            processes=feed_process_count(config, workers),
        )
        self.batches = TrainingBatches(data.train, [*data.layers.values()], batch_settings, workers, data.sizes)
        if epochs := config.training.epochs:
            # Rounded, because in floating point 0.1 epochs of 30 batches are more than 3.
            shares = ((number, min(1, epochs - number)) for number in range(math.ceil(epochs)))
            batches = sum(self.batches.batches_in_epoch(number) * share for number, share in shares)
            updates = math.ceil(round(batches / config.training.accumulate, 6))
            resolved = resolved.with_values({"training.max_updates": max(1, updates)}, "chosen")
        self.config = config = resolved.config
        shape = self.batches.packed_shape
        self.updater = Updater(config, self.objective, workers, self.precision, self.progress, shape)
        self.validator = Validator(self.objective, data, config, workers, self.precision)
        self.stop = StopRequest()
        self._has_logged_tie = False
        self.monitor: Monitor | None = None
        """Records and shows the progress; None except in the main process during ``fit``."""
        settings = resolved_settings(config, data, workers, self.precision, self.updater.optimizer, self.batches)
        self.provenance = workers.run_on_main(
            lambda: begin_provenance(config, data, workers, settings, resolved.origins, initial_checksum)
        )
        """The content of provenance.json."""
        if checkpoint:
            self._restore(checkpoint)

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Check and extend the provenance, and restore the state of the updater."""
        self.provenance = resumed_provenance(self.config, self.provenance, self.progress.update)
        if self.config.training.weights == "best" and self.progress.best_score is not None:
            # Raise now if the best weights so far are corrupted, because the run may find no better ones.
            read_tensors(self.run / WEIGHTS)
        self.updater.restore(checkpoint)
        logger.info("resuming after update %d", self.progress.update)

    def begin(self) -> None:
        """Write the files that describe the run, such as config.yaml and the tokenizer, and log the size of the run.

        results.json is removed. All workers have to call this, directly before ``fit``, so that a run that fails
        earlier leaves no files.
        """
        self.workers.barrier()
        if self.workers.is_main:
            self.data.tokenizers.save(self.run)
            self._write_description(AlignmentConfig())
            spellings = {
                direction.key: layer.spelling for direction, layer in self.data.layers.items() if layer.spelling
            }
            words = {key: spelling.counts for key, spelling in spellings.items()}
            capitalized = {
                key: sorted(spelling.capitalized)
                for key, spelling in spellings.items()
                if spelling.capitalized is not None
            }
            counts = words if self.data.has_language_tokens else next(iter(words.values()), None)
            write_words(self.run, counts, capitalized, self.data.layer.terms)
            if self.data.dropped:
                write_dropped(self.run, self.data.dropped)
            if self.interpolation.base_weight and self.progress.update == 0:
                make_folder(self.run / CHECKPOINTS)
                write_tensors(self.run / INITIAL_WEIGHTS, self.interpolation.initial_weights, self.weights_metadata)
            write_json(self.run / PROVENANCE, self.provenance)
            write_config(self.run, self.config)  # last: with it, a run with continue_from has begun
            (self.run / RESULTS).unlink(missing_ok=True)
        self._log_size()

    def _write_description(self, alignment: AlignmentConfig, confidence: ConfidenceConfig | None = None) -> None:
        texts = {direction: layer.config for direction, layer in self.data.layers.items()}
        has_tokens = self.data.has_language_tokens
        description = ModelDescription.of(self.config, texts, alignment, confidence, has_language_tokens=has_tokens)
        write_description(self.run, description)

    def _log_size(self) -> None:
        """Log the sizes of the model and of an epoch, and hints if batches or the run are too short."""
        config, workers = self.config, self.workers
        updates = config.training.max_updates
        # An epoch may have no batches if the weights of a mixture's corpora are small.
        batches = max(1, self.batches.batches_in_epoch(self.progress.epoch))
        epochs = updates * config.training.accumulate / batches
        logger.info(
            "%s: %s parameters%s, vocabulary %s, on %s%s in %s; %d batches an epoch, %s updates: %s epochs",
            config.model.architecture,
            f"{self.model.parameter_count:,}",
            f" ({self.model.trained_parameter_count:,} of them trained)" if config.training.freeze else "",
            f"{self.data.tokenizers.target.vocabulary_size:,}",
            f"{workers.size} workers, " if workers.size > 1 else "",
            workers.device,
            str(self.precision).removeprefix("torch."),
            batches,
            f"{updates:,}",
            f"{epochs:,.2f}",
        )
        if (long_pairs := self.batches.num_oversized_pairs) and not self.batches.packed_shape:
            logger.warning(
                "%s pairs have more tokens than training.batch_tokens=%d: each of them is a batch. If memory runs out, "
                "set a smaller data.max_length",
                f"{long_pairs:,}",
                config.training.batch_tokens,
            )
        if self.progress.update == 0 and config.training.minutes is config.training.epochs is None:
            log_hints(run_length_hint(epochs))

    def fit(self) -> None:
        """Train until ``max_updates`` or early stopping, with validations and checkpoints. All workers have to call
        this, after ``begin``.

        Raises:
            RunError: Training diverged.
            Interrupted: A signal arrived. A checkpoint is saved.
        """
        settings, progress = self.config.training, self.progress
        monitor: AbstractContextManager[Monitor | None] = nullcontext()
        if self.workers.is_main:
            monitor = Monitor(self.run, progress, settings.max_updates)
        with self.stop, tf32_in_recurrent_layers(self.precision), monitor as self.monitor:
            if progress.validation_due:
                self._validate()
            updates = prefetch_updates(self.batches, progress.epoch, progress.batch, settings.accumulate, self.workers)
            with contextlib.closing(updates):
                while progress.update < settings.max_updates and not self._is_out_of_patience():
                    self._step(next(updates))
            if self._is_out_of_patience():
                logger.info(
                    "stopped early: %d validations no better than that of update %d (training.metric=%s)",
                    settings.patience,
                    progress.best_update,
                    settings.metric,
                )

    def _is_out_of_patience(self) -> bool:
        patience = self.config.training.patience
        return bool(patience) and self.progress.validations_without_gain >= patience

    def _step(self, batches: UpdateBatches) -> None:
        """Make one train step. Then log, save a checkpoint and validate if each is due. All workers have to call
        this."""
        settings, progress = self.config.training, self.progress
        started = time.perf_counter()
        norm, rate = self.updater.train_step(batches)
        last = progress.update == settings.max_updates
        log_is_due = progress.update % settings.log_every == 0 or last
        checkpoint_is_due = is_scheduled(progress.update, settings)
        if log_is_due or checkpoint_is_due:
            self.updater.finish_pending_step()  # waits for the GPU, so that ``seconds`` include its work
        seconds = time.perf_counter() - started
        progress.seconds += seconds
        progress.interval_seconds += seconds
        if self.monitor:
            self.monitor.advance()
        progress.validation_due = progress.update % settings.validate_every == 0 or last
        if log_is_due:
            self._log(norm, rate)
            return_freed_memory()
            release_memory()
        self._interrupt_if_asked()
        if checkpoint_is_due:
            # Also before a validation, so that a process that is killed during it loses no update.
            self._save()
        if progress.validation_due:
            self._validate()

    def _log(self, norm: torch.Tensor, rate: float) -> None:
        """Record and show the means since the last log line, and begin a new interval. All workers have to call this.

        If no update of the interval had a finite gradient, do nothing.

        Args:
            norm: Norm of the last update's gradient.
            rate: Learning rate of the last update.
        """
        progress, interval_loss = self.progress, self.updater.interval_loss
        if progress.interval_target_tokens == 0:
            return
        loss = self.workers.sum(interval_loss).item() / progress.interval_target_tokens
        if self.monitor:
            self.monitor.record_training(progress, loss, rate, norm.item())
        interval_loss.zero_()
        progress.interval_target_tokens = progress.interval_padded_tokens = 0
        progress.interval_seconds = 0.0

    def _validate(self) -> None:
        """Validate the current weights, and save a checkpoint. All workers have to call this.

        With ``training.start_share``, the weights interpolated with the initial ones are validated. If the validated
        weights are the best so far, they are written to model.safetensors.
        """
        progress = self.progress
        with unsharded(self.updater.replica), self.interpolation.applied_to(self.model):
            validation = self.validator.measure(self._interrupt_if_asked)
            progress.validation_due = False
            score, chrf, loss = self.validator.early_stopping_scores(validation)
            is_tie = score == progress.best_score
            best = progress.record_validation(score, chrf, loss)
            if self.workers.is_main and best:
                write_tensors(self.run / WEIGHTS, weights_of(self.model), self.weights_metadata)
            if self.monitor:
                self.validator.show(validation, best, progress, self.monitor)
            if is_tie and not self._has_logged_tie:
                self._has_logged_tie = True
                metric = self.config.training.metric
                remedy = "; BLEU stays 0 if no line has four words: set training.metric=chrf"
                logger.info(
                    "training.metric=%s is %.2f as in the best validation: higher chrF2, then lower loss decides "
                    "which one is better, also for training.patience%s",
                    metric,
                    abs(score),
                    remedy if metric.endswith("bleu") and score == 0 else "",
                )
        schedule, without_gain = self.config.training.schedule, progress.validations_without_gain
        if schedule.kind == "plateau" and not best and without_gain % schedule.plateau_patience == 0:
            progress.rate_reductions += 1
            logger.info("learning rate × %g; validations without improvement: %d", schedule.factor, without_gain)
        self._save()
        if self.workers.is_main and (on_validation := ON_VALIDATION.get()):
            on_validation(progress.update, validation.scores)
        self._interrupt_if_asked()

    def _save(self) -> None:
        """Save a checkpoint, and remove older ones except the last ``keep_last``. All workers have to call this."""
        optimizer = self.updater.save_state()
        if self.monitor:
            self.progress.metrics_bytes = self.monitor.flush()
        with unsharded(self.updater.replica):
            if self.workers.is_main:
                # A signal can end a validation in which the model has interpolated weights.
                weights = self.interpolation.trained_weights(self.model)
                save_checkpoint(self.run, self.progress, weights, self.weights_metadata, optimizer)
        if self.workers.is_main:
            kept = list(scheduled_checkpoints(self.run, self.config.training))
            remove_checkpoints(self.run, kept_updates=kept[-self.config.training.keep_last :])
        self.workers.barrier()  # without STEP_TIMEOUT, because the disk of the main process may be slow

    def _interrupt_if_asked(self) -> None:
        """Save a checkpoint and raise Interrupted if any worker has received a signal. All workers have to call
        this."""
        signal_number = self.workers.max_over_workers(self.stop.signal_number)
        if signal_number is None:
            return
        self._save()
        raise Interrupted(
            signal_number,
            f"stopped at update {self.progress.update}, state saved in {self.run}; the same command resumes the run",
        )

    def finalize(self) -> None:
        """Write the final weights, choose the attention head for word alignment, fit the quality estimation, and
        translate and score the test set. All workers have to call this, after ``fit``."""
        config, workers, progress = self.config, self.workers, self.progress
        with unsharded(self.updater.replica):
            averaged = 0
            if workers.is_main:
                averaged = write_weights(config, self.model, self.interpolation, self.weights_metadata)
            workers.barrier()
            load_weights(self.model, config.model, self.run / WEIGHTS)
            parts = self.data.corpus.split_by_direction()
            translators = self.validator.translators
            confidence = fit_confidence(
                [(translators[direction], part.valid) for direction, part in parts.items()], workers
            )
            for translator in translators.values():
                translator.confidence.fitted = confidence or translator.confidence.fitted
            if workers.is_main:
                pairs = evenly_spaced_pairs(next(iter(parts.values())).valid, MAX_ALIGNMENT_PAIRS)
                texts = list(zip(pairs["source"], pairs["target"], strict=True))
                batch_tokens = config.decoding.batch_tokens
                alignment = choose_alignment(self.model.eval(), self.data.layer, texts, batch_tokens)
                self._write_description(alignment, confidence)
            epochs = progress.epoch + progress.batch / self.batches.batches_in_epoch(progress.epoch)
            figures = {"epochs": epochs, "averaged_checkpoints": averaged or None}
            tasks = [(translators[direction], part.test) for direction, part in parts.items()]
            write_scores(config, tasks, workers, progress, figures)
            workers.barrier()
