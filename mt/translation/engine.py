"""The interface of the search engines, which a ``Translator`` calls with batches of sources."""

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from mt.config import DecodingConfig
from mt.config.decoding import ENGINES
from mt.models.seq2seq import TranslationModel
from mt.translation.constraints import Constraint
from mt.translation.hypotheses import Hypothesis
from mt.translation.trained_model import TrainedModel


@dataclass(frozen=True)
class SearchRequest:
    """A batch of B sources to translate."""

    sources: Sequence[list[int]]
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

    def select(self, indices: Sequence[int]) -> "SearchRequest":
        """Return a request for the sources at some indices, in the order of the indices."""
        return replace(
            self,
            sources=[self.sources[n] for n in indices],
            sampling_keys=[self.sampling_keys[n] for n in indices],
            constraints=[self.constraints[n] for n in indices] if self.constraints else (),
        )


class Engine(ABC):
    """The interface of search engines, which find the hypotheses of sources for one model. A ``Translator`` holds one.

    ``mt.translation.hypotheses`` defines scores, ends and length limits. Sources that an engine cannot search exactly
    so, the PyTorch model searches.
    """

    name: ClassVar[str]
    """The value of ``decoding.engine`` that selects this engine."""

    @classmethod
    @abstractmethod
    def check(cls, config: DecodingConfig, device: torch.device, model_count: int) -> None:
        """Raise InputError if the engine does not support the settings, the device or an ensemble of ``model_count``
        models. This is called before any model is loaded."""

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
    def search(self, request: SearchRequest) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, best first. Several threads may search at once.

        The model must be in evaluation mode.

        Raises:
            RunError: The model's scores are not finite.
        """


def engine_class(name: str) -> type[Engine]:
    """Import and return the class of an engine, given its name in ``decoding.engine``."""
    engine: type[Engine] = pkgutil.resolve_name(ENGINES[name])
    return engine
