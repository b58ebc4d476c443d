"""Search under constraints: what a hypothesis must not contain is searched again without it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from mt.config import DecodingConfig
from mt.distributed.workers import Workers
from mt.translation.batches import BatchRunner
from mt.translation.constraints import HypothesisChecker, WithoutLoops
from mt.translation.engine import Engine, SearchRequest
from mt.translation.hypotheses import Hypothesis
from mt.translation.results import Statistics


@dataclass
class ConstrainedSearch:
    """Finds the hypotheses of sources with one engine. A ``Translator`` holds one."""

    engine: Engine
    config: DecodingConfig
    runner: BatchRunner
    checker: HypothesisChecker | None
    """Finds the constraints that a hypothesis violates; None: there are none."""
    statistics: Statistics
    """The translator's counts. Loops are added to those of the leader."""
    workers: Workers
    """The workers that share the batches."""

    def run(
        self, request: SearchRequest, after_batch: Callable[[int, int], None] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, best first. All workers have to call this with the same request.

        The sources are batched by length. Equal sources are searched once, unless sampling draws different random
        numbers for them.
        """
        keys = request.sampling_keys if self.config.method == "sample" else [()] * len(request.sources)
        first: dict[object, int] = {}
        equal_to = [
            first.setdefault((tuple(source), key), n)
            for n, (source, key) in enumerate(zip(request.sources, keys, strict=True))
        ]
        distinct = request.select(list(first.values()))

        by_source = dict(zip(first.values(), self._run_distinct(distinct, after_batch), strict=True))
        return [by_source[n] for n in equal_to]

    def _run_distinct(
        self, request: SearchRequest, after_batch: Callable[[int, int], None] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source that violate no constraint, best first.

        A source whose best hypothesis violates one is searched again under it.
        """
        lengths, rows = [len(source) + 1 for source in request.sources], self.engine.rows_per_source(request)
        searched = self.runner.run(
            lambda batch: self.engine.search(request.select(batch)), lengths, rows, after_batch, self.workers
        )
        if not self.checker:
            return searched
        violated = [
            [self.checker.violated(source, hypothesis.tokens) for hypothesis in several]
            for source, several in zip(request.sources, searched, strict=True)
        ]
        allowed = [
            [hypothesis for hypothesis, constraints in zip(hypotheses, violations, strict=True) if not constraints]
            for hypotheses, violations in zip(searched, violated, strict=True)
        ]
        if again := [n for n, (best, *_) in enumerate(violated) if best]:
            before = request.constraints or [()] * len(searched)
            constraints = [(*before[n], *violated[n][0]) for n in again]
            if self.workers.is_leader:
                self.statistics.loops += sum(isinstance(new[-1], WithoutLoops) for new in constraints)
            constrained = replace(request.select(again), constraints=constraints)
            for n, several in zip(again, self._run_distinct(constrained), strict=True):
                allowed[n] = several
        return allowed
