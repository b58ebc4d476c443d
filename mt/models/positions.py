"""The registry of position encodings for the setting ``model.positions`` (Vaswani et al. 2017, section 3.5)."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from mt.config import TransformerConfig


class Positions(ABC, nn.Module):
    """Base class of position encodings: vectors that are added to token embeddings."""

    @property
    def max_length(self) -> int | None:
        """The maximum length of a sequence; None if there is no limit."""
        return None

    @abstractmethod
    def forward(self, start: int, length: int) -> Tensor:
        """Return the vectors (length, D) of positions start … start + length - 1."""


def sinusoidal_positions(length: int, width: int) -> Tensor:
    """Return the table PE (length, width) with PE(pos, 2i) = sin(pos / 10000^(2i/width)) and PE(pos, 2i+1) = cos of the
    same angle. It is on the CPU, whatever torch's default device is."""
    position = torch.arange(length, dtype=torch.float64, device="cpu").unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64, device="cpu") * (-math.log(10000.0) / width))
    encoding = torch.empty(length, width, dtype=torch.float64, device="cpu")
    encoding[:, 0::2] = torch.sin(position * frequency)
    encoding[:, 1::2] = torch.cos(position * frequency)
    return encoding.float()


class SinusoidalPositions(Positions):
    """Fixed sinusoidal position vectors, as in the paper, for sentences of any length."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoidal_positions(256, width), persistent=False)
        self.table: Tensor

    def forward(self, start: int, length: int) -> Tensor:
        table = self.table
        if start + length > len(table):
            # The local variable is safe from other threads, which may replace self.table for their own sentences.
            self.table = table = sinusoidal_positions(2 * (start + length), self.width).to(table.device)
        return table[start : start + length]


class LearnedPositions(Positions):
    """One learned vector for each of ``max_positions`` positions."""

    def __init__(self, width: int, max_positions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, width))
        nn.init.normal_(self.weight, std=width**-0.5)

    @property
    def max_length(self) -> int:
        return len(self.weight)

    def forward(self, start: int, length: int) -> Tensor:
        """Return the vectors (length, D) of positions start … start + length - 1.

        Raises:
            IndexError: A position is beyond the last learned one.
        """
        if start + length > self.max_length:
            raise IndexError(f"sequence of {start + length} positions, but model.max_positions={self.max_length}")
        return self.weight[start : start + length]


POSITIONS: dict[str, Callable[[TransformerConfig], Positions]] = {
    "sinusoidal": lambda config: SinusoidalPositions(config.width),
    "learned": lambda config: LearnedPositions(config.width, config.max_positions),
}
"""Value of ``model.positions`` → constructor of the position encoding."""
