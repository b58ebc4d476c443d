"""The interface of all kinds of model folders, and the folders of this project's models.

Files of a model: model.yaml, tokenizer, model.safetensors, source_words.json, terms.json.
"""

import hashlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import torch

from mt.config import ModelConfig, Terms
from mt.core.errors import InputError, corrupted_file, wrong_keys
from mt.core.files import read_file, write_atomically
from mt.core.language import Direction
from mt.storage.model_description import ModelDescription
from mt.storage.run_folder import CHECKPOINTS, MODEL, RESULTS, SOURCE_WORDS, TERMS, WEIGHTS, as_yaml
from mt.storage.validation import (
    CHECKSUM_KEY,
    read_json,
    read_yaml_mapping,
    sha256,
    validate,
    validate_recorded,
    write_json,
)
from mt.storage.vocabulary import TOKENIZER_FILES
from mt.storage.weights import Tensors, read_weights, refuse_other_tokenizer

logger = logging.getLogger(__name__)

Shapes = Mapping[str, torch.Size]
"""The shape of each weight, by name."""

MODEL_FORMAT = 1
"""The format of model.yaml. Raise it whenever a key is added, removed or given another meaning."""


class ModelFolder(ABC):
    """The interface of a folder that holds one model. Each format, ours and MarianMT, has a subclass.

    Reading a folder executes no code, and opens no file outside of it. The methods ``verify`` and ``read_…`` raise
    InputError for missing or corrupted files; the message names the file.
    """

    files: ClassVar[Sequence[str]]
    """The names, or patterns of names, of all files that can belong to a model. A model need not have all of them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def checksum(self) -> str:
        """Return a SHA-256 of the names and contents of those of ``files`` that exist.

        Raises:
            InputError: A file cannot be read.
        """
        digest = hashlib.sha256()
        for path in sorted({path for name in self.files for path in self.path.glob(name) if path.is_file()}):
            digest.update(f"{path.name} {hashlib.sha256(read_file(path)).hexdigest()}\n".encode())
        return digest.hexdigest()

    def verify(self) -> None:  # noqa: B027 - a folder need not have anything to check
        """Check the folder before its weights are read, for example that its weights were trained with its tokenizer.

        Log warnings for the user, for example that the training is not finished.

        Raises:
            InputError: The folder cannot be used.
        """

    @abstractmethod
    def read_description(self) -> ModelDescription:
        """Read the languages, architecture, text layer and default decoding of the model."""

    def read_tokenizer_files(self) -> dict[str, bytes]:
        """Read the SentencePiece models. Return file name → content.

        The names are ``tokenizer.model``, or ``source.model`` and ``target.model`` if each side has its own.
        """
        raise InputError(
            f"{self.path}: a model of transformers only translates here, and is not trained, combined or exported; to "
            "fine-tune it, take Seq2SeqTrainer of transformers"
        )

    def read_weights(self, config: ModelConfig, shapes: Shapes) -> Tensors:
        """Read the weights. Return name of the parameter → tensor on the CPU.

        Args:
            config: The architecture that the weights must fit.
            shapes: The expected names and shapes.
        """
        raise NotImplementedError

    def read_source_words(self, direction: Direction) -> tuple[dict[str, int], list[str] | None] | None:
        """Read the counts of the words of the training sources of a direction, by word, and the words that its targets
        capitalize, or None if these are unknown; None if the model has no spelling correction for the direction, as in
        this base class."""
        return None

    def read_terms(self) -> Terms:
        """Read the glossary that the model was trained with. It is empty if there was none, as in this base class."""
        return {}


class NativeFolder(ModelFolder):
    """A run or model folder of this project."""

    files = (MODEL, WEIGHTS, SOURCE_WORDS, TERMS, *TOKENIZER_FILES)

    def verify(self) -> None:
        """Check that the weights exist and were trained with the tokenizer. Warn if the run is not finished."""
        weights = self.path / WEIGHTS
        if (self.path / CHECKPOINTS).is_dir() and not (self.path / RESULTS).is_file():
            if not weights.is_file():
                raise InputError(
                    f"{self.path}: there are no weights yet, because training has not reached the first validation; "
                    "start the same training command again"
                )
            logger.warning("%s: its training is not finished; these are the best weights so far", self.path)
        refuse_other_tokenizer(self.path, weights)

    def read_description(self) -> ModelDescription:
        path = self.path / MODEL
        if not path.exists():
            raise InputError(
                f"{path}: no such file; give a run or model folder, which holds {MODEL}, a tokenizer and {WEIGHTS}"
            )
        values = read_yaml_mapping(path)
        _warn_of_edits(path, values.pop(CHECKSUM_KEY, None))
        version = values.pop("format", None)
        if type(version) is not int or version != MODEL_FORMAT:
            raise corrupted_file(path, f"its format is not {MODEL_FORMAT}")
        return validate(
            path, ModelDescription, values, f"not a model description of format {MODEL_FORMAT}", strict=True
        )

    def read_tokenizer_files(self) -> dict[str, bytes]:
        separate = any((self.path / name).exists() for name in TOKENIZER_FILES[:2])
        return {
            name: read_file(self.path / name) for name in (TOKENIZER_FILES[:2] if separate else TOKENIZER_FILES[2:])
        }

    def read_weights(self, config: ModelConfig, shapes: Shapes) -> Tensors:
        return read_weights(self.path / WEIGHTS, config, shapes)

    def read_source_words(self, direction: Direction) -> tuple[dict[str, int], list[str] | None] | None:
        description = self.read_description()
        if description.layers[direction].min_word_count is None:
            return None
        content = read_json(self.path / SOURCE_WORDS, "words")
        counts, capitalized = content["words"], content.get("capitalized", {}).get(direction.key)
        if description.directions and isinstance(counts, dict):
            counts = counts.get(direction.key)
        if not isinstance(counts, dict) or not all(type(times) is int for times in counts.values()):
            raise corrupted_file(self.path / SOURCE_WORDS, wrong_keys(["words"]))
        return counts, capitalized

    def read_terms(self) -> Terms:
        checksum = self.read_description().text.terms
        if checksum is None:
            return {}
        path = self.path / TERMS
        terms = validate_recorded(path, dict[str, tuple[str, ...]], read_json(path, "terms")["terms"])
        if terms_checksum(terms) != checksum or not all(terms.values()):
            raise corrupted_file(path, f"not the terms that {MODEL} names")
        return terms


def write_description(folder: Path, description: ModelDescription) -> None:
    """Write model.yaml with all settings. The last line is a checksum of the other lines."""
    unused = set() if description.directions else {"directions"}
    text = as_yaml({"format": MODEL_FORMAT} | description.model_dump(mode="json", exclude=unused))
    write_atomically(folder / MODEL, f"{text}{CHECKSUM_KEY}: {sha256(text)}\n")


def write_words(
    folder: Path, counts: Mapping[str, object] | None, capitalized: Mapping[str, Sequence[str]], terms: Terms
) -> None:
    """Write source_words.json and terms.json. Each is removed if it would be empty.

    Args:
        folder: The run folder.
        counts: Word of the training sources → number of occurrences, or such a mapping for the key of each direction.
        capitalized: The words that targets capitalize, by the key of the direction.
        terms: The glossary of the run.
    """
    words = {"words": counts, "capitalized": capitalized} if counts else {}
    for name, content in ((SOURCE_WORDS, words), (TERMS, {"terms": terms} if terms else {})):
        if content:
            write_json(folder / name, content)
        else:
            (folder / name).unlink(missing_ok=True)


def terms_checksum(terms: Terms) -> str | None:
    """Return the SHA-256 of a glossary for the description of a model; None for an empty one."""
    return sha256(json.dumps(terms)) if terms else None


def _warn_of_edits(path: Path, checksum: object) -> None:
    """Log a warning if model.yaml has a checksum and does not match it.

    Users may edit the file, for instance to change the default decoding, but a bit may also have flipped. Edits that
    contradict the weights are refused when the weights are read.
    """
    text = path.read_text(encoding="utf-8").rpartition(f"{CHECKSUM_KEY}: ")[0]
    if checksum is not None and checksum != sha256(text):
        logger.warning(
            "%s: edited or corrupted since training wrote it, and used as it is. If you edited it, delete its last "
            "line, which begins with %s; otherwise restore the file from a backup",
            path,
            CHECKSUM_KEY,
        )
