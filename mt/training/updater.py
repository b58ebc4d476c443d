"""One update: accumulated gradients, clipping, and gradients that are not finite."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mt.config import TrainConfig
from mt.core.device import autocast, copy_to_cpu_async
from mt.core.errors import RunError, is_out_of_memory
from mt.core.randomness import key
from mt.data.batching import Batch
from mt.distributed.replication import full_tensor, gradient_sync
from mt.distributed.workers import Workers
from mt.training.checkpoint import Checkpoint, Progress
from mt.training.feed import UpdateBatches
from mt.training.objective import Objective, data_parallel
from mt.training.optimizer import Optimizer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _PendingUpdate:
    """An update that a GPU may still be computing."""

    number: int
    outcome: Callable[[], list[bool]]
    """Returns whether the gradient is finite, and whether the update counts as bad. Waits until both are known."""
    target_tokens: int
    padded_tokens: int


class Updater:
    """Makes the updates of a run and counts them in its progress. Each worker's trainer holds one."""

    def __init__(
        self, config: TrainConfig, objective: Objective, workers: Workers, precision: torch.dtype, progress: Progress
    ) -> None:
        settings = config.training
        self.config = config
        self.workers = workers
        self.precision = precision
        self.progress = progress
        self.model = objective.model
        self.replica = data_parallel(objective, workers, precision)
        self.optimizer = Optimizer(self.model, settings.optimizer, settings.schedule, settings.max_updates, workers)
        self.scaler = torch.amp.GradScaler(workers.device.type, enabled=precision == torch.float16)
        self.interval_loss = torch.zeros((), device=workers.device)
        """This worker's part of ``progress.interval_loss``. It stays on the device, because reading it at each update
        would make the GPU wait."""
        self._pending: _PendingUpdate | None = None
        self._has_warned_of_memory = False

    def restore(self, checkpoint: Checkpoint) -> None:
        """Load everything that the next update depends on except for the weights."""
        self.optimizer.load_state_tensors(checkpoint.optimizer_tensors())
        self.interval_loss.fill_(self.progress.interval_loss if self.workers.is_leader else 0.0)
        if self.progress.scaler:
            self.scaler.load_state_dict(self.progress.scaler)

    def save_state(self) -> dict[str, Tensor]:
        """Record the state in the progress, and return the optimizer's tensors. All workers have to call this."""
        self.count()
        self.progress.scaler = self.scaler.state_dict()
        self.progress.interval_loss = self.workers.sum(self.interval_loss.clone()).item()
        return self.optimizer.state_tensors()

    def update(self, ready: UpdateBatches) -> tuple[Tensor, float]:
        """Make one optimizer step on the mean loss per target token, without padding.

        Returns:
            The gradient's norm before clipping, and the learning rate.
        """
        progress = self.progress
        self.model.train()
        batches = ready.batches
        while (loss := self._add_gradients(batches, ready.target_tokens)) is None:
            self.optimizer.zero_grad()
            if self.workers.device.type == "cuda":
                torch.cuda.empty_cache()
            batches = [half for batch in batches for half in batch.halves()]
        for part in self.optimizer.parts:
            self.scaler.unscale_(part)
        clip_norm = self.config.training.clip_norm or math.inf
        norm = full_tensor(torch.nn.utils.clip_grad_norm_(self.model.parameters(), clip_norm))
        finite = norm.isfinite()
        # In fp16, gradients overflow now and then until the scale fits. GradScaler handles that; it is not bad.
        bad = ~finite & (self.scaler.scale(torch.ones_like(norm)) <= 1)
        rate = self.optimizer.set_learning_rate(progress.update + 1)
        self.optimizer.step(finite)  # not by the scaler's step, which would wait for the GPU
        self.scaler.update()
        self.optimizer.zero_grad()
        self.interval_loss += loss.where(finite, 0)
        progress.update += 1
        progress.epoch, progress.batch = ready.epoch, ready.batch
        progress.source_tokens += ready.source_tokens
        progress.target_tokens += ready.target_tokens
        # The only wait in an update. It is for the update before, and meanwhile the GPU goes on with this one.
        self.count()
        outcome = copy_to_cpu_async(torch.stack([finite, bad]))
        self._pending = _PendingUpdate(progress.update, outcome, ready.target_tokens, ready.padded_tokens)
        return norm.detach(), rate

    def _add_gradients(self, batches: list[Batch], target_tokens: int) -> Tensor | None:
        """Accumulate the gradients of the mean loss per target token of all workers.

        Returns:
            The sum of this worker's losses; None if the memory does not suffice, but might for smaller batches.
        """
        # Dropout depends only on the update (and the worker), so that it is the same in a run that is resumed.
        rank = [self.workers.rank] if self.workers.rank else []
        torch.manual_seed(key(self.config.seed, "dropout", self.progress.update, *rank))
        total = torch.zeros((), device=self.workers.device)
        try:
            for number, batch in enumerate(batches, 1):
                with gradient_sync(self.replica, enabled=number == len(batches)):
                    with autocast(self.workers.device, self.precision):
                        loss = self.replica(batch)
                    # Times the number of workers, because replicas average their gradients over the workers.
                    self.scaler.scale(loss * (self.workers.size / target_tokens)).backward()
                total += loss.detach()
        except (RuntimeError, MemoryError) as error:
            # With several workers, a batch cannot be repeated in halves: the others would wait for its gradients.
            if not is_out_of_memory(error) or self.workers.size > 1 or max(len(batch.ids) for batch in batches) == 1:
                raise
            if not self._has_warned_of_memory:
                logger.warning(
                    "update %d: out of memory; repeated in halves, as later ones will be if necessary. "
                    "A smaller training.batch_tokens with more training.accumulate would be faster.",
                    self.progress.update + 1,
                )
                self._has_warned_of_memory = True
            return None
        return total

    def count(self) -> None:
        """Count the last update as good or bad. A gradient that is not finite never reaches the weights.

        Raises:
            RunError: Too many updates in a row were bad.
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
            logger.warning("update %d: the gradient is not finite; this update is skipped", pending.number)
        if progress.consecutive_bad_updates >= self.config.training.max_bad_steps:
            raise RunError(
                f"training diverged: {progress.consecutive_bad_updates} updates in a row had no finite gradient. The "
                "last checkpoint is kept. Lower training.optimizer.learning_rate, or set training.precision=fp32"
            )
