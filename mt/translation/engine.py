"""The interface of search engines, batches and threads of a search, and the search under constraints."""

import math
import pkgutil
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import torch

from mt.config import DecodingConfig
from mt.config.decoding import ENGINES
from mt.core.device import autocast
from mt.distributed.workers import Workers
from mt.models.seq2seq import TranslationModel
from mt.translation.hypotheses import (
    Constraint,
    Hypotheses,
    Hypothesis,
    HypothesisChecker,
    LoopConstraint,
    TokenRows,
    forced_log_probabilities,
)
from mt.translation.results import Statistics
from mt.translation.trained_model import TrainedModel

SourceResult = TypeVar("SourceResult")
AfterBatch = Callable[[int, int], None]
"""Called after each batch with the numbers of finished batches and of all batches."""


def plan_batches(lengths: Sequence[int], rows_per_source: int, batch_tokens: int, cores: int) -> list[list[int]]:
    """Group indices of similar length into batches, longest first.

    The number of rows of a batch times its maximum length is at most ``batch_tokens``. The number of batches is the
    smallest that this budget permits, rounded up to a multiple of the number of cores. The batches are as even as that
    number permits, so that no core waits long for another's last batch. But the budget of a batch is never less than an
    eighth of ``batch_tokens``, because a decoding step has a fixed cost.
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
    """Runs a function on batches of sources, with one model in inference mode at a given precision."""

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
            after_batch: Called after each batch of this process, with its numbers of finished batches and of batches.
            workers: The processes that share the batches. All of them have to call this with the same lengths. None:
                this process works on all batches.
        """
        workers = workers or Workers(self.model.device)
        cores = torch.get_num_threads() if self.model.device.type == "cpu" else 1
        cores_of_all = sum(workers.gather([cores]))
        batches = plan_batches(lengths, rows_per_source, self.batch_tokens, cores_of_all)
        shared_batches = workers.share(batches)
        shared_results = []

        def infer(batch: list[int]) -> Sequence[SourceResult]:
            with self.inference():
                return work(batch)

        with self.evaluation_mode(), _core_map(cores) as parallel_map:
            for done, outputs in enumerate(parallel_map(infer, shared_batches), start=1):
                shared_results.append(outputs)
                if after_batch:
                    after_batch(done, len(shared_batches))
        results: dict[int, SourceResult] = {}
        for batch, outputs in zip(batches, workers.gather(shared_results), strict=True):
            results |= zip(batch, outputs, strict=True)
        return [results[index] for index in range(len(lengths))]

    @contextmanager
    def evaluation_mode(self) -> Iterator[None]:
        """Context manager: put the model into evaluation mode, and restore its mode afterwards."""
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
        """Context manager: disable gradients, and compute at the precision, in the current thread."""
        with torch.inference_mode(), autocast(self.model.device, self.precision):
            yield


@contextmanager
def _core_map(cores: int) -> Iterator[Callable]:
    """Context manager: yield a function like ``map`` that runs in ``cores`` threads, each with one torch thread."""
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


def forced_scores(
    runner: BatchRunner,
    pairs: Sequence[tuple[list[int], list[int]]],
    length_penalty: float,
    workers: Workers | None = None,
) -> list[float]:
    """Return the score of the target of each pair of source and target (forced decoding).

    For ``workers`` see ``BatchRunner.run``.
    """

    def score_batch(batch: list[int]) -> list[float]:
        return forced_log_probabilities(runner.model, *zip(*(pairs[n] for n in batch), strict=True))

    log_probabilities = runner.run(score_batch, [max(map(len, pair)) + 1 for pair in pairs], workers=workers)
    hypotheses = map(Hypothesis, (target for _, target in pairs), log_probabilities)
    return [hypothesis.score(length_penalty) for hypothesis in hypotheses]


@dataclass(frozen=True)
class SearchRequest:
    """A batch of B sources to translate."""

    sources: TokenRows
    """Tokens without BOS and EOS, (B)."""
    sampling_keys: Sequence[tuple[int, ...]]
    """Keys (B) of the random numbers. The same key draws the same numbers in any batch."""
    n_best: int | None = None
    """Maximum number of hypotheses of each source, at most the beam size; None: ``decoding.n_best``."""
    greedy: bool = False
    """Whether to search greedily, whatever ``decoding.method`` and ``decoding.beam_size`` are."""
    before_step: Callable[[], None] = lambda: None
    """Called before each decoding step, by engines that can. It may do other work, such as another search."""
    constraints: Sequence[Sequence[Constraint]] = ()
    """The constraints on the hypotheses of each source, (B); empty: there are none."""
    checkers: Sequence[HypothesisChecker | None] = ()
    """The checker of each source, (B), if the sources have several directions; empty: the checker of the search."""

    def select(self, indices: Sequence[int]) -> "SearchRequest":
        """Return a request for the sources at some indices, in the order of the indices."""
        return replace(
            self,
            sources=[self.sources[n] for n in indices],
            sampling_keys=[self.sampling_keys[n] for n in indices],
            constraints=[self.constraints[n] for n in indices] if self.constraints else (),
            checkers=[self.checkers[n] for n in indices] if self.checkers else (),
        )


