"""The interface of all kinds of model folders: description, tokenizer files and weights of a model."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from mt.config import ModelConfig
from mt.config.text import Terms
from mt.core.files import read_file
from mt.storage.model_description import ModelDescription

Shapes = Mapping[str, torch.Size]
"""The shape of each weight, by name."""


class ModelFolder(ABC):
    """The interface of a folder that holds one model. Each format, ours and MarianMT, has a subclass.

    Reading a folder executes no code, and opens no file outside of it. The methods ``verify`` and ``read_…`` raise
    InputError for missing or damaged files; the message names the file.
    """

    files: ClassVar[Sequence[str]]
    """The names of all files that can belong to a model. A model need not have all of them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def checksum(self) -> str:
        """Return a SHA-256 of the names and contents of those of ``files`` that exist.

        Raises:
            InputError: A file cannot be read.
        """
        digest = hashlib.sha256()
        for name in sorted(self.files):
            if (self.path / name).is_file():
                content = read_file(self.path / name)
                digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
        return digest.hexdigest()

    @abstractmethod
    def verify(self) -> None:
        """Check the folder before its weights are read, for example that its weights were trained with its tokenizer.

        Log warnings for the user, for example that the training is not finished.

        Raises:
            InputError: The folder cannot be used.
        """

    @abstractmethod
    def read_description(self) -> ModelDescription:
        """Read the languages, architecture, text layer and default decoding of the model."""

    @abstractmethod
    def read_tokenizer_files(self) -> dict[str, bytes]:
        """Read the SentencePiece models. Return file name → content.

        The names are ``tokenizer.model``, or ``source.model`` and ``target.model`` if each side has its own.
        """

    @abstractmethod
    def read_weights(self, config: ModelConfig, shapes: Shapes) -> dict[str, Tensor]:
        """Read the weights. Return name of the parameter → tensor on the CPU.

        Args:
            config: The architecture that the weights must fit.
            shapes: The expected names and shapes.
        """

    def read_source_words(self) -> dict[str, int] | None:
        """Read the counts of the words of the training sources, by word; None if the model has no spelling correction,
        as in this base class."""
        return None

    def read_terms(self) -> Terms:
        """Read the glossary that the model was trained with. It is empty if there was none, as in this base class."""
        return {}
