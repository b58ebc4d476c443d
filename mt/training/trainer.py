"""The training loop: updates, validations and checkpoints, which come at the same updates in a run that is resumed."""

import contextlib
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from mt.config import AlignmentConfig, ModelDescription, TrainConfig
from mt.core.columns import release_memory
from mt.core.device import autocast, choose_precision, copy_to_cpu_async, return_freed_memory, tf32_in_recurrent_layers
from mt.core.errors import InputError, Interrupted, RunError, is_out_of_memory
from mt.core.files import make_folder
from mt.core.json_file import write_json
from mt.core.randomness import key
from mt.data.batching import Batch, BatchSettings, TrainingBatches
from mt.data.cleaning.record import write_dropped
from mt.data.corpus import evenly_spaced
from mt.distributed.replication import full_tensor, gradient_sync, replicate, shard, unsharded
from mt.distributed.workers import Workers
from mt.models.build import build_model
from mt.models.seq2seq import Seq2Seq
from mt.storage.native import write_description, write_source_words
from mt.storage.run_folder import CHECKPOINTS, PROVENANCE, RESULTS, WEIGHTS, write_config
from mt.storage.weights import (
    checksum,
    load_weights,
    read_tensors,
    read_weights,
    weight_shapes,
    weights_metadata,
    weights_of,
    write_tensors,
)
from mt.training.advice import advice_on_length
from mt.training.blending import Blend
from mt.training.checkpoint import (
    START,
    Checkpoint,
    Progress,
    checkpoint_folders,
    remove_checkpoints,
    save_checkpoint,
)
from mt.training.choice import ALIGNED_PAIRS
from mt.training.delivery import write_scores, write_weights
from mt.training.feed import UpdateBatches, feed
from mt.training.initial_embeddings import begin_with_co_occurrence
from mt.training.monitor import Monitor, NoMonitor
from mt.training.objective import Objective
from mt.training.optimizer import Optimizer
from mt.training.preparation import PreparedData
from mt.training.provenance import (
    base_model,
    begin_provenance,
    changed_files,
    gone_on,
    latest,
    precision_of,
    read_provenance,
    took_effect,
    up_to,
)
from mt.training.signals import StopRequest
from mt.training.time_budget import TimeBudget
from mt.training.validation import Validation, Validator, translator_of
from mt.translation.alignment import choose_alignment
from mt.translation.trained_model import load_weights_from

logger = logging.getLogger(__name__)

FILES_TOLD = 10
"""The most files that the message about changed files names."""


def _is_greater(one: float, other: float) -> bool:
    """Returns whether one number is greater than another, where NaN is less than any number. All comparisons with NaN
    are false, so a loss of NaN that came first would otherwise stay the best for ever."""
    return one > other or (math.isnan(other) and not math.isnan(one))


@dataclass(frozen=True)
class UncountedUpdate:
    """An update that a GPU may still be computing."""

    number: int
    outcome: Callable[[], list[bool]]
    """Returns whether its gradient is finite, and whether it counts as a bad update. Waits until both are known."""
    target_tokens: int
    padded_tokens: int