class Engine(ABC):
    """The interface of search engines, which find the hypotheses of sources for one model. A ``Translator`` holds one.

    ``mt.translation.hypotheses`` defines scores, ends and length limits. An engine passes the sources that it cannot
    search exactly in this way to the PyTorch model.
    """

    name: ClassVar[str]
    """The value of ``decoding.engine`` that selects this engine."""

    @classmethod
    def check(cls, config: DecodingConfig, device: torch.device, model_count: int) -> None:
        """Raise InputError if the engine does not support the settings, the device or an ensemble of ``model_count``
        models. This is called before any model is loaded."""
        return

    @classmethod
    @abstractmethod
    def open(cls, model: TranslationModel, trained: TrainedModel, config: DecodingConfig) -> "Engine":
        """Return an engine for a model; after a warning, a ``TorchEngine`` if this engine cannot run the model.

        Args:
            model: The model on its device, or an ensemble.
            trained: The model, or the first member of the ensemble, as it was opened.
            config: The decoding settings.
        """

    @abstractmethod
    def rows_per_source(self, request: SearchRequest) -> int:
        """Return the number of rows that each source has in a batch, as counted for ``decoding.batch_tokens``."""

    @abstractmethod
    def search(self, request: SearchRequest) -> Hypotheses:
        """Return the hypotheses of each source, best first. Several threads may search at once.

        The model must be in evaluation mode.

        Raises:
            RunError: The model's scores are not finite.
        """


def engine_class(name: str) -> type[Engine]:
    """Import and return the class of an engine, given its name in ``decoding.engine``."""
    engine: type[Engine] = pkgutil.resolve_name(ENGINES[name])
    return engine


@dataclass
class ConstrainedSearch:
    """Finds the hypotheses of sources with one engine. A ``Translator`` holds one."""

    engine: Engine
    config: DecodingConfig
    runner: BatchRunner
    checker: HypothesisChecker | None
    """The checker of all sources, if the request has no checkers; None: hypotheses are not checked."""
    statistics: Statistics
    """The translator's counts. The main process adds loops."""
    workers: Workers
    """The processes that share the batches."""

    def run(self, request: SearchRequest, after_batch: AfterBatch | None = None) -> Hypotheses:
        """Return the hypotheses of each source, best first. All processes have to call this with the same request.

        Equal sources are searched once, unless sampling draws different random numbers for them.
        """
        keys = request.sampling_keys if self.config.method == "sample" else [()] * len(request.sources)
        checkers = request.checkers or [self.checker] * len(request.sources)
        first: dict[object, int] = {}
        equal_to = [
            first.setdefault((tuple(source), key, checker), n)
            for n, (source, key, checker) in enumerate(zip(request.sources, keys, checkers, strict=True))
        ]
        distinct = replace(request, checkers=checkers).select(list(first.values()))
        hypotheses = dict(zip(first.values(), self._run_distinct(distinct, after_batch), strict=True))
        return [hypotheses[n] for n in equal_to]

    def _run_distinct(self, request: SearchRequest, after_batch: AfterBatch | None = None) -> Hypotheses:
        """Return the hypotheses of each source that violate no constraint, best first.

        If the best hypothesis of a source violates constraints, the source is searched again under them.
        """
        lengths, rows = [len(source) + 1 for source in request.sources], self.engine.rows_per_source(request)
        searched = self.runner.run(
            lambda batch: self.engine.search(request.select(batch)), lengths, rows, after_batch, self.workers
        )
        violated = [
            [checker.violated_constraints(source, hypothesis.tokens) if checker else [] for hypothesis in hypotheses]
            for source, checker, hypotheses in zip(request.sources, request.checkers, searched, strict=True)
        ]
        allowed = [
            [hypothesis for hypothesis, constraints in zip(hypotheses, violations, strict=True) if not constraints]
            for hypotheses, violations in zip(searched, violated, strict=True)
        ]
        if rejected := [n for n, (best, *_) in enumerate(violated) if best]:
            previous = request.constraints or [()] * len(searched)
            constraints = [(*previous[n], *violated[n][0]) for n in rejected]
            if self.workers.is_main:
                self.statistics.loops += sum(isinstance(new[-1], LoopConstraint) for new in constraints)
            constrained = replace(request.select(rejected), constraints=constraints)
            for n, hypotheses in zip(rejected, self._run_distinct(constrained), strict=True):
                allowed[n] = hypotheses
        return allowed
