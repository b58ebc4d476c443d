"""Train steps: batches are prefetched, gradients accumulated and clipped, and updates with non-finite gradients
skipped."""

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mt.config import TrainConfig
from mt.core.device import autocast, copy_to_cpu_async
from mt.core.errors import RunError, is_out_of_memory
from mt.core.randomness import key
from mt.data.batching.batch import Batch, PackedBatch, PackedShape
from mt.data.batching.batches import TrainingBatches
from mt.data.parallel import available_cores
from mt.distributed.replication import gradient_sync
from mt.distributed.workers import Workers
from mt.storage.run_folder import checkpoint_folders
from mt.storage.weights import Tensors, read_tensors
from mt.training.checkpoint import OPTIMIZER, Checkpoint, Progress
from mt.training.objective import Objective, data_parallel
from mt.training.optimizer import Optimizer
from mt.training.packed_step import PackedStep, has_packed_kernels
from mt.training.thread_parallel import ThreadParallel, part_count

logger = logging.getLogger(__name__)

PREFETCHED_UPDATES = 8
"""Number of updates whose batches are prefetched. Once in MAX_WINDOW_BATCHES batches, the next one takes longer."""

MAX_AUTO_FEED_PROCESSES = 8
"""Maximum of training.feed_processes=auto, enough for the fastest GPU. Each process takes about 200 MB of memory."""


class UpdateBatches(NamedTuple):
    """This worker's share of the batches of one update."""

    batches: Sequence[Batch | PackedBatch]
    """In CPU memory, pinned if there is a GPU."""
    epoch: int
    """The epoch of the last batch, which is also the epoch after the update."""
    batch: int
    """Batches of that epoch that are done after the update."""
    source_tokens: int
    """Source tokens of all workers, without padding."""
    target_tokens: int
    """Target tokens of all workers, without padding."""
    padded_tokens: int
    """Target tokens of all workers, with padding."""


def prefetch_updates(
    batches: TrainingBatches, epoch: int, batch: int, accumulate: int, workers: Workers
) -> Generator[UpdateBatches, None, None]:
    """Yield the batches of each update, without end.

    A thread prepares them PREFETCHED_UPDATES updates in advance: it samples subwords, pads or packs, and pins memory,
    so that copies to the GPU overlap with computation.

    Args:
        batches: The batches of this worker, by epoch.
        epoch: The first epoch.
        batch: The number of batches of that epoch to skip.
        accumulate: Batches per update. They may span two epochs.
        workers: All of them have to take equally many items, because the numbers of tokens are summed over them.
    """

    def single_batches() -> Iterator[tuple[int, int, Batch | PackedBatch]]:
        for number in count(epoch):
            first = batch if number == epoch else 0
            for position, item in enumerate(batches.epoch(number, first), first + 1):
                yield number, position, item

    stream = single_batches()

    def next_update() -> UpdateBatches:
        items = list(islice(stream, accumulate))
        batches_of_worker = [item for _, _, item in items]
        names = "source_tokens", "target_tokens", "padded_tokens"
        counts = workers.gather_objects([sum(getattr(item, name) for item in batches_of_worker) for name in names])
        if workers.device.type == "cuda":
            batches_of_worker = [item.pin_memory() for item in batches_of_worker]
        last_epoch, last_batch, _ = items[-1]
        return UpdateBatches(batches_of_worker, last_epoch, last_batch, *map(sum, zip(*counts, strict=True)))

    # The thread ends before the feed processes, because other workers may wait for its numbers of tokens.
    with closing(batches), ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as worker:
        ahead = deque(worker.submit(next_update) for _ in range(PREFETCHED_UPDATES))
        while True:
            ready = ahead.popleft().result()
            ahead.append(worker.submit(next_update))
            yield ready


def feed_process_count(config: TrainConfig, workers: Workers) -> int:
    """Return the number of processes that prepare the batches of each worker, after ``training.feed_processes``."""
    if not config.tokenizer.sampling and config.text.augmentation.is_off:
        return 0
    if config.training.feed_processes != "auto":
        return config.training.feed_processes
    if workers.device.type == "cpu":
        return 0
    cores = available_cores() // workers.local_size
    # On two cores, the process that feeds the GPU leaves most of its core to others.
    return max(1, min(MAX_AUTO_FEED_PROCESSES, cores if cores <= 2 else cores - 1))


class _PendingStep(NamedTuple):
    """An update that a GPU may still be computing."""

    number: int
    outcome: Callable[[], list[bool]]
    """Waits for the GPU. Returns whether the gradient was finite, and whether the update was bad."""
    target_tokens: int
    padded_tokens: int