class Trainer:
    """Trains one model. Holds the model, its optimizer, its data and its progress, as one of the workers sees them."""

    def __init__(
        self, config: TrainConfig, data: PreparedData, workers: Workers, checkpoint: Checkpoint | None
    ) -> None:
        self.config = config
        self.data = data
        self.workers = workers
        self.device = device = workers.device
        self.precision = choose_precision(config.training.precision, device)
        self.run = config.folder
        settings = config.training

        torch.manual_seed(key(config.seed, "weights"))
        self.belonging = weights_metadata(config.model, data.tokenizers.files())
        """What belongs to the weights. It is written into their file, wherever they are written."""
        self.model: Seq2Seq = build_model(config.model, data.tokenizers)
        initial_weights = origin = None
        if settings.init_from and not checkpoint:
            load_weights_from(Path(settings.init_from), self.model, config.model)
            initial_weights, origin = checksum(weights_of(self.model)), base_model(settings.init_from)
        elif settings.initial_embeddings == "co_occurrence" and not checkpoint:
            begin_with_co_occurrence(self.model, data.train, data.tokenizers.joint, workers)
        start = weights_of(self.model)
        if settings.start_share and checkpoint:
            start = read_weights(self.run / START, config.model, weight_shapes(self.model))
        self.blend = Blend(start, settings.start_share)
        """What is validated and delivered, if training.start_share asks for it."""
        if checkpoint:
            load_weights(self.model, config.model, checkpoint.folder / WEIGHTS)
        self.model.to(device)
        self.objective = Objective(self.model, settings)
        if settings.shard:
            self.replica = shard(self.objective, self.model.blocks, workers)
        else:
            self.replica = replicate(self.objective, workers, self.precision)
        self.optimizer = Optimizer(self.model, settings.optimizer, settings.schedule, settings.max_updates, workers)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == torch.float16)
        # What a run begins with is the first candidate for the best weights.
        self.progress = Progress(validation_due=initial_weights is not None)
        self.interval_loss = torch.zeros((), device=device)
        """This worker's part of ``progress.interval_loss``. It stays on the device, because reading it at each update
        would make the GPU wait."""
        self.uncounted: UncountedUpdate | None = None
        """The last update, until it is counted."""
        batch_settings = BatchSettings(
            config.text.augmentation, config.tokenizer.sampling, config.seed, settings.batch_tokens
        )
        self.batches = TrainingBatches(data.train, data.layer, batch_settings, workers)
        self.validator = Validator(self.objective, data, config, workers, self.precision)
        self.stop = StopRequest()
        self.told_of_memory = False

        reported = took_effect(config, data, workers, self.precision, self.optimizer, self.batches.longer_than_a_batch)
        self.provenance = workers.from_leader(
            lambda: begin_provenance(data, workers, reported, initial_weights, origin)
        )
        """The content of provenance.json."""
        if checkpoint:
            self._restore(checkpoint)

    def begin(self) -> None:
        """Writes the files that describe the run into its folder. To be called just before ``fit``, so that a run that
        failed on its data leaves none of them."""
        config, workers = self.config, self.workers
        workers.barrier()
        if workers.is_leader:
            self.data.tokenizers.save(self.run)
            write_config(self.run, config)
            write_description(self.run, ModelDescription.of(config, self.data.layer.rules, AlignmentConfig()))
            spelling = self.data.layer.spelling
            write_source_words(self.run, spelling.counts if spelling else None)
            if self.data.dropped:
                write_dropped(self.run, self.data.dropped)
            if self.blend.share and self.progress.update == 0:
                make_folder(self.run / CHECKPOINTS)
                write_tensors(self.run / START, self.blend.start, self.belonging)
            write_json(self.run / PROVENANCE, self.provenance)
            (self.run / RESULTS).unlink(missing_ok=True)
        updates, accumulate = config.training.max_updates, config.training.accumulate
        # An epoch may have no batches where the weights of the corpora are small.
        batches = max(1, self.batches.batches_in_epoch(self.progress.epoch))
        logger.info(
            "%s: %s parameters, vocabulary %s, on %s%s in %s; %d batches an epoch, %s updates: %s epochs",
            config.model.architecture,
            f"{self.model.parameter_count:,}",
            f"{self.data.tokenizers.target.vocabulary_size:,}",
            f"{workers.size} workers, " if workers.size > 1 else "",
            self.device,
            str(self.precision).removeprefix("torch."),
            batches,
            f"{updates:,}",
            f"{updates * accumulate / batches:,.2f}",
        )
        if long := self.batches.longer_than_a_batch:
            logger.warning(
                "%s pairs have more pieces than training.batch_tokens=%d: each is a batch by itself",
                f"{long:,}",
                config.training.batch_tokens,
            )
        if self.progress.update == 0 and (advice := advice_on_length(updates, accumulate, batches)):
            logger.warning("%s", advice)

    def _restore(self, checkpoint: Checkpoint) -> None:
        recorded = up_to(read_provenance(self.run), checkpoint.progress.update)
        settings = self.config.training
        if files := list(changed_files(recorded, self.provenance)):
            some, more = files[:FILES_TOLD], len(files) - FILES_TOLD
            raise InputError(
                f"{self.run}: its files are not those that the run began with (see {PROVENANCE}):\n  "
                + "\n  ".join([*some, *([f"and {more} more"] if more > 0 else [])])
                + "\nPut them back, or give a new run another name (name=…)"
            )
        changed = [split for split, found in self.provenance["data"].items() if recorded["data"].get(split) != found]
        if changed:
            raise InputError(
                f"{self.run}: the {' and '.join(changed)} pairs have changed since the run began (see {PROVENANCE}); "
                "give a new run another name (name=…)"
            )
        if settings.weights == "best" and checkpoint.progress.best_score is not None:
            # There may never be better ones, so that damage to these has to be found now and not at the end.
            read_tensors(self.run / WEIGHTS)
        self.optimizer.load_state_tensors(checkpoint.optimizer_tensors())
        self.progress = checkpoint.progress
        self.interval_loss.fill_(self.progress.interval_loss if self.workers.is_leader else 0.0)
        if self.progress.scaler:
            self.scaler.load_state_dict(self.progress.scaler)
        before, now = precision_of(latest(recorded)), precision_of(self.provenance)
        if before not in (None, now):
            logger.warning(
                "training.precision=%s is %s here, but was %s up to update %d: the result will be another than where "
                "the run began",
                settings.precision,
                now,
                before,
                self.progress.update,
            )
        self.provenance = gone_on(recorded, self.provenance, self.progress.update)
        logger.info("going on from update %d", self.progress.update)

    def fit(self, budget: TimeBudget | None) -> None:
        """Updates and validates until ``max_updates`` is reached or patience runs out.

        Args:
            budget: Warns if the run takes longer than it should; None on all workers but the leader, and if there is no
                number of minutes.
        """
        settings, progress = self.config.training, self.progress
        with self.stop, tf32_in_recurrent_layers(self.precision), self.monitor() as monitor:
            if progress.validation_due:
                self._validate(monitor)
                self._interrupt_if_asked(monitor)
            updates = feed(self.batches, progress.epoch, progress.batch, settings.accumulate, self.workers)
            with contextlib.closing(updates):
                while progress.update < settings.max_updates and not self._out_of_patience():
                    started = time.perf_counter()
                    norm, rate = self._update(next(updates))
                    last = progress.update == settings.max_updates
                    to_log = progress.update % settings.log_every == 0 or last
                    if to_log or self._is_scheduled(progress.update):
                        self._count()  # waits for the GPU, whose work for this update is part of its time
                    seconds = time.perf_counter() - started
                    progress.seconds += seconds
                    progress.interval_seconds += seconds
                    if budget:
                        budget.record_update(progress)
                    monitor.advance()
                    progress.validation_due = progress.update % settings.validate_every == 0 or last
                    if to_log:
                        self._log(monitor, norm, rate)
                        return_freed_memory()
                        release_memory()
                    self._interrupt_if_asked(monitor)
                    if progress.validation_due or self._is_scheduled(progress.update):
                        # Before a validation, too: if the process is killed in it, a resumed run has these weights to
                        # validate.
                        self._save(monitor)
                    if progress.validation_due:
                        started = time.perf_counter()
                        self._validate(monitor)
                        if budget:
                            budget.record_validation(progress, time.perf_counter() - started)
                        self._interrupt_if_asked(monitor)
            if self._out_of_patience():
                logger.info("stopped early: no better %s in %d validations", settings.metric, settings.patience)

    def deliver(self) -> None:
        """Writes the weights that the run delivers, translates the test set with them and writes the scores."""
        config, workers = self.config, self.workers
        with unsharded(self.replica):
            averaged = 0
            if workers.is_leader:
                folders = checkpoint_folders(self.run)
                checkpoints = [folders[update] for update in self._scheduled_checkpoints()]
                averaged = write_weights(self.run, config.training, self.model, self.blend, self.belonging, checkpoints)
            workers.barrier()
            load_weights(self.model, config.model, self.run / WEIGHTS)
            if workers.is_leader:
                pairs = evenly_spaced(self.data.corpus.valid, ALIGNED_PAIRS)
                place = choose_alignment(
                    self.model.eval(),
                    self.data.layer,
                    list(zip(pairs["source"], pairs["target"], strict=True)),
                    config.decoding.batch_tokens,
                )
                write_description(self.run, ModelDescription.of(config, self.data.layer.rules, place))
            translator = translator_of(self.objective, self.data, config, config.decoding, self.precision)
            write_scores(config, self.data, translator, self.progress, averaged, workers, self.monitor)
            workers.barrier()

    def monitor(self) -> Monitor:
        """Returns the monitor that records and shows progress; on all workers but the leader, one that does nothing."""
        if not self.workers.is_leader:
            return NoMonitor()
        progress = self.progress
        return Monitor(self.run, progress.update, self.config.training.max_updates, progress.metrics_bytes)

    def _log(self, monitor: Monitor, norm: torch.Tensor, rate: float) -> None:
        """Records and shows the means since the last time, and begins a new interval."""
        progress = self.progress
        if progress.interval_target_tokens == 0:  # no update since has had a finite gradient
            return
        loss = self.workers.sum(self.interval_loss).item() / progress.interval_target_tokens
        speed = progress.interval_target_tokens / progress.interval_seconds
        monitor.record(
            "train",
            progress.update,
            {
                "epoch": progress.epoch,
                "loss": loss,
                "learning_rate": rate,
                "gradient_norm": norm.item(),
                "target_tokens_per_second": speed,
                "padding_share": 1 - progress.interval_target_tokens / progress.interval_padded_tokens,
                "source_tokens": progress.source_tokens,
                "target_tokens": progress.target_tokens,
                "bad_updates": progress.bad_updates,
                "seconds": progress.seconds,
            },
        )
        monitor.show_training(progress.update, loss, speed)
        self.interval_loss.zero_()
        progress.interval_target_tokens = progress.interval_padded_tokens = 0
        progress.interval_seconds = 0.0

    def _update(self, ready: UpdateBatches) -> tuple[torch.Tensor, float]:
        """Makes one optimizer step on the mean loss per target token, padding left out. Returns the gradient's norm
        before clipping, and the learning rate."""
        settings, progress = self.config.training, self.progress
        self.model.train()
        batches = ready.batches
        while (total := self._add_gradients(batches, ready.target_tokens)) is None:
            self.optimizer.zero_grad()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            batches = [half for batch in batches for half in batch.halves()]
        for part in self.optimizer.parts:
            self.scaler.unscale_(part)
        norm = full_tensor(torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip_norm or math.inf))
        finite = norm.isfinite()
        # In fp16, gradients overflow now and then until the scale fits. GradScaler handles that; it is not bad.
        bad = ~finite & (self.scaler.scale(torch.ones_like(norm)) <= 1)
        rate = self.optimizer.set_learning_rate(progress.update + 1)
        self.optimizer.step(finite)  # not by the scaler's step, which would wait for the GPU
        self.scaler.update()
        self.optimizer.zero_grad()
        self.interval_loss += total.where(finite, 0)
        progress.update += 1
        progress.epoch, progress.batch = ready.epoch, ready.batch
        progress.source_tokens += ready.source_tokens
        progress.target_tokens += ready.target_tokens
        # The only wait in an update. It is for the update before, and meanwhile the GPU goes on with this one.
        self._count()
        outcome = copy_to_cpu_async(torch.stack([finite, bad]))
        self.uncounted = UncountedUpdate(progress.update, outcome, ready.target_tokens, ready.padded_tokens)
        return norm.detach(), rate

    def _add_gradients(self, batches: list[Batch], target_tokens: int) -> torch.Tensor | None:
        """Adds up the gradients of the mean loss per target token of all workers.

        Returns:
            The sum of this worker's losses; None if the memory does not suffice, but might for smaller batches.
        """
        # Dropout depends only on the update (and the worker), so that it is the same in a run that is resumed.
        own = [self.workers.rank] if self.workers.rank else []
        torch.manual_seed(key(self.config.seed, "dropout", self.progress.update, *own))
        total = torch.zeros((), device=self.device)
        try:
            for number, batch in enumerate(batches, 1):
                with gradient_sync(self.replica, enabled=number == len(batches)):
                    with autocast(self.device, self.precision):
                        loss = self.replica(batch)
                    # Times the number of workers, because replicas average their gradients over the workers.
                    self.scaler.scale(loss * (self.workers.size / target_tokens)).backward()
                total += loss.detach()
        except (RuntimeError, MemoryError) as error:
            # With several workers, a batch cannot be done again in halves: the others would wait for ever for its
            # gradients.
            if not is_out_of_memory(error) or self.workers.size > 1 or max(len(batch.ids) for batch in batches) == 1:
                raise
            if not self.told_of_memory:
                logger.warning(
                    "update %d: out of memory; done again in halves, as others will be if need be. "
                    "A smaller training.batch_tokens with more training.accumulate would be faster.",
                    self.progress.update + 1,
                )
                self.told_of_memory = True
            return None
        return total

    def _count(self) -> None:
        """Counts the last update as a good or a bad one. A gradient that is not finite never reaches the weights.

        Raises:
            RunError: Too many updates in a row were bad.
        """
        if not (update := self.uncounted):
            return
        self.uncounted = None
        progress = self.progress
        finite, bad = update.outcome()
        if finite:
            progress.interval_target_tokens += update.target_tokens
            progress.interval_padded_tokens += update.padded_tokens
        if not bad:
            progress.consecutive_bad_updates = 0
            return
        progress.bad_updates += 1
        progress.consecutive_bad_updates += 1
        if progress.consecutive_bad_updates == 1:
            logger.warning("update %d: the gradient is not finite; this update is skipped", update.number)
        if progress.consecutive_bad_updates >= self.config.training.max_bad_steps:
            raise RunError(
                f"diverged: {progress.consecutive_bad_updates} updates in a row without a finite gradient; the last "
                f"checkpoint stands. Try a smaller training.optimizer.learning_rate or precision=fp32."
            )

    def _out_of_patience(self) -> bool:
        patience = self.config.training.patience
        return bool(patience) and self.progress.validations_without_gain >= patience

    def _validate(self, monitor: Monitor) -> None:
        """Measures the current weights, or their blend with those that the run began with, and keeps them if they are
        the best so far. Saves a checkpoint of the current weights, with which training goes on."""
        with unsharded(self.replica), self.blend.inside(self.model):
            loss = self.validator.loss(lambda: self._interrupt_between_batches(monitor))
            self._interrupt_if_asked(monitor)
            found = self.validator.translations(loss, lambda: self._interrupt_between_batches(monitor))
            self.progress.validation_due = False
            best = self._is_best(found)
            if best and self.workers.is_leader:
                write_tensors(self.run / WEIGHTS, weights_of(self.model), self.belonging)
            self.validator.show(found, best, self.progress, monitor)
        self._save(monitor)

    def _is_best(self, found: Validation) -> bool:
        """Returns whether no earlier validation was as good. Updates the best scores, and the count of validations
        without gain that patience refers to."""
        progress = self.progress
        score = found.bleu if self.config.training.metric == "bleu" else -found.loss
        gained = progress.best_score is None or _is_greater(score, progress.best_score)
        # Early on, BLEU is often 0 time after time. Then the loss decides which weights are better.
        best = gained or (score == progress.best_score and _is_greater(-found.loss, -progress.best_loss))
        if best:
            progress.best_score, progress.best_loss, progress.best_update = score, found.loss, progress.update
        progress.validations_without_gain = 0 if gained else progress.validations_without_gain + 1
        return best

    def _save(self, monitor: Monitor) -> None:
        self._count()
        self.progress.metrics_bytes = monitor.flush()
        self.progress.scaler = self.scaler.state_dict()
        self.progress.interval_loss = self.workers.sum(self.interval_loss.clone()).item()
        optimizer = self.optimizer.state_tensors()
        with unsharded(self.replica):
            if self.workers.is_leader:
                weights = self.blend.own(self.model)  # a signal can end a validation, in which the model is blended
                save_checkpoint(self.run, self.progress, weights, self.belonging, optimizer)
        if self.workers.is_leader:
            remove_checkpoints(self.run, but=self._scheduled_checkpoints()[-self.config.training.keep_last :])

    def _is_scheduled(self, update: int) -> bool:
        """Returns whether an undisturbed run saves a checkpoint at this update. A checkpoint that an interruption made
        must not change which ones are kept or averaged."""
        settings = self.config.training
        every = (settings.validate_every, settings.save_every or settings.validate_every)
        return update == settings.max_updates or any(update % interval == 0 for interval in every)

    def _scheduled_checkpoints(self) -> list[int]:
        """Returns the updates whose checkpoints are there, oldest first, without those that interruptions made."""
        return [update for update in checkpoint_folders(self.run) if self._is_scheduled(update)]

    def _interrupt_if_asked(self, monitor: Monitor) -> None:
        """Saves and raises Interrupted if any worker has received a signal. All workers have to call this."""
        signal_number = self.workers.max_number(self.stop.signal_number)
        if signal_number is None:
            return
        self._save(monitor)
        raise Interrupted(
            signal_number,
            f"stopped at update {self.progress.update}, state saved in {self.run}; the same command continues",
        )

    def _interrupt_between_batches(self, monitor: Monitor) -> None:
        """Does the same between two batches of a validation, if there is only one worker. Several workers may have
        different numbers of batches, so they only agree after the last one whether to stop."""
        if self.workers.size == 1:
            self._interrupt_if_asked(monitor)
