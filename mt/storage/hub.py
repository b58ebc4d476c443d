"""Models on the Hugging Face hub: OWNER/NAME, optionally with @REVISION."""

import functools
import re
from pathlib import Path

from mt.core.errors import InputError
from mt.core.installation import optional_packages

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
HUB_FILES = [
    "config.json",
    "model.safetensors",
    "generation_config.json",
    "source.spm",
    "target.spm",
    "tokenizer_config.json",
    "vocab.json",
    "target_vocab.json",
]
"""Files of a MarianMT model. No others are downloaded."""
TO_SAFETENSORS = (
    'python -c "from transformers import MarianMTModel, MarianTokenizer; '
    "[kind.from_pretrained('{0}').save_pretrained('{1}') for kind in (MarianTokenizer, MarianMTModel)]\""
)
"""Command that converts a model with pickled weights to a folder with model.safetensors."""


def resolve_model_path(path: str | Path) -> Path:
    """Return the folder of a model. A name on the hub, OWNER/NAME or OWNER/NAME@REVISION, is downloaded to the cache.

    A path in an existing folder, such as runs/first, is never looked up on the hub.

    Raises:
        InputError: The hub cannot be reached, or has no such model, or only one with pickled weights.
    """
    return download(str(path)) if _is_hub_name(str(path)) else Path(path)


def pinned_hub_name(path: str | Path) -> str | None:
    """Return OWNER/NAME@COMMIT of a model on the hub, downloading the model if needed; None if ``path`` is a folder.

    Raises:
        InputError: As ``resolve_model_path``.
    """
    return f"{str(path).partition('@')[0]}@{resolve_model_path(path).name}" if _is_hub_name(str(path)) else None


def _is_hub_name(name: str) -> bool:
    return not (Path(name).exists() or Path(name).parent.is_dir()) and HUB_NAME.fullmatch(name) is not None


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
            huggingface_hub.snapshot_download(repository, revision=revision or None, allow_patterns=HUB_FILES)
        )
    except Exception as error:  # of many kinds: no network, no such model, no permission, a full disk
        reason = " ".join(str(error).split())
        raise InputError(
            f"{name}: no such folder, and the model could not be fetched from the Hugging Face hub; check the name and "
            f"the network: {reason[:300]}"
        ) from None
    if not (folder / "model.safetensors").is_file():
        raise InputError(
            f"{name}: has no model.safetensors, and pickles are not read, because opening one could run code in it. "
            f"This makes a folder with one: {TO_SAFETENSORS.format(repository, repository.rpartition('/')[2])}"
        )
    return folder