@dataclass
class Updater:
    """Makes the train steps of a run and counts them in its progress. The trainer of each worker holds one."""

    config: TrainConfig
    objective: Objective
    """The objective with the model, on its device."""
    workers: Workers
    """The workers that train together. All of them have to construct this."""
    precision: torch.dtype
    """The number format of matrix products."""
    progress: Progress
    """The progress of the run. Each train step changes it."""
    packed_shape: PackedShape | None = None
    """The shape of packed batches; None for padded ones."""

    def __post_init__(self) -> None:
        """Wrap the model for data parallelism, and create the optimizer and the step of the batches' kind."""
        settings, objective, workers, progress = self.config.training, self.objective, self.workers, self.progress
        precision, packed_shape = self.precision, self.packed_shape
        self.model = objective.model
        is_packed = packed_shape is not None and has_packed_kernels(workers.device, precision)
        # Sharding replaces the parameters, so the optimizer comes after it.
        self.replica: nn.Module = objective if packed_shape else data_parallel(objective, workers, precision)
        self.optimizer = Optimizer(
            self.model,
            settings.optimizer,
            settings.schedule,
            settings.max_updates - progress.schedule_start,
            workers,
            capturable=is_packed,
        )
        parts = part_count(objective, workers, precision)
        self.thread_parallel = ThreadParallel(objective, parts) if parts > 1 else None
        self.packed_step: PackedStep | None = None
        """Computes packed batches; None if batches are padded, or this machine cannot compute packed ones."""
        if packed_shape and is_packed:
            self.packed_step = PackedStep(
                objective, self.optimizer, settings.clip_norm, workers, precision, packed_shape
            )
        elif packed_shape:
            self._use_padded_batches("they need a CUDA GPU with bf16, Triton and a C compiler")
        self.scaler = torch.amp.GradScaler(workers.device.type, enabled=precision == torch.float16)
        self.interval_loss = torch.zeros((), device=workers.device)
        """This worker's share of ``progress.interval_loss``, on the device: reading it after each step would make the
        GPU wait."""
        self._pending: _PendingStep | None = None
        self._has_warned_of_memory = False

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore the optimizer, GradScaler and the loss of the interval, but not the weights, from a checkpoint."""
        self.optimizer.load_state_tensors(read_tensors(checkpoint.folder / OPTIMIZER))
        self.interval_loss.fill_(self.progress.interval_loss if self.workers.is_main else 0.0)
        if self.progress.scaler:
            self.scaler.load_state_dict(self.progress.scaler)

    def save_state(self) -> Tensors:
        """Store the scaler's state and the interval's loss in the progress. All workers have to call this.

        Returns:
            The tensors of the optimizer by name on the main process, none on other workers.
        """
        self.finish_pending_step()
        self.progress.scaler = self.scaler.state_dict()
        self.progress.interval_loss = self.workers.sum(self.interval_loss.clone()).item()
        return self.optimizer.state_tensors()

    def train_step(self, step: UpdateBatches) -> tuple[Tensor, float]:
        """Make one train step on the mean loss per target token. If memory runs out, divide the batches into halves.

        Returns:
            The norm of the gradient before clipping, a scalar on the device, and the learning rate.
        """
        progress = self.progress
        self.model.train()
        if self.packed_step and not self.packed_step.is_prepared:
            failure = self.packed_step.prepare(step.batches[0])  # type: ignore[arg-type]
            if self.workers.max_over_workers(1 if failure else None):
                self._use_padded_batches(failure or "another worker cannot use packed rows")
            elif self.packed_step.deviations:
                logger.info(
                    "packed batches: the loss differs by %.1g and the gradient by %.1g from those of padded batches",
                    *self.packed_step.deviations,
                )
        # Dropout depends only on the seed, the update and the rank, so that a resumed run has the same masks.
        rank = [self.workers.rank] if self.workers.rank else []
        torch.manual_seed(key(self.config.seed, "dropout", progress.update, *rank))
        rate = self.optimizer.set_learning_rate(progress.update + 1 - progress.schedule_start, progress.rate_reductions)
        if self.packed_step:
            self.packed_step.train_step(step.batches, step.target_tokens)  # type: ignore[arg-type]
            loss, norm = self.packed_step.loss, self.packed_step.norm
        else:
            loss, norm = self._padded_step(step)
        finite = norm.isfinite()
        # In fp16, gradients overflow until GradScaler has reduced its scale. Such an update is not bad.
        bad = ~finite & (self.scaler.scale(torch.ones_like(norm)) <= 1)
        self.scaler.update()
        self.optimizer.zero_grad()
        self.interval_loss += loss.where(finite, 0)
        progress.update += 1
        progress.epoch, progress.batch = step.epoch, step.batch
        progress.source_tokens += step.source_tokens
        progress.target_tokens += step.target_tokens
        # The only wait for the GPU: for the previous step, while the GPU computes this one.
        self.finish_pending_step()
        outcome = copy_to_cpu_async(torch.stack([finite, bad]))
        self._pending = _PendingStep(progress.update, outcome, step.target_tokens, step.padded_tokens)
        return norm, rate

    def _use_padded_batches(self, reason: str) -> None:
        """Use padded batches instead of packed ones from now on, and log why. All workers have to call this."""
        logger.warning("training.batching=packed: its batches are padded on this machine, which is slower: %s", reason)
        self.packed_step = None
        self.replica = data_parallel(self.objective, self.workers, self.precision)

    def _padded_step(self, step: UpdateBatches) -> tuple[Tensor, Tensor]:
        """Update the weights on padded batches. Return the sum of this worker's losses, and the norm of the gradient
        before clipping."""
        batches = [
            part.to(self.workers.device)
            for batch in step.batches
            for part in (
                batch.to_padded(self.config.training.batch_tokens) if isinstance(batch, PackedBatch) else [batch]
            )
        ]
        while (loss := self._add_gradients(batches, step.target_tokens)) is None:
            self.optimizer.zero_grad()
            if self.workers.device.type == "cuda":
                torch.cuda.empty_cache()
            batches = [half for batch in batches for half in batch.split_in_halves()]
        for part in self.optimizer.parts:
            self.scaler.unscale_(part)
        norm = self.optimizer.clip_and_step(self.config.training.clip_norm)  # scaler.step would wait for the GPU
        self.optimizer.broadcast_shares()
        return loss, norm

    def _add_gradients(self, batches: list[Batch], target_tokens: int) -> Tensor | None:
        """Accumulate the gradients of the mean loss per target token.

        Args:
            batches: This worker's batches.
            target_tokens: Target tokens of the update, over all workers.

        Returns:
            The sum of this worker's losses; None if memory ran out and smaller batches might fit.
        """
        total = torch.zeros((), device=self.workers.device)
        try:
            for number, batch in enumerate(batches, 1):
                if self.thread_parallel:
                    total += self.thread_parallel.add_gradients(batch, 1 / target_tokens)
                    continue
                with gradient_sync(self.replica, enabled=number == len(batches)):
                    with autocast(self.workers.device, self.precision):
                        loss = self.replica(batch)
                    # Multiplied by the number of workers, because data parallelism averages gradients over them.
                    self.scaler.scale(loss * (self.workers.size / target_tokens)).backward()
                total += loss.detach()
        except (RuntimeError, MemoryError) as error:
            # With several workers, a batch cannot be repeated in halves: the others would wait for its gradients.
            if not is_out_of_memory(error) or self.workers.size > 1 or max(len(batch.ids) for batch in batches) == 1:
                raise
            if not self._has_warned_of_memory:
                logger.warning(
                    "update %d: out of memory; its batches are repeated in halves, and later ones if necessary. To "
                    "train faster, set a smaller training.batch_tokens and a larger training.accumulate",
                    self.progress.update + 1,
                )
                self._has_warned_of_memory = True
            return None
        return total

    def finish_pending_step(self) -> None:
        """Wait for the last train step, and count it as good or bad. Do nothing if that has been done.

        Raises:
            RunError: training.max_bad_steps updates in a row were bad.
        """
        if not (pending := self._pending):
            return
        self._pending = None
        progress = self.progress
        finite, bad = pending.outcome()
        if finite:
            progress.interval_target_tokens += pending.target_tokens
            progress.interval_padded_tokens += pending.padded_tokens
        if not bad:
            progress.consecutive_bad_updates = 0
            return
        progress.bad_updates += 1
        progress.consecutive_bad_updates += 1
        if progress.consecutive_bad_updates == 1:
            logger.warning(
                "update %d: the gradient is not finite; this update is skipped. If that happens often, lower "
                "training.optimizer.learning_rate",
                pending.number,
            )
        if progress.consecutive_bad_updates >= self.config.training.max_bad_steps:
            message = f"training diverged: {progress.consecutive_bad_updates} updates in a row had no finite gradient. "
            if checkpoints := checkpoint_folders(self.config.folder):
                message += (
                    f"The checkpoint of update {max(checkpoints)} is kept. Continue from it in a new run: name=… "
                    f"training.continue_from={self.config.folder} with a lower "
                )
            else:
                message += "There is no checkpoint yet. Start again with a lower "
            remedy = "" if self.precision == torch.float32 else ", or training.precision=fp32"
            raise RunError(f"{message}training.optimizer.learning_rate{remedy}")
