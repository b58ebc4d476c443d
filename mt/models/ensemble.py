"""Ensembles: the probability of the next token is the mean over several models.

Shapes: N rows, T target positions, V tokens.
"""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mt.models.seq2seq import Memory, Seq2Seq, State, TranslationModel


class EnsembleState(list[State]):
    """The members' states, one after another. All have the same rows."""

    def select(self, rows: Tensor) -> "EnsembleState":
        return EnsembleState(state.select(rows) for state in self)


class Ensemble(TranslationModel):
    """Models of any architectures with the same vocabularies. Memories, states and features are lists with an element
    for each member."""

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

    def start(self, memory: list[Memory]) -> EnsembleState:
        return EnsembleState(model.start(part) for model, part in zip(self.members, memory, strict=True))

    def advance(self, tokens: Tensor, state: EnsembleState) -> tuple[list[Tensor], EnsembleState]:
        steps = [model.advance(tokens, part) for model, part in zip(self.members, state, strict=True)]
        return [features for features, _ in steps], EnsembleState(after for _, after in steps)

    def log_probabilities(self, features: list[Tensor]) -> Tensor:
        """Return log ((p₁ + … + pₙ) / n), (…, V), for the probabilities pᵢ of member i.

        Dividing by the largest pᵢ first avoids underflow, and makes an ensemble of copies exact: all quotients are 1.
        """
        members = [model.log_probabilities(part) for model, part in zip(self.members, features, strict=True)]
        largest = functools.reduce(torch.maximum, members)
        total = torch.zeros_like(largest)
        for log_p in members:
            total += (log_p - largest).exp_()
        return largest + total.div_(len(members)).log_()

    @property
    def never_written(self) -> list[int]:
        return sorted({token for model in self.members for token in model.never_written})

    @property
    def max_length(self) -> int | None:
        limits = [model.max_length for model in self.members if model.max_length is not None]
        return min(limits, default=None)

    @property
    def device(self) -> torch.device:
        return self.members[0].device
