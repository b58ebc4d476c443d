"""Opens run folders, model folders and MarianMT folders, all as a ``ModelFolder``."""

import contextlib
import os
from itertools import chain, islice
from pathlib import Path

from mt.core.errors import InputError
from mt.core.files import resolved
from mt.core.output import is_device
from mt.storage.hub import resolve_model_path
from mt.storage.marian import MarianFolder, is_transformers_folder
from mt.storage.model_description import ModelDescription
from mt.storage.model_folder import ModelFolder, NativeFolder
from mt.storage.run_folder import CONFIG, MODEL

MAX_CANDIDATES = 1000
"""Maximum number of files and folders that may be runs, for the hint on a folder that is no run."""


def open_folder(path: str | Path) -> ModelFolder:
    """Open a run, model or MarianMT folder. A name on the Hugging Face hub is downloaded first.

    Raises:
        InputError: The folder does not exist, the hub has no such model, or ``refuse_unsafe_folder`` refuses it.
    """
    folder = resolve_model_path(path)
    if not folder.is_dir():
        raise InputError(f"{path}: no such run or model folder; check the path")
    if folder == Path(path):  # the hub's cache consists of links
        refuse_unsafe_folder(folder)
    return MarianFolder(folder) if is_transformers_folder(folder) else NativeFolder(folder)


def refuse_unsafe_folder(folder: Path) -> None:
    """Raise InputError if a folder is no run or model, or if ``refuse_links_out`` refuses it."""
    if not is_transformers_folder(folder) and not any(map(os.path.lexists, (folder / MODEL, folder / CONFIG))):
        raise InputError(f"{folder}: no run or model folder: there is no {MODEL} in it{_hint(folder)}")
    refuse_links_out(folder)


def _hint(folder: Path) -> str:
    """Return advice for a folder that is no run, as the end of a message: the folder's newest run, if it has any."""
    with contextlib.suppress(OSError):
        candidates = [folder / "..", *islice(chain(folder.iterdir(), folder.glob("*/*")), MAX_CANDIDATES)]
        if runs := [path for path in candidates if os.path.isfile(path / MODEL)]:
            return f"; did you mean {os.path.normpath(max(runs, key=os.path.getmtime))}?"
    return "; give the folder of a run, such as runs/NAME"


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
