"""Opening of model folders of any kind."""

import os
from pathlib import Path

from mt.core.errors import InputError
from mt.core.files import resolved
from mt.storage.hub import resolve_model_path
from mt.storage.marian import MarianFolder, is_marian
from mt.storage.model_description import ModelDescription
from mt.storage.model_folder import ModelFolder
from mt.storage.native import NativeFolder
from mt.storage.run_folder import CONFIG, MODEL


def open_folder(path: str | Path) -> ModelFolder:
    """Return the run or model folder at a path, or of a name on the hub.

    Raises:
        InputError: It does not exist, or see ``refuse_links_out``.
    """
    folder = resolve_model_path(path)
    if not folder.is_dir():
        raise InputError(f"{path}: no such run or model folder")
    if folder == Path(path):  # the hub's cache consists of links
        refuse_links_out(folder)
    return MarianFolder(folder) if is_marian(folder) else NativeFolder(folder)


def read_description(path: str | Path) -> ModelDescription:
    """Read the description of a model. Raise InputError if it is missing or damaged."""
    return open_folder(path).read_description()


def is_model_without_run(folder: Path) -> bool:
    """Return whether a folder holds a model, but not the run that trained it."""
    return is_marian(folder) or ((folder / MODEL).is_file() and not (folder / CONFIG).exists())


def refuse_links_out(folder: Path) -> None:
    """Raise InputError if a folder holds symbolic links out of it, or special files such as pipes or devices.

    A folder may come from somebody else. Through a link it could expose or change other files of the user.
    """
    home = folder.resolve()
    if home == home.parent:
        raise InputError(f"{folder}: not a run or model folder")  # the root, and walking it would read all disks
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in folders + files):
            if path.is_symlink() and not resolved(path).is_relative_to(home):
                raise InputError(
                    f"{path}: a link that leads out of the folder; replace it by a copy of what it points to"
                )
            if path.exists() and not path.is_file() and not path.is_dir():
                raise InputError(f"{path}: neither a file nor a folder")
