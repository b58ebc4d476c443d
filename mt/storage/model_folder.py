"""One interface for all model folders: a model's description, tokenizer files and weights."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from mt.config import ModelConfig
from mt.core.files import read_file
from mt.storage.model_description import ModelDescription

Shapes = Mapping[str, torch.Size]
"""The shape of each weight, by name."""


class ModelFolder(ABC):
    """A model on disk. Reading executes nothing, and reads nothing outside the folder.

    All methods raise InputError for missing or damaged files; the message names the file.
    """

    files: ClassVar[Sequence[str]]
    """The names of the files that a model consists of. Some may be missing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def checksum(self) -> str:
        """Return a SHA-256 of all files of the model."""
        digest = hashlib.sha256()
        for name in sorted(self.files):
            if (self.path / name).is_file():
                content = read_file(self.path / name)
                digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
        return digest.hexdigest()

    @abstractmethod
    def verify(self) -> None:
        """Check that the weights are complete and belong to the tokenizer."""

    @abstractmethod
    def read_description(self) -> ModelDescription:
        """Return the languages, architecture, text layer and default decoding."""

    @abstractmethod
    def read_tokenizer_files(self) -> dict[str, bytes]:
        """Return the SentencePiece models: ``tokenizer.model``, or ``source.model`` and ``target.model``."""

    @abstractmethod
    def read_weights(self, config: ModelConfig, shapes: Shapes) -> dict[str, Tensor]:
        """Return the weights in fp32 by our names, on the CPU.

        Args:
            config: The architecture that they must fit.
            shapes: The shapes that they must have.
        """

    def read_source_words(self) -> dict[str, int] | None:
        """Return the number of occurrences of each word of the training sources; None without spelling correction."""
        return None
