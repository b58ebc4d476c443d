"""The seam: what training, search and comparison know of a model.

Shapes: B sentences, K rows (beams) of each, N = B·K rows, S source and T target positions, D features, V pieces.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor, nn

from mt.model.linear import linear


@dataclass(frozen=True)
class Memory:
    """The encoded source: features (B, S, D) and which positions are real, (B, S)."""

    features: Tensor
    real: Tensor


class State(ABC):
    """A decoder in mid-sentence: K rows for each of B sentences, rows of one sentence side by side."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """The state whose sentence b has the rows ``rows[b]`` (B', K') of this one.

        All K' must come from one sentence; rows may be repeated (beams that split), sentences left out (finished ones),
        but as long as all are there they keep their order.
        """


def sentences_of(rows: Tensor, beams: int, count: int) -> Tensor | None:
    """Which of ``count`` sentences, ``beams`` rows each, the rows (B', K') belong to: (B'); None if it is all of them,
    so that what belongs to sentences can stay as it is."""
    return None if len(rows) == count else rows[:, 0] // beams


class Seq2Seq(ABC, nn.Module):
    """An encoder-decoder over pieces. Anything that can do this can be trained, searched and compared.

    Three conventions besides: pieces are embedded by ``TokenEmbedding`` (which SimCut cuts and the optimizer gives a
    rate of its own); attention derives from ``RecordableAttention``; a decoder's attention to the source is an
    attribute called ``cross_attention``, by which its maps are found.
    """

    @abstractmethod
    def encode(self, source: Tensor) -> Memory:
        """Source pieces (B, S), PAD to the right → memory."""

    @abstractmethod
    def decode(self, memory: Memory, target: Tensor) -> Tensor:
        """Teacher forcing: pieces BOS y₁ … (B, T) → features (B, T, D) that predict y₁ y₂ …"""

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first piece, one row a sentence (K = 1)."""

    @abstractmethod
    def advance(self, pieces: Tensor, state: Any) -> tuple[Tensor, State]:
        """One step: the last piece of every row (N,) → features (N, D) that predict the next, and the state after."""

    @property
    @abstractmethod
    def output_weight(self) -> Tensor:
        """The output layer's matrix (V, D)."""

    @property
    @abstractmethod
    def max_length(self) -> int | None:
        """Most positions (EOS included) that a source or target may have; None: any number."""

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def hidden_matrices(self) -> list[nn.Parameter]:
        """What Muon may move: matrices through which features flow from layer to layer."""
        return []

    @property
    def blocks(self) -> list[nn.Module]:
        """Parts whose weights are needed together and, inside their ``forward``, alone: what a model that is spread
        over several GPUs is put together from. Inner ones first."""
        return []

    def project(self, features: Tensor) -> Tensor:
        """The output layer: features (…, D) → logits (…, V)."""
        return linear(features, self.output_weight)
