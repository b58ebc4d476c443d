"""Prepares the batches of each update while the update before it is computed."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice

from mt.data.batching import Batch, TrainingBatches
from mt.distributed.workers import Workers


@dataclass(frozen=True)
class UpdateBatches:
    """This worker's share of the batches whose gradients make one update, and the position in the data after it."""

    batches: list[Batch]
    epoch: int
    batch: int
    source_tokens: int
    """Summed over all workers, like the two fields below."""
    target_tokens: int
    padded_tokens: int
    """Target tokens, padding included."""


def feed(
    batches: TrainingBatches, epoch: int, batch: int, accumulate: int, workers: Workers
) -> Generator[UpdateBatches, None, None]:
    """Yields the batches of one update after another, without end, beginning with batch ``batch`` of epoch ``epoch``.
    An update takes ``accumulate`` batches, which may span two epochs.

    A thread works one update ahead: it samples subwords, pads and, for a GPU, pins the batches in memory. The copy to
    the device runs beside the computation.
    """

    def single() -> Iterator[tuple[Batch, int, int]]:
        start, number = batch, epoch
        while True:
            for index, one in enumerate(batches.epoch(number, start), start + 1):
                yield one, number, index
            start, number = 0, number + 1

    stream = single()

    def next_update() -> UpdateBatches:
        taken = list(islice(stream, accumulate))
        ready = [one for one, _, _ in taken]
        counts = workers.sum_numbers(
            [
                sum(one.source_tokens for one in ready),
                sum(one.target_tokens for one in ready),
                sum(one.target_output.numel() for one in ready if one.target_tokens),
            ]
        )
        if workers.device.type == "cuda":
            ready = [one.pin_memory() for one in ready]
        _, last_epoch, last_batch = taken[-1]
        return UpdateBatches(ready, last_epoch, last_batch, *counts)

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as worker:
        ahead = worker.submit(next_update)
        while True:
            ready = ahead.result()
            ahead = worker.submit(next_update)
            yield replace(ready, batches=[one.to(workers.device) for one in ready.batches])
