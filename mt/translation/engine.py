"""The interface of the search engines, their batches and threads, and the search under constraints that a
``Translator`` calls."""

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
    TokenRows,
    WithoutLoops,
    forced_log_probabilities,
)
from mt.translation.results import Statistics
from mt.translation.trained_model import TrainedModel

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


def forced_scores(
    runner: BatchRunner,
    pairs: Sequence[tuple[list[int], list[int]]],
    length_penalty: float,
    workers: Workers | None = None,
) -> list[float]:
    """Return the score of the target of each pair of source and target, in batches. For ``workers`` see
    ``BatchRunner.run``."""

    def score_batch(batch: list[int]) -> list[float]:
        return forced_log_probabilities(runner.model, *zip(*(pairs[n] for n in batch), strict=True))

    totals = runner.run(score_batch, [max(map(len, pair)) + 1 for pair in pairs], workers=workers)
    hypotheses = map(Hypothesis, (target for _, target in pairs), totals)
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
    """Whether to take the most probable token at every step, whatever the config says."""
    before_step: Callable[[], None] = lambda: None
    """Called before each decoding step, by engines that can. It may do other work, such as another search."""

    constraints: Sequence[Sequence[Constraint]] = ()
    """The constraints on the hypotheses of each source, (B); empty: none on any."""
    checkers: Sequence[HypothesisChecker | None] = ()
    """The checker of each source, (B), if they are of several directions; empty: that of the search."""

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

    ``mt.translation.hypotheses`` defines scores, ends and length limits. Sources that an engine cannot search exactly
    so, the PyTorch model searches.
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
        """Return the number of rows of a batch for each source, as counted against ``decoding.batch_tokens``."""

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
    """Finds the constraints that a hypothesis violates, if the request has no checkers; None: there are none."""
    statistics: Statistics
    """The translator's counts. Loops are added to those of the main process."""
    workers: Workers
    """The workers that share the batches."""

    def run(self, request: SearchRequest, after_batch: AfterBatch | None = None) -> Hypotheses:
        """Return the hypotheses of each source, best first. All workers have to call this with the same request.

        The sources are batched by length. Equal sources are searched once, unless sampling draws different random
        numbers for them.
        """
        keys = request.sampling_keys if self.config.method == "sample" else [()] * len(request.sources)
        checkers = request.checkers or [self.checker] * len(request.sources)
        first: dict[object, int] = {}
        equal_to = [
            first.setdefault((tuple(source), key, checker), n)
            for n, (source, key, checker) in enumerate(zip(request.sources, keys, checkers, strict=True))
        ]
        distinct = replace(request, checkers=checkers).select(list(first.values()))

        by_source = dict(zip(first.values(), self._run_distinct(distinct, after_batch), strict=True))
        return [by_source[n] for n in equal_to]

    def _run_distinct(self, request: SearchRequest, after_batch: AfterBatch | None = None) -> Hypotheses:
        """Return the hypotheses of each source that violate no constraint, best first.

        A source whose best hypothesis violates one is searched again under it.
        """
        lengths, rows = [len(source) + 1 for source in request.sources], self.engine.rows_per_source(request)
        searched = self.runner.run(
            lambda batch: self.engine.search(request.select(batch)), lengths, rows, after_batch, self.workers
        )
        violated = [
            [checker.violated(source, hypothesis.tokens) if checker else [] for hypothesis in several]
            for source, checker, several in zip(request.sources, request.checkers, searched, strict=True)
        ]
        allowed = [
            [hypothesis for hypothesis, constraints in zip(hypotheses, violations, strict=True) if not constraints]
            for hypotheses, violations in zip(searched, violated, strict=True)
        ]
        if again := [n for n, (best, *_) in enumerate(violated) if best]:
            before = request.constraints or [()] * len(searched)
            constraints = [(*before[n], *violated[n][0]) for n in again]
            if self.workers.is_main:
                self.statistics.loops += sum(isinstance(new[-1], WithoutLoops) for new in constraints)
            constrained = replace(request.select(again), constraints=constraints)
            for n, several in zip(again, self._run_distinct(constrained), strict=True):
                allowed[n] = several
        return allowed
