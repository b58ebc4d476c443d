"""The batches of each update, made ready while the one before is computed."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import torch

from mt.data.batching import Batch, TrainingBatches


@dataclass(frozen=True)
class UpdateBatches:
    """The batches whose gradients make one update, and where the data stand after it."""

    batches: list[Batch]
    epoch: int
    batch: int


def feed(
    batches: TrainingBatches, epoch: int, batch: int, accumulate: int, device: torch.device
) -> Generator[UpdateBatches, None, None]:
    """Endlessly, from batch ``batch`` of epoch ``epoch`` on; an update's batches may span two epochs.

    One thread works one update ahead: it samples, pads and, for a GPU, pins; the copy to the device runs beside the
    arithmetic.
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
        ready = [one.pin_memory() if device.type == "cuda" else one for one, _, _ in taken]
        return UpdateBatches(ready, *taken[-1][1:])

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as worker:
        ahead = worker.submit(next_update)
        while True:
            ready = ahead.result()
            ahead = worker.submit(next_update)
            yield UpdateBatches([one.to(device) for one in ready.batches], ready.epoch, ready.batch)
