"""The loop: updates, validations, checkpoints, each where a resumed run would have it too."""

import contextlib
import logging
import math
import time
from itertools import islice
from pathlib import Path

import datasets
import numpy as np
import torch

from mt.config import DecodingConfig, TrainConfig
from mt.data.batching import Batch, TrainingBatches, evaluation_batches
from mt.device import autocast, choose_precision, recurrent_layers_in, return_freed_memory
from mt.errors import InputError, Interrupted, RunError, is_out_of_memory
from mt.model.build import build_model
from mt.model.seq2seq import Seq2Seq
from mt.randomness import key
from mt.run_folder import (
    PROVENANCE,
    WEIGHTS,
    load_weights,
    read_json,
    weights_of,
    write_config,
    write_json,
    write_tensors,
)
from mt.scoring import corpus_bleu, corpus_chrf
from mt.training.checkpoint import Checkpoint, Progress, checkpoint_folders, remove_checkpoints, save_checkpoint
from mt.training.distributed import Workers, put_together
from mt.training.feed import UpdateBatches, feed
from mt.training.monitor import Monitor, NoMonitor
from mt.training.objective import Objective
from mt.training.optimizer import Optimizer
from mt.training.preparation import PreparedData, provenance
from mt.training.signals import StopRequest
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)


class Trainer:
    """One model, its optimizer, its data and where they stand, as one of the workers sees them."""

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
        self.model: Seq2Seq = build_model(config.model, data.tokenizers)
        if brought := checkpoint.folder if checkpoint else settings.init_from:
            load_weights(self.model, Path(brought) / WEIGHTS)
        self.model.to(device)
        self.objective = Objective(self.model, settings)
        if settings.shard:
            self.replica = workers.shard(self.objective, self.model.blocks)
        else:
            self.replica = workers.replicate(self.objective)
        self.optimizer = Optimizer(self.model, settings.optimizer, settings.schedule, settings.max_updates, workers)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == torch.float16)
        self.progress = Progress()
        self.interval_loss = torch.zeros((), device=device)
        """This worker's part, on the device: reading it each update would make the GPU wait."""
        self.batches = TrainingBatches(
            data.train,
            data.tokenizers,
            config.tokenizer.sampling,
            config.seed,
            settings.batch_tokens,
            workers.rank,
            workers.size,
        )
        self.stop = StopRequest()
        self.told_of_memory = False

        origin = provenance(data, workers)
        if checkpoint:
            self._restore(checkpoint, origin)
        workers.wait()
        if workers.leads:
            if not checkpoint:
                data.tokenizers.save(self.run)
            # Only now is there something to go on from: a run that failed on its data leaves no config behind.
            write_config(self.run, config)
            write_json(self.run / PROVENANCE, origin)
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        logger.info(
            "%s: %s parameters, vocabulary %s, on %s%s in %s; %d batches an epoch, %d updates",
            config.model.architecture,
            f"{parameters:,}",
            f"{data.tokenizers.target.vocabulary_size:,}",
            f"{workers.size} workers, " if workers.size > 1 else "",
            device,
            str(self.precision).removeprefix("torch."),
            self.batches.batches_in_epoch(self.progress.epoch),
            settings.max_updates,
        )

    def _restore(self, checkpoint: Checkpoint, origin: dict) -> None:
        recorded = read_json(self.run / PROVENANCE, "data")["data"]
        if not isinstance(recorded, dict):
            raise InputError(f"{self.run / PROVENANCE}: damaged or of another version")
        changed = [split for split, found in origin["data"].items() if recorded.get(split) != found]
        if changed:
            raise InputError(
                f"{self.run}: the {' and '.join(changed)} pairs are not those that this run began with; "
                "give the run a new name (name=…)"
            )
        self.optimizer.load_state_tensors(checkpoint.optimizer_tensors())
        self.progress = checkpoint.progress
        self.interval_loss.fill_(self.progress.interval_loss if self.workers.leads else 0.0)
        if self.progress.scaler:
            self.scaler.load_state_dict(self.progress.scaler)
        logger.info("going on from update %d", self.progress.update)

    def fit(self) -> None:
        """Updates and validates until max_updates or until patience runs out."""
        settings, progress = self.config.training, self.progress
        with self.stop, recurrent_layers_in(self.precision), self.monitor() as monitor:
            if progress.validation_due:
                self._validate(monitor)
                self._interrupt_if_asked(monitor)
            updates = feed(self.batches, progress.epoch, progress.batch, settings.accumulate, self.workers)
            with contextlib.closing(updates):
                while progress.update < settings.max_updates and not self._out_of_patience():
                    started = time.perf_counter()
                    norm, rate = self._update(next(updates))
                    seconds = time.perf_counter() - started
                    progress.seconds += seconds
                    progress.interval_seconds += seconds
                    monitor.advance()
                    last = progress.update == settings.max_updates
                    progress.validation_due = progress.update % settings.validate_every == 0 or last
                    if progress.update % settings.log_every == 0 or last:
                        self._log(monitor, norm, rate)
                        return_freed_memory()
                    self._interrupt_if_asked(monitor)
                    if progress.validation_due:
                        if self.workers.size > 1:
                            # They hear a signal together, after the validation, which torchrun may not wait for.
                            self._save(monitor)
                        self._validate(monitor)
                        self._interrupt_if_asked(monitor)
                    elif self._is_scheduled(progress.update):
                        self._save(monitor)
            if self._out_of_patience():
                logger.info("stopped early: no better %s in %d validations", settings.metric, settings.patience)

    def monitor(self) -> Monitor:
        """What records and shows: the leader's, or none."""
        if not self.workers.leads:
            return NoMonitor()
        progress = self.progress
        return Monitor(self.run, progress.update, self.config.training.max_updates, progress.metrics_bytes)

    def _log(self, monitor: Monitor, norm: torch.Tensor, rate: float) -> None:
        """The means since the last time, and a new interval."""
        progress = self.progress
        if progress.interval_target_tokens == 0:  # all updates since were bad
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
        """One optimizer step on the mean loss of a real target token; returns the gradient's norm before clipping and
        the learning rate."""
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
        norm = put_together(torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip_norm or math.inf))
        finite = bool(norm.isfinite())
        rate = self.optimizer.set_learning_rate(progress.update + 1)
        if finite:
            self.optimizer.step()  # not the scaler's: it would look for what has just been found absent
        self._count_bad(finite)
        self.scaler.update()
        self.optimizer.zero_grad()
        progress.update += 1
        progress.epoch, progress.batch = ready.epoch, ready.batch
        progress.source_tokens += ready.source_tokens
        progress.target_tokens += ready.target_tokens
        if finite:
            self.interval_loss += total
            progress.interval_target_tokens += ready.target_tokens
            progress.interval_padded_tokens += ready.padded_tokens
        return norm.detach(), rate

    def _add_gradients(self, batches: list[Batch], target_tokens: int) -> torch.Tensor | None:
        """Adds up the gradients of the mean loss of all workers' target tokens; returns the sum of this one's losses.

        None if the memory does not suffice, but might for smaller batches.
        """
        # Dropout depends on the update (and the worker) alone: a resumed run drops what the undisturbed one would have.
        own = [self.workers.rank] if self.workers.rank else []
        torch.manual_seed(key(self.config.seed, "dropout", self.progress.update, *own))
        total = torch.zeros((), device=self.device)
        try:
            for number, batch in enumerate(batches, 1):
                with self.workers.exchanging(self.replica, now=number == len(batches)):
                    with autocast(self.device, self.precision):
                        loss = self.replica(batch)
                    # Replicas average their gradients over the workers.
                    self.scaler.scale(loss * (self.workers.size / target_tokens)).backward()
                total += loss.detach()
        except (RuntimeError, MemoryError) as error:
            # The other workers would wait for gradients that have been given up.
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

    def _count_bad(self, finite: bool) -> None:
        """Non-finite gradients never reach the weights; too many in a row end the run."""
        progress = self.progress
        # fp16 overflows now and then until the scale fits: GradScaler's business.
        if finite or (self.scaler.is_enabled() and self.scaler.get_scale() > 1):
            progress.consecutive_bad_updates = 0
            return
        progress.bad_updates += 1
        progress.consecutive_bad_updates += 1
        if progress.consecutive_bad_updates == 1:
            logger.warning("update %d: the gradient is not finite; weights left as they were", progress.update + 1)
        if progress.consecutive_bad_updates >= self.config.training.max_bad_steps:
            raise RunError(
                f"diverged: {progress.consecutive_bad_updates} updates in a row without a finite gradient; the last "
                f"checkpoint stands. Try a smaller training.optimizer.learning_rate or precision=fp32."
            )

    def _out_of_patience(self) -> bool:
        patience = self.config.training.patience
        return bool(patience) and self.progress.validations_without_gain >= patience

    def _validate(self, monitor: Monitor) -> None:
        """Loss over all validation pairs, BLEU over some; keeps the best weights; saves a checkpoint."""
        with self.workers.whole(self.replica):
            self._validate_and_keep_the_best(monitor)
        self._save(monitor)

    def _validate_and_keep_the_best(self, monitor: Monitor) -> None:
        settings, progress = self.config.training, self.progress
        loss = self._validation_loss(monitor)
        pairs = _spread(self.data.corpus.valid, settings.valid_bleu_pairs)
        greedy = self.config.decoding.model_copy(update={"beam_size": 1})
        translator = self.translator(greedy)
        sources, references = list(pairs["source"]), list(pairs["target"])
        hypotheses = self.translate(translator, sources, monitor)
        bleu = corpus_bleu(hypotheses, references, self.config.data.target_language)
        chrf = corpus_chrf(hypotheses, references)
        progress.validation_due = False
        score = bleu if settings.metric == "bleu" else -loss
        gained = progress.best_score is None or score > progress.best_score
        # Early on, BLEU is often 0 time after time: then the loss tells which weights are better.
        better = gained or (score == progress.best_score and loss < progress.best_loss)
        if better:
            progress.best_score, progress.best_loss, progress.best_update = score, loss, progress.update
        progress.validations_without_gain = 0 if gained else progress.validations_without_gain + 1
        logger.info(
            "update %d  validation loss %.3f  BLEU %.2f  chrF %.2f%s",
            progress.update,
            loss,
            bleu,
            chrf,
            "  (best)" if better else "",
        )
        values = {"epoch": progress.epoch, "loss": loss, "bleu": bleu, "chrf": chrf}
        monitor.record(
            "valid",
            progress.update,
            values | {"target_tokens": progress.target_tokens, "seconds": progress.seconds},
        )
        samples = [len(sources) // 6, len(sources) // 2, len(sources) * 5 // 6]
        monitor.show_samples(
            progress.update, [(sources[i], references[i], hypotheses[i]) for i in sorted(set(samples))]
        )
        monitor.show_attention(progress.update, translator.attention(sources[samples[0]], references[samples[0]]))
        if better and self.workers.leads:
            write_tensors(self.run / WEIGHTS, weights_of(self.model))

    @torch.inference_mode()
    def _validation_loss(self, monitor: Monitor) -> float:
        """Cross-entropy in nats a target token, without label smoothing."""
        self.model.eval()
        self.objective.eval()
        total = torch.zeros(2, device=self.device)  # loss and target tokens
        batches = evaluation_batches(self.data.valid, self.config.training.batch_tokens)
        for batch in islice(batches, self.workers.rank, None, self.workers.size):
            with autocast(self.device, self.precision):
                total[0] += self.objective(batch.to(self.device))
            total[1] += batch.target_tokens
            self._interrupt_between_batches(monitor)
        self.objective.train()
        loss, tokens = self.workers.sum(total).tolist()
        self._interrupt_if_asked(monitor)
        return loss / tokens

    def translate(self, translator: Translator, lines: list[str], monitor: Monitor) -> list[str]:
        """Shared among the workers; every one gets all translations."""
        own = translator.translate(
            self.workers.share(lines),
            self.workers.share(range(len(lines))),
            after_batch=lambda: self._interrupt_between_batches(monitor),
        )
        return self.workers.gather(own)

    def translator(self, decoding: DecodingConfig) -> Translator:
        """The model as it is now, at work."""
        return Translator(self.model, self.data.tokenizers, self.config.data.target_language, decoding, self.precision)

    def _save(self, monitor: Monitor) -> None:
        self.progress.metrics_bytes = monitor.flush()
        self.progress.scaler = self.scaler.state_dict()
        self.progress.interval_loss = self.workers.sum(self.interval_loss.clone()).item()
        optimizer = self.optimizer.state_tensors()
        with self.workers.whole(self.replica):
            if self.workers.leads:
                save_checkpoint(self.run, self.progress, weights_of(self.model), optimizer)
        if self.workers.leads:
            remove_checkpoints(self.run, but=self.scheduled_checkpoints()[-self.config.training.keep_last :])

    def _is_scheduled(self, update: int) -> bool:
        """Whether an undisturbed run saves here: a checkpoint made by an interruption must not change what is kept or
        averaged."""
        settings = self.config.training
        every = (settings.validate_every, settings.save_every or settings.validate_every)
        return update == settings.max_updates or any(update % interval == 0 for interval in every)

    def scheduled_checkpoints(self) -> list[int]:
        """The updates whose checkpoints are there, oldest first, without those of interruptions."""
        return [update for update in checkpoint_folders(self.run) if self._is_scheduled(update)]

    def _interrupt_if_asked(self, monitor: Monitor) -> None:
        """After a signal to any worker: saves and raises Interrupted. All come here together."""
        signal_number = self.workers.agree(self.stop.signal_number)
        if signal_number is None:
            return
        self._save(monitor)
        raise Interrupted(
            signal_number,
            f"stopped at update {self.progress.update}, state saved in {self.run}; the same command goes on",
        )

    def _interrupt_between_batches(self, monitor: Monitor) -> None:
        """Where several workers have different numbers of batches, they agree after the last."""
        if self.workers.size == 1:
            self._interrupt_if_asked(monitor)


def _spread(pairs: datasets.Dataset, count: int) -> datasets.Dataset:
    """``count`` pairs at even distances: corpora are often sorted."""
    if count >= len(pairs):
        return pairs
    return pairs.select(np.linspace(0, len(pairs) - 1, count).round().astype(int))
