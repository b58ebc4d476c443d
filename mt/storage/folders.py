"""Opens run folders, model folders, MarianMT folders, models of ``transformers`` and those of the Hugging Face hub, all
as a ``ModelFolder``."""

import functools
import os
from pathlib import Path

from mt.config.fields import TRANSFORMERS
from mt.core.errors import InputError
from mt.core.files import resolved
from mt.core.installation import optional_packages
from mt.core.output import is_device
from mt.storage.marian import TO_SAFETENSORS, MarianFolder, is_transformers_folder
from mt.storage.model_description import ModelDescription
from mt.storage.model_folder import ModelFolder, NativeFolder
from mt.storage.model_paths import is_hub_name, nearest_run
from mt.storage.run_folder import CONFIG, MODEL
from mt.storage.transformers_folder import TransformersFolder


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
    """Raise InputError if a folder is no run or model, or if ``refuse_links_out`` refuses it."""
    if not is_transformers_folder(folder) and not any(map(os.path.lexists, (folder / MODEL, folder / CONFIG))):
        raise InputError(f"{folder}: no run or model folder: there is no {MODEL} in it{nearest_run(folder)}")
    refuse_links_out(folder)


def read_description(path: str | Path) -> ModelDescription:
    """Read languages, architecture, text layer and default decoding of a model. Raise InputError as ``open_folder``
    does, or if the description is missing or damaged."""
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


def pinned_hub_name(path: str | Path) -> str | None:
    """Return OWNER/NAME@COMMIT of a model on the hub, downloading the model if needed; None if ``path`` is a folder.

    Raises:
        InputError: As ``resolve_model_path``.
    """
    return f"{str(path).partition('@')[0]}@{resolve_model_path(path).name}" if is_hub_name(str(path)) else None


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
