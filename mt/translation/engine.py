"""The interface between Translator and the search for translations, and its implementation in PyTorch."""

from collections.abc import Callable, Sequence
from typing import Protocol

from mt.config import DecodingConfig
from mt.data.batching import collate
from mt.models.seq2seq import TranslationModel
from mt.translation.search import Hypothesis, search


class Engine(Protocol):
    """Searches for translations. Every implementation finds the hypotheses that ``mt.translation.search`` defines."""

    rows_each: int
    """How many rows each source takes up in a batch, as counted against its budget, ``decoding.batch_tokens``."""

    def search(
        self,
        sources: Sequence[list[int]],
        sampling_keys: Sequence[tuple[int, ...]],
        before_step: Callable[[], None] = lambda: None,
    ) -> list[list[Hypothesis]]:
        """Returns the translations of each source, best first: n_best of them, or as many as there are.

        This is called from several threads at once. The model must be in evaluation mode.

        Args:
            sources: A batch of B sources, as pieces without BOS and EOS.
            sampling_keys: One key for each source, (B). The same key draws the same random numbers in any batch.
            before_step: Called before each decoding step, by engines that can.
        """


class TorchEngine:
    """Searches with the PyTorch model, on its current device and with its current weights."""

    def __init__(self, model: TranslationModel, config: DecodingConfig) -> None:
        self.model = model
        self.config = config
        self.rows_each = config.n_best if config.method == "sample" else config.beam_size

    def search(
        self,
        sources: Sequence[list[int]],
        sampling_keys: Sequence[tuple[int, ...]],
        before_step: Callable[[], None] = lambda: None,
    ) -> list[list[Hypothesis]]:
        """See Engine. Raises RunError if the model's scores are not finite."""
        source = collate(range(len(sources)), sources, [[]] * len(sources)).source
        return search(self.model, source.to(self.model.device), self.config, sampling_keys, before_step)
