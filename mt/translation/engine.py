"""The interface of the search engines, and the search under constraints that a ``Translator`` calls."""

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from mt.config import DecodingConfig
from mt.config.decoding import ENGINES
from mt.distributed.workers import Workers
from mt.models.seq2seq import TranslationModel
from mt.translation.batches import AfterBatch, BatchRunner
from mt.translation.hypotheses import Constraint, Hypotheses, HypothesisChecker, TokenRows, WithoutLoops
from mt.translation.results import Statistics
from mt.translation.trained_model import TrainedModel


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
    """The translator's counts. Loops are added to those of the leader."""
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
            if self.workers.is_leader:
                self.statistics.loops += sum(isinstance(new[-1], WithoutLoops) for new in constraints)
            constrained = replace(request.select(again), constraints=constraints)
            for n, several in zip(again, self._run_distinct(constrained), strict=True):
                allowed[n] = several
        return allowed
