"""Opens run folders, model folders, MarianMT folders, models of ``transformers`` and those of the Hugging Face hub, all
as a ``ModelFolder``."""

import functools
import os
from pathlib import Path
from typing import Any

import torch

from mt.config import TRANSFORMERS, PiecesConfig, TransformerConfig
from mt.core.errors import InputError
from mt.core.files import resolved
from mt.core.installation import optional_packages
from mt.core.language import ANY_DIRECTION, UNKNOWN_LANGUAGE, AskedDirection
from mt.core.output import is_device
from mt.storage.marian import TO_SAFETENSORS, MarianFolder, is_transformers_folder, read_search
from mt.storage.model_description import ModelDescription, TextLayerDescription
from mt.storage.model_folder import ModelFolder, NativeFolder
from mt.storage.run_folder import CONFIG, MODEL, is_hub_name, nearest_run

UNLIMITED_RATIO = 1e-6
"""A ``decoding.max_length_ratio`` with which ``decoding.max_length_extra`` alone limits translations."""
BATCH_TOKENS = 1024
"""``decoding.batch_tokens``, because a vocabulary may have 256,000 tokens, and each position has a score for all."""


class TransformersFolder(ModelFolder):
    """A folder that ``transformers`` loads. Its model translates, and is not trained or exported."""

    files = ("*.json", "*.safetensors", "*.model", "*.spm", "*.txt")

    def read_description(self, asked: AskedDirection = ANY_DIRECTION) -> ModelDescription:
        """Return a description with the search of generation_config.json, of a model that translates in a direction.

        ``model`` and ``tokenizer`` are stand-ins, which nothing reads.
        """
        generation, decoding = read_search(self.path)
        search: dict[str, float] = {"batch_tokens": BATCH_TOKENS}
        if limit := generation.get("max_length"):  # which counts the start token and EOS
            search |= {"max_length_ratio": UNLIMITED_RATIO, "max_length_extra": max(0, limit - 2)}
        return ModelDescription(
            source_language=asked.source or UNKNOWN_LANGUAGE,
            target_language=asked.target or UNKNOWN_LANGUAGE,
            text=TextLayerDescription(enabled=False),
            model=TransformerConfig(architecture="transformer"),
            tokenizer=PiecesConfig(),
            decoding=decoding.model_copy(update=search),
            confidence=None,
        )

    def load(self) -> tuple[Any, Any]:
        """Return the tokenizer and the model of ``transformers``, in fp32 on the CPU.

        Raises:
            InputError: They cannot be loaded, for example because the weights are pickled.
        """
        with optional_packages():
            import transformers
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        kinds = transformers.AutoTokenizer, transformers.AutoModelForSeq2SeqLM
        options: dict[str, Any] = {"use_safetensors": True, "trust_remote_code": False, "local_files_only": True}
        options |= {"attn_implementation": "eager", "dtype": torch.float32}  # others return no attention
        try:
            tokenizer, model = (kind.from_pretrained(self.path, **options) for kind in kinds)
        except Exception as error:  # of many kinds: corrupted files, other architectures, missing packages
            reason = " ".join(str(error).split())
            raise InputError(
                f"{self.path}: transformers cannot load this as an encoder-decoder with weights in safetensors: "
                f"{reason[:300]}. To convert pickled weights: {TO_SAFETENSORS.format(self.path, 'FOLDER')}"
            ) from error
        return tokenizer, model


def open_folder(path: str | Path) -> ModelFolder:
    """Open a run, model or MarianMT folder. A name on the Hugging Face hub is downloaded first.

    Raises:
        InputError: The folder does not exist, the hub has no such model, or ``refuse_unsafe_folder`` refuses it.
    """
    folder = resolve_model_path(path)
    if not folder.is_dir():
        raise InputError(f"{path}: no such run or model folder{nearest_run(folder)}")
    name = str(path).removeprefix(TRANSFORMERS)
    if not is_hub_name(name):  # the hub's cache consists of links
        refuse_unsafe_folder(folder)
    if name != str(path):
        return TransformersFolder(folder)
    return MarianFolder(folder) if is_transformers_folder(folder) else NativeFolder(folder)


def refuse_unsafe_folder(folder: Path) -> None:
    """Raise InputError if a folder is not a run or model, or if ``refuse_links_out`` refuses it."""
    if not is_transformers_folder(folder) and not any(map(os.path.lexists, (folder / MODEL, folder / CONFIG))):
        raise InputError(f"{folder}: no run or model folder: there is no {MODEL} in it{nearest_run(folder)}")
    refuse_links_out(folder)


def read_description(path: str | Path) -> ModelDescription:
    """Read languages, architecture, text layer and default decoding of a model. Raise InputError as ``open_folder``
    does, or if the description is missing or corrupted."""
    return open_folder(path).read_description()


def is_model_without_run(folder: Path) -> bool:
    """Return whether a folder holds a model, but not the run that trained it."""
    return is_transformers_folder(folder) or ((folder / MODEL).is_file() and not (folder / CONFIG).exists())


def refuse_links_out(folder: Path) -> None:
    """Raise InputError if a folder holds symbolic links to other folders, or special files such as pipes or devices.

    A folder may come from somebody else. Through such a link, it could expose or change other files of the user.
    """
    home = folder.resolve()
    if home == home.parent:
        # Walking the root would read all disks.
        raise InputError(f"{folder}: not a run or model folder; give the folder that holds {MODEL} or {CONFIG}")
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in folders + files):
            if path.is_symlink() and not resolved(path).is_relative_to(home):
                raise InputError(
                    f"{path}: a link that leads out of the folder; replace it by a copy of what it points to"
                )
            if is_device(path):
                raise InputError(f"{path}: neither a file nor a folder; remove it")


def resolve_model_path(path: str | Path) -> Path:
    """Return the folder of a model. A name on the hub, OWNER/NAME or OWNER/NAME@REVISION, is downloaded to the cache.

    A path in an existing folder, such as runs/first, is never looked up on the hub. ``transformers:`` in front is left
    out.

    Raises:
        InputError: The hub cannot be reached, or has no such model, or only one with pickled weights.
    """
    name = str(path).removeprefix(TRANSFORMERS)
    return download(name) if is_hub_name(name) else Path(name)


@functools.cache
def download(name: str) -> Path:
    """Download a model from the hub, once per process, and return its folder in the cache.

    Raises:
        InputError: As ``resolve_model_path``.
    """
    with optional_packages():
        import huggingface_hub

    repository, _, revision = name.partition("@")
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                repository, revision=revision or None, allow_patterns=[*TransformersFolder.files]
            )
        )
    except Exception as error:  # of many kinds: no network, no such model, no permission, a full disk
        reason = " ".join(str(error).split())
        raise InputError(
            f"{name}: no such folder, and the model could not be fetched from the Hugging Face hub; check the name and "
            f"the network: {reason[:300]}"
        ) from None
    if not any(folder.glob("model*.safetensors")):
        raise InputError(
            f"{name}: has no model.safetensors, and pickles are not read, because opening one could run code in it. "
            f"This makes a folder with one: {TO_SAFETENSORS.format(repository, repository.rpartition('/')[2])}"
        )
    return folder
