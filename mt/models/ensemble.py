"""Several models that translate together: each next piece has the mean of the probabilities that the models give it.

Shapes: N rows, T target positions, V pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from mt.models.seq2seq import Memory, Seq2Seq, State, TranslationModel


@dataclass(frozen=True)
class EnsembleState(State):
    """The members' states, one after another. All have the same rows."""

    members: list[State]

    def select(self, rows: Tensor) -> Self:
        return type(self)([state.select(rows) for state in self.members])


class Ensemble(TranslationModel):
    """Models with one vocabulary for each side, of whatever architectures. Memories, states and features are lists with
    one of each member."""

    def __init__(self, members: Sequence[Seq2Seq]) -> None:
        """
        Args:
            members: The models, on one device. They are the same objects afterwards, not copies.
        """
        super().__init__()
        self.members: Sequence[Seq2Seq] = nn.ModuleList(members)  # type: ignore[assignment]

    def encode(self, source: Tensor) -> list[Memory]:
        return [model.encode(source) for model in self.members]

    def decode(self, memory: list[Memory], target: Tensor) -> list[Tensor]:
        return [model.decode(one, target) for model, one in zip(self.members, memory, strict=True)]

    def start(self, memory: list[Memory]) -> EnsembleState:
        return EnsembleState([model.start(one) for model, one in zip(self.members, memory, strict=True)])

    def advance(self, pieces: Tensor, state: EnsembleState) -> tuple[list[Tensor], EnsembleState]:
        steps = [model.advance(pieces, one) for model, one in zip(self.members, state.members, strict=True)]
        return [features for features, _ in steps], EnsembleState([after for _, after in steps])

    def log_probabilities(self, features: list[Tensor]) -> Tensor:
        """Returns log ((p₁ + … + pₙ) / n), (…, V), where pᵢ are the probabilities of member i.

        The largest pᵢ is divided out first, so that nothing underflows. Copies of one model therefore give exactly that
        model's log-probabilities: all quotients are 1.
        """
        log_p = [model.log_probabilities(one) for model, one in zip(self.members, features, strict=True)]
        largest = log_p[0]
        for one in log_p[1:]:
            largest = torch.maximum(largest, one)
        total = torch.zeros_like(largest)
        for one in log_p:
            total += (one - largest).exp_()
        return largest + total.div_(len(log_p)).log_()

    @property
    def never_written(self) -> list[int]:
        return sorted({piece for model in self.members for piece in model.never_written})

    @property
    def max_length(self) -> int | None:
        limits = [model.max_length for model in self.members if model.max_length is not None]
        return min(limits, default=None)

    @property
    def device(self) -> torch.device:
        return self.members[0].device
