"""The interface of all models. Training, search and comparison use a model only through it.

Shapes: B sentences, K hypotheses (beams or samples) per sentence, N = B·K hypotheses, S source and T target positions,
D features, V tokens of the target vocabulary.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mt.models.layers import Linear, linear
from mt.tokenizer.tokenizer import BOS, PAD, UNK

LayerTensors = Sequence[tuple[Tensor, ...]]
"""A tuple of tensors for each decoder layer or attention module."""


class Memory(NamedTuple):
    """The encoder memory of a batch."""

    features: Tensor
    """(B, S, D)."""
    mask: Tensor
    """(B, S), False for padding."""


class State(NamedTuple):
    """The state of a decoder between two steps. The K hypotheses of a sentence are adjacent."""

    num_hypotheses: int
    """The number of hypotheses of all sentences, N."""
    layer_states: LayerTensors
    """Tensors (N, …) of each decoder layer: a Transformer's self-attention cache (keys and values), or an LSTM's h
    and c. The sequence may be empty before the first token."""
    memory: LayerTensors
    """Keys and values (B, …) of each cross-attention, which the hypotheses of a sentence share."""
    padding: Tensor
    """The attention mask or bias (B, …) that hides the padding of the source."""

    def select(self, rows: Tensor) -> "State":
        """Return the state with hypotheses reordered, repeated or removed, as beam search needs it.

        Args:
            rows: Indices (B', K') of hypotheses of this state: hypothesis k of sentence b in the result is hypothesis
                ``rows[b, k]``. All hypotheses of a sentence must come from one sentence. Sentences may be omitted; if
                B' = B, they must keep their order.
        """
        memory, padding = self.memory, self.padding
        sentences = sentences_of(rows, self.num_hypotheses // len(padding), len(padding))
        if sentences is not None:
            memory, padding = _gather(memory, sentences), padding.index_select(0, sentences)
        layer_states = _gather(self.layer_states, rows.flatten())
        return State(rows.numel(), layer_states, memory, padding)


def _gather(layers: LayerTensors, rows: Tensor) -> LayerTensors:
    return [tuple(tensor.index_select(0, rows) for tensor in layer) for layer in layers]


def sentences_of(rows: Tensor, beams: int, count: int) -> Tensor | None:
    """Return the indices of the sentences that ``State.select`` keeps.

    Args:
        rows: (B', K'), as in ``State.select``.
        beams: The number of hypotheses per sentence before the selection, K.
        count: The number of sentences before the selection, B.

    Returns:
        Sentence indices (B',), or None if all sentences are kept, so that tensors (B, …) need no copy.
    """
    return None if len(rows) == count else rows[:, 0] // beams


class TranslationModel(ABC, nn.Module):
    """The interface for search and forced scoring. An instance is a model (``Seq2Seq``) or an ``Ensemble``.

    Memory, state and features are opaque to callers, who only pass them to other methods of the same instance.
    """

    @abstractmethod
    def encode(self, source: Tensor) -> Any:
        """Encode source tokens (B, S), padded on the right with PAD, as memory for ``decode`` and ``init_state``."""

    @abstractmethod
    def decode(self, memory: Any, target: Tensor) -> Any:
        """Decode complete targets by teacher forcing.

        Args:
            memory: From ``encode``.
            target: The tokens BOS y₁ y₂ …, (B, T). A model with another start token reads that in place of BOS, here
                and in the first ``decode_step``.

        Returns:
            Features (B, T, D). Those at position t predict the token at position t + 1.
        """

    @abstractmethod
    def init_state(self, memory: Any) -> Any:
        """Return the decoder state before the first token, with one hypothesis per sentence (K = 1)."""

    @abstractmethod
    def decode_step(self, tokens: Tensor, state: Any) -> tuple[Any, Any]:
        """Decode one step.

        Args:
            tokens: The latest token of every hypothesis, (N,); BOS at first.
            state: The decoder state before these tokens.

        Returns:
            Features (N, D) that predict the next token of every hypothesis, and the state after ``tokens``.
        """

    @abstractmethod
    def log_probabilities(self, features: Any) -> Tensor:
        """Return the log-probability of every token of the vocabulary, (…, V) in fp32, given features (…, D)."""

    @property
    @abstractmethod
    def max_length(self) -> int | None:
        """Maximum number of positions of a source or target, EOS included; None if there is no limit."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """The device of the weights; tokens must be on it."""

    @property
    def suppressed_tokens(self) -> list[int]:
        """The ids of the tokens that search must not generate."""
        return [PAD, UNK, BOS]

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def trained_parameter_count(self) -> int:
        """The number of parameters that are not frozen."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)


class Seq2Seq(TranslationModel):
    """Base class of encoder-decoder models. Training, search and comparison work with every subclass.

    A subclass sets the attributes below, and follows three conventions:

    - It embeds tokens with ``TokenEmbedding``, to which SimCut and ``training.optimizer.embedding_factor`` apply.
    - Its attention modules are subclasses of ``RecordableAttention``.
    - An attention module of the decoder that attends to the source is an attribute called ``cross_attention``.
    """

    encoder: Any
    """A module that maps tokens (B, S) to features (B, S, D)."""
    decoder: Any
    """A module that maps the next tokens (N, T) and a State to features (N, T, D) and the new State. Its method
    ``init_state(memory)`` returns the first State."""
    output: Linear
    """The output layer."""

    def encode(self, source: Tensor) -> Memory:
        return Memory(self.encoder(source), source != PAD)

    def decode(self, memory: Memory, target: Tensor) -> Tensor:
        features, _ = self.decoder(target, self.init_state(memory))
        return features

    def init_state(self, memory: Memory) -> State:
        return self.decoder.init_state(memory)

    def decode_step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
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
        """The matrices of the hidden layers, which the optimizer Muon updates. Empty if it does not suit the model."""
        return []

    @property
    def blocks(self) -> list[nn.Module]:
        """The submodules that FSDP2 shards one by one, inner ones first. Only their own ``forward`` may use their
        weights."""
        return []

    def project(self, features: Tensor) -> Tensor:
        """Return the logits (…, V) of features (…, D)."""
        return linear(features, self.output_weight, self.output_bias)

    def log_probabilities(self, features: Tensor) -> Tensor:
        return self.project(features).log_softmax(dim=-1, dtype=torch.float32)

    @property
    def device(self) -> torch.device:
        return self.output_weight.device


class EnsembleState(list[State]):
    """The decoder states of the members, in their order. All have the same hypotheses."""

    def select(self, rows: Tensor) -> "EnsembleState":
        return EnsembleState(state.select(rows) for state in self)


class Ensemble(TranslationModel):
    """Models with the same vocabularies, of any architectures, that translate together.

    A memory, a state and features of an ensemble are lists with one element for each member.
    """

    def __init__(self, members: Sequence[Seq2Seq]) -> None:
        """
        Args:
            members: The models, on one device. They are not copied.
        """
        super().__init__()
        self.members: Sequence[Seq2Seq] = nn.ModuleList(members)  # type: ignore[assignment]

    def encode(self, source: Tensor) -> list[Memory]:
        return [model.encode(source) for model in self.members]

    def decode(self, memory: list[Memory], target: Tensor) -> list[Tensor]:
        return [model.decode(part, target) for model, part in zip(self.members, memory, strict=True)]

    def init_state(self, memory: list[Memory]) -> EnsembleState:
        return EnsembleState(model.init_state(part) for model, part in zip(self.members, memory, strict=True))

    def decode_step(self, tokens: Tensor, state: EnsembleState) -> tuple[list[Tensor], EnsembleState]:
        steps = [model.decode_step(tokens, part) for model, part in zip(self.members, state, strict=True)]
        return [features for features, _ in steps], EnsembleState(after for _, after in steps)

    def log_probabilities(self, features: list[Tensor]) -> Tensor:
        """Return log ((p₁ + … + pₙ) / n), (…, V), where pᵢ are the probabilities that member i gives to the tokens.

        The sum is of the quotients pᵢ / max p, which avoids underflow. For equal members, all quotients are exactly 1.
        """
        members = [model.log_probabilities(part) for model, part in zip(self.members, features, strict=True)]
        largest = functools.reduce(torch.maximum, members)
        total = torch.zeros_like(largest)
        for log_p in members:
            total += (log_p - largest).exp_()
        return largest + total.div_(len(members)).log_()

    @property
    def suppressed_tokens(self) -> list[int]:
        return sorted({token for model in self.members for token in model.suppressed_tokens})

    @property
    def max_length(self) -> int | None:
        limits = [model.max_length for model in self.members if model.max_length is not None]
        return min(limits, default=None)

    @property
    def device(self) -> torch.device:
        return self.members[0].device
