"""The batches of each update, prepared while the previous update is computed, and the number of processes for it."""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice

import torch

from mt.config import TrainConfig
from mt.data.batching.batch import Batch, PackedBatch
from mt.data.batching.batches import TrainingBatches
from mt.data.parallel import available_cores
from mt.distributed.workers import Workers

UPDATES_AHEAD = 8
"""Updates whose batches are prepared ahead. Once in MAX_WINDOW_BATCHES batches, the next one takes longer."""

MAX_AUTO_FEED_PROCESSES = 8
"""For training.feed_processes=auto. As many feed the fastest GPU, and each holds some 200 MB of memory."""


@dataclass(frozen=True)
class UpdateBatches:
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


def feed(
    batches: TrainingBatches, epoch: int, batch: int, accumulate: int, workers: Workers
) -> Generator[UpdateBatches, None, None]:
    """Yield the batches of each update without end.

    A thread prepares them UPDATES_AHEAD updates ahead: it samples subwords, pads or packs, and pins memory for a GPU.
    So the copy to the GPU overlaps with the computation.

    Args:
        batches: The batches of this worker, by epoch.
        epoch: The epoch to begin with.
        batch: The number of batches of that epoch to skip.
        accumulate: Batches per update. They may span two epochs.
        workers: All of them have to take as many items, because the counts of tokens are summed over them.
    """

    def single_batches() -> Iterator[tuple[int, int, Batch | PackedBatch]]:
        for number in count(epoch):
            first = batch if number == epoch else 0
            for position, item in enumerate(batches.epoch(number, first), first + 1):
                yield number, position, item

    stream = single_batches()

    def next_update() -> UpdateBatches:
        items = list(islice(stream, accumulate))
        own = [item for _, _, item in items]
        token_counts = workers.sum_numbers(
            [
                sum(item.source_tokens for item in own),
                sum(item.target_tokens for item in own),
                sum(item.padded_tokens for item in own),
            ]
        )
        if workers.device.type == "cuda":
            own = [item.pin_memory() for item in own]
        last_epoch, last_batch, _ = items[-1]
        return UpdateBatches(own, last_epoch, last_batch, *token_counts)

    # The thread ends before the processes, because other workers may wait for its counts of tokens.
    with closing(batches), ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as worker:
        ahead = deque(worker.submit(next_update) for _ in range(UPDATES_AHEAD))
        while True:
            ready = ahead.popleft().result()
            ahead.append(worker.submit(next_update))
            yield ready


def feed_process_count(config: TrainConfig, device: torch.device, local_size: int) -> int:
    """Return the number of processes that prepare the batches of each worker, as ``training.feed_processes`` says.

    Args:
        config: The config of the run.
        device: The device of the worker.
        local_size: The number of workers on this machine.
    """
    if not config.tokenizer.sampling and config.text.augmentation.is_off:
        return 0
    if config.training.feed_processes != "auto":
        return config.training.feed_processes
    if device.type == "cpu":
        return 0
    cores = available_cores() // local_size
    # On two cores, the process that feeds the GPU leaves most of its core to others.
    return max(1, min(MAX_AUTO_FEED_PROCESSES, cores if cores <= 2 else cores - 1))
