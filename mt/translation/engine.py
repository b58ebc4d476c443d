"""What Translator asks of whatever finds the translations, and PyTorch's way of finding them."""

from collections.abc import Sequence
from typing import Protocol

from mt.config import DecodingConfig
from mt.data.batching import collate
from mt.model.seq2seq import Seq2Seq
from mt.translation.search import Hypothesis, search


class Engine(Protocol):
    """One search, several machineries: each finds the hypotheses that ``mt.translation.search`` defines."""

    rows_each: int
    """How many rows each source of a batch takes: what of the budget of a batch, ``decoding.batch_tokens``, it uses."""

    def search(self, sources: Sequence[list[int]], sampling_keys: Sequence[tuple[int, ...]]) -> list[list[Hypothesis]]:
        """The translations of a batch of B sources (pieces without BOS and EOS), best first: n_best of each, or as many
        as there are. Called from several threads at once; the model must be in evaluation mode.

        ``sampling_keys`` (B): the same key draws the same numbers in any batch.
        """


class TorchEngine:
    """The model itself, where it is and as it is at the time."""

    def __init__(self, model: Seq2Seq, config: DecodingConfig) -> None:
        self.model = model
        self.config = config
        self.rows_each = config.n_best if config.method == "sample" else config.beam_size

    def search(self, sources: Sequence[list[int]], sampling_keys: Sequence[tuple[int, ...]]) -> list[list[Hypothesis]]:
        """See Engine. Raises RunError if the model's scores are not finite."""
        source = collate(range(len(sources)), sources, [[]] * len(sources)).source
        return search(self.model, source.to(self.model.output_weight.device), self.config, sampling_keys)
