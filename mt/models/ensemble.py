"""Ensembles: the probability of the next token is the mean over several models.

Shapes: N rows, T target positions, V tokens.
"""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mt.models.seq2seq import Memory, Seq2Seq, State, TranslationModel


class EnsembleState(list[State]):
    """The decoder states of the members, in their order. All have the same rows."""

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

    def start(self, memory: list[Memory]) -> EnsembleState:
        return EnsembleState(model.start(part) for model, part in zip(self.members, memory, strict=True))

    def advance(self, tokens: Tensor, state: EnsembleState) -> tuple[list[Tensor], EnsembleState]:
        steps = [model.advance(tokens, part) for model, part in zip(self.members, state, strict=True)]
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
    def never_written(self) -> list[int]:
        return sorted({token for model in self.members for token in model.never_written})

    @property
    def max_length(self) -> int | None:
        limits = [model.max_length for model in self.members if model.max_length is not None]
        return min(limits, default=None)

    @property
    def device(self) -> torch.device:
        return self.members[0].device
