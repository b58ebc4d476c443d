"""The batches of each update, prepared while the update before it is computed."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count, islice

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
    """Yield the batches of one update after another, without end, from batch ``batch`` of epoch ``epoch`` on.

    An update takes ``accumulate`` batches, which may span two epochs. A thread works one update ahead: it samples
    subwords, pads and, for a GPU, pins the batches in memory. The copy to the device overlaps with the computation.
    """

    def single_batches() -> Iterator[tuple[int, int, Batch]]:
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
                sum(item.target_output.numel() for item in own if item.target_tokens),
            ]
        )
        if workers.device.type == "cuda":
            own = [item.pin_memory() for item in own]
        last_epoch, last_batch, _ = items[-1]
        return UpdateBatches(own, last_epoch, last_batch, *token_counts)

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as worker:
        ahead = worker.submit(next_update)
        while True:
            ready = ahead.result()
            ahead = worker.submit(next_update)
            yield replace(ready, batches=[item.to(workers.device) for item in ready.batches])
