"""The model interface: all that training, search and comparison know of a model.

Shapes: B sentences, K rows (beams) of each, N = B·K rows, S source and T target positions, D features, V pieces.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from mt.models.kernels.linear import linear
from mt.text.tokenizer import BOS, PAD, UNK


@dataclass(frozen=True)
class Memory:
    """The encoded source: features (B, S, D), and a mask (B, S), True where a position is not padding."""

    features: Tensor
    mask: Tensor


class State(ABC):
    """State of a decoder between two steps: K rows (beams) for each of B sentences, the rows of one sentence side by
    side."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """Gathers rows of the state, as beam search reorders, repeats and drops them. In the result, sentence b has the
        rows ``rows[b]`` of this state.

        Args:
            rows: (B', K'). The K' rows of one sentence must all come from one sentence of this state. Rows may be
                repeated (beams that split) and sentences left out (finished ones), but if none is left out, the
                sentences must keep their order.
        """


def sentences_of(rows: Tensor, beams: int, count: int) -> Tensor | None:
    """Finds the sentences that ``State.select`` keeps.

    Args:
        rows: (B', K'), as in ``State.select``.
        beams: The number of rows of each sentence in the current state.
        count: The number of sentences in the current state.

    Returns:
        The sentences' numbers (B'), or None if all are kept, so that what belongs to sentences can stay as it is.
    """
    return None if len(rows) == count else rows[:, 0] // beams


class TranslationModel(ABC, nn.Module):
    """What search and forced scoring need: one model (``Seq2Seq``), or an ensemble of several.

    What ``encode`` returns, and the features that ``decode`` and ``advance`` return, are only handed on to the other
    calls of the same model.
    """

    @abstractmethod
    def encode(self, source: Tensor) -> Any:
        """Encodes source pieces (B, S), padded on the right with PAD. Returns what ``decode`` and ``start`` take."""

    @abstractmethod
    def decode(self, memory: Any, target: Tensor) -> Any:
        """Returns features (B, T, D) that predict y₁ y₂ …, given the pieces BOS y₁ … (B, T) (teacher forcing).

        A model that starts with another piece reads that one in place of BOS, here and in the first ``advance``.
        """

    @abstractmethod
    def start(self, memory: Any) -> State:
        """Returns the state before the first piece, with one row for each sentence (K = 1)."""

    @abstractmethod
    def advance(self, pieces: Tensor, state: Any) -> tuple[Any, State]:
        """Decodes one step.

        Args:
            pieces: The last piece of every row, (N,).
            state: The state before these pieces.

        Returns:
            Features (N, D) that predict the next piece of every row, and the state after ``pieces``.
        """

    @abstractmethod
    def log_probabilities(self, features: Any) -> Tensor:
        """Returns the log-probability of every piece in fp32, (…, V), given features (…, D)."""

    @property
    @abstractmethod
    def max_length(self) -> int | None:
        """Largest number of positions (EOS included) that a source or target may have; None if there is no limit."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """The device that the pieces must be on."""

    @property
    def never_written(self) -> list[int]:
        """The pieces that no translation may have."""
        return [PAD, UNK, BOS]

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())


class Seq2Seq(TranslationModel):
    """Base class of encoder-decoder models over pieces. Every subclass can be trained, searched and compared.

    A subclass must also follow three conventions: it embeds pieces with ``TokenEmbedding`` (which SimCut cuts, and
    which has a learning rate of its own); its attention modules derive from ``RecordableAttention``; and a decoder's
    attention to the source is an attribute called ``cross_attention``, by which its attention maps are found.
    """

    @abstractmethod
    def encode(self, source: Tensor) -> Memory: ...

    @abstractmethod
    def decode(self, memory: Memory, target: Tensor) -> Tensor: ...

    @abstractmethod
    def advance(self, pieces: Tensor, state: Any) -> tuple[Tensor, State]: ...

    @property
    @abstractmethod
    def output_weight(self) -> Tensor:
        """Weight (V, D) of the output layer."""

    @property
    def output_bias(self) -> Tensor | None:
        """Bias (V,) of the output layer, if it has one."""
        return None

    @property
    def hidden_matrices(self) -> list[nn.Parameter]:
        """Parameters that the optimizer Muon may update: matrices through which features flow from layer to layer."""
        return []

    @property
    def blocks(self) -> list[nn.Module]:
        """Submodules to wrap with FSDP, inner ones first. The weights of each are needed together, and only inside its
        own ``forward``."""
        return []

    def project(self, features: Tensor) -> Tensor:
        """Applies the output layer to features (…, D); returns logits (…, V)."""
        return linear(features, self.output_weight, self.output_bias)

    def log_probabilities(self, features: Tensor) -> Tensor:
        return self.project(features).log_softmax(dim=-1, dtype=torch.float32)

    @property
    def device(self) -> torch.device:
        return self.output_weight.device
