"""Batches of sources, and the threads that work on them."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

from mt.core.device import autocast
from mt.distributed.workers import Workers
from mt.models.seq2seq import TranslationModel

SourceResult = TypeVar("SourceResult")
AfterBatch = Callable[[int, int], None]
"""Called after each batch with the numbers of finished batches and of all batches."""


def plan_batches(lengths: Sequence[int], rows_per_source: int, batch_tokens: int, cores: int) -> list[list[int]]:
    """Group indices of similar length into batches, longest first.

    A batch's rows times its maximum length stay within ``batch_tokens``. The number of batches is the smallest that
    this budget permits, rounded up to a multiple of the number of cores, and the batches are as even as that number
    permits, so that no core waits long for another's last batch. But the budget of a batch never goes below an eighth
    of ``batch_tokens``, because a decoding step has a fixed cost.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])

    def batches_within(budget: int) -> list[list[int]]:
        batches: list[list[int]] = []
        start = 0
        while start < len(order):
            size = max(1, budget // (lengths[order[start]] * rows_per_source))
            batches.append(order[start : start + size])
            start += size
        return batches

    max_budget = min(batch_tokens, rows_per_source * max(lengths, default=0) * len(lengths))
    min_budget = min(max_budget, batch_tokens // 8)
    max_batches = cores * math.ceil(len(batches_within(max_budget)) / cores)
    # A larger budget never makes more batches, so bisection finds the smallest that suffices.
    return batches_within(
        bisect_left(
            range(max_budget), True, lo=min_budget, key=lambda budget: len(batches_within(budget)) <= max_batches
        )
    )


@dataclass(frozen=True)
class BatchRunner:
    """Runs a function on batches of sources with one model, at a given precision and without gradients."""

    model: TranslationModel
    precision: torch.dtype
    batch_tokens: int
    """The maximum number of tokens of a batch; see ``plan_batches``."""

    def run(
        self,
        work: Callable[[list[int]], Sequence[SourceResult]],
        lengths: Sequence[int],
        rows_per_source: int = 1,
        after_batch: AfterBatch | None = None,
        workers: Workers | None = None,
    ) -> list[SourceResult]:
        """Group indices into batches by length, call ``work`` on each batch, and return the result of each index.

        On a CPU, one thread per core works on a batch, because the small matrix products of a decoding step gain little
        from being shared among cores.

        Args:
            work: A function that takes the indices of a batch and returns one result for each.
            lengths: The length in tokens of the source at each index.
            rows_per_source: See ``plan_batches``.
            after_batch: Called after each batch of this worker with the numbers of finished and of all such batches.
            workers: All of them have to call this with the same lengths, and each works on its share of the batches.
                None: this process works on all batches.
        """
        workers = workers or Workers(self.model.device)
        cores = torch.get_num_threads() if self.model.device.type == "cpu" else 1
        cores_of_all = sum(workers.gather([cores]))
        batches = plan_batches(lengths, rows_per_source, self.batch_tokens, cores_of_all)
        own = workers.share(batches)
        own_results = []

        def infer(batch: list[int]) -> Sequence[SourceResult]:
            with self.inference():
                return work(batch)

        with self.evaluation_mode(), _each_on_a_core(cores) as run_all:
            for done, outputs in enumerate(run_all(infer, own), start=1):
                own_results.append(outputs)
                if after_batch:
                    after_batch(done, len(own))
        results: dict[int, SourceResult] = {}
        for batch, outputs in zip(batches, workers.gather(own_results), strict=True):
            results |= zip(batch, outputs, strict=True)
        return [results[index] for index in range(len(lengths))]

    @contextmanager
    def evaluation_mode(self) -> Iterator[None]:
        """Put the model into evaluation mode, and afterwards back into its previous mode."""
        was_training = self.model.training
        if was_training:
            self.model.eval()
        try:
            yield
        finally:
            if was_training:
                self.model.train()

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Turn gradients off and the precision on, for the current thread alone."""
        with torch.inference_mode(), autocast(self.model.device, self.precision):
            yield


@contextmanager
def _each_on_a_core(cores: int) -> Iterator[Callable]:
    """Yield a function like ``map`` whose calls run in ``cores`` threads, each with one torch thread."""
    if cores == 1:
        yield map
        return
    pool = ThreadPoolExecutor(cores, "decoding", initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)
        # torch gives new threads the number that any thread set last, which here is 1.
        torch.set_num_threads(cores)
