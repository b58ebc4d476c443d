"""The model interface. Training, search and comparison use nothing else of a model.

Shapes: B sentences, K rows (beams) of each, N = B·K rows, S source and T target positions, D features, V tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from mt.models.kernels.linear import Linear, linear
from mt.text.subwords.tokenizer import BOS, PAD, UNK


@dataclass(frozen=True)
class Memory:
    """The encoded source: features (B, S, D), and a mask (B, S), True where a position is not padding."""

    features: Tensor
    mask: Tensor


@dataclass(frozen=True)
class State:
    """State of a decoder between two steps: B sentences × K rows (beams), the rows of a sentence side by side."""

    rows: int
    """The number of rows, N."""
    own: Sequence[tuple[Tensor, ...]]
    """Tensors (N, …) of each decoder layer; there may be none before the first token."""
    memory: Sequence[tuple[Tensor, ...]]
    """Keys and values (B, …) of each attention to the source."""
    padding: Tensor
    """The mask or bias (B, …) that hides the padding of the source."""

    def select(self, rows: Tensor) -> "State":
        """Gather rows of the state, as beam search reorders, repeats and drops them: sentence b of the result has the
        rows ``rows[b]``.

        Args:
            rows: (B', K'). The K' rows of a sentence come from one sentence of this state. Rows may be repeated, and
                finished sentences left out; if none is left out, the sentences keep their order.
        """
        memory, padding = self.memory, self.padding
        sentences = sentences_of(rows, self.rows // len(padding), len(padding))
        if sentences is not None:
            memory, padding = _gather(memory, sentences), padding.index_select(0, sentences)
        return replace(self, rows=rows.numel(), own=_gather(self.own, rows.flatten()), memory=memory, padding=padding)


def _gather(layers: Sequence[tuple[Tensor, ...]], rows: Tensor) -> list[tuple[Tensor, ...]]:
    return [tuple(tensor.index_select(0, rows) for tensor in layer) for layer in layers]


def sentences_of(rows: Tensor, beams: int, count: int) -> Tensor | None:
    """Return the sentences that ``State.select`` keeps.

    Args:
        rows: (B', K'), as in ``State.select``.
        beams: The number of rows of each sentence in the current state.
        count: The number of sentences in the current state.

    Returns:
        The sentences' numbers (B'), or None if all are kept, so that per-sentence tensors need no copy.
    """
    return None if len(rows) == count else rows[:, 0] // beams


class TranslationModel(ABC, nn.Module):
    """The interface for search and forced scoring: one model (``Seq2Seq``), or an ensemble.

    Memory, features and state are opaque to callers, who pass them to other methods of the same model.
    """

    @abstractmethod
    def encode(self, source: Tensor) -> Any:
        """Encode source tokens (B, S), padded on the right with PAD, as the memory for ``decode`` and ``start``."""

    @abstractmethod
    def decode(self, memory: Any, target: Tensor) -> Any:
        """Return features (B, T, D) that predict y₁ y₂ …, given the tokens BOS y₁ … (B, T) (teacher forcing).

        A model with another start token reads it in place of BOS, here and in the first ``advance``.
        """

    @abstractmethod
    def start(self, memory: Any) -> Any:
        """Return the state before the first token, with one row for each sentence (K = 1)."""

    @abstractmethod
    def advance(self, tokens: Tensor, state: Any) -> tuple[Any, Any]:
        """Decode one step.

        Args:
            tokens: The last token of every row, (N,).
            state: The state before these tokens.

        Returns:
            Features (N, D) that predict the next token of every row, and the state after ``tokens``.
        """

    @abstractmethod
    def log_probabilities(self, features: Any) -> Tensor:
        """Return the log-probability of every token in fp32, (…, V), given features (…, D)."""

    @property
    @abstractmethod
    def max_length(self) -> int | None:
        """Maximum number of positions of a source or target, EOS included; None if there is no limit."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """The device of the weights; tokens must be on it."""

    @property
    def never_written(self) -> list[int]:
        """The tokens that search must not generate."""
        return [PAD, UNK, BOS]

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())


class Seq2Seq(TranslationModel):
    """Base class of encoder-decoder models over tokens, with a Memory, a State and tensors (…, D) of features. Every
    subclass can be trained, searched and compared.

    A subclass also follows three conventions: it embeds tokens with ``TokenEmbedding`` (SimCut zeroes its vectors, and
    it has a learning rate of its own); its attention modules derive from ``RecordableAttention``; and a decoder's
    attention to the source is an attribute called ``cross_attention``.
    """

    encoder: Any
    """Returns features (B, S, D) for tokens (B, S)."""
    decoder: Any
    """Has the ``start`` of the model. Returns features (N, T, D) for tokens (N, T) that follow a state, and the state
    after them."""
    output: Linear
    """The output layer."""

    def encode(self, source: Tensor) -> Memory:
        return Memory(self.encoder(source), source != PAD)

    def decode(self, memory: Memory, target: Tensor) -> Tensor:
        features, _ = self.decoder(target, self.start(memory))
        return features

    def start(self, memory: Memory) -> State:
        return self.decoder.start(memory)

    def advance(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        features, after = self.decoder(tokens[:, None], state)
        return features[:, 0], after

    @property
    def max_length(self) -> int | None:
        return None

    @property
    def output_weight(self) -> Tensor:
        """Weight (V, D) of the output layer."""
        return self.output.weight

    @property
    def output_bias(self) -> Tensor | None:
        """Bias (V,) of the output layer, if it has one."""
        return self.output.bias

    @property
    def hidden_matrices(self) -> list[nn.Parameter]:
        """Matrices of the hidden layers, for the optimizer Muon."""
        return []

    @property
    def blocks(self) -> list[nn.Module]:
        """Submodules to wrap with FSDP, inner ones first. Each uses its weights only inside its own ``forward``."""
        return []

    def project(self, features: Tensor) -> Tensor:
        """Apply the output layer to features (…, D); returns logits (…, V)."""
        return linear(features, self.output_weight, self.output_bias)

    def log_probabilities(self, features: Tensor) -> Tensor:
        return self.project(features).log_softmax(dim=-1, dtype=torch.float32)

    @property
    def device(self) -> torch.device:
        return self.output_weight.device
