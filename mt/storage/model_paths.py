"""Paths of runs and models, checked without PyTorch: names on the Hugging Face hub, and the run nearest to a missing
one."""

import contextlib
import os
import re
from itertools import chain, islice
from pathlib import Path

from mt.core.wording import nearest
from mt.storage.run_folder import MODEL

MAX_CANDIDATES = 1000
"""Maximum number of files and folders that may be runs, for the hint on a folder that is no run."""

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
"""A model on the Hugging Face hub: OWNER/NAME, optionally with @REVISION."""


def is_hub_name(name: str) -> bool:
    """Return whether a path is a name on the hub: there is neither such a path nor its parent. runs/NAME is none."""
    path = Path(name)
    is_local = path.exists() or path.parent.is_dir() or path.parts[0] == "runs"
    return not is_local and HUB_NAME.fullmatch(name) is not None


def nearest_run(path: Path) -> str:
    """Return advice for a path that is no run, as the end of a message: the newest run in or above a folder, or the run
    with the most similar name beside or below a missing path."""
    base = path if path.exists() else path.parent
    with contextlib.suppress(OSError):
        candidates = [base / "..", *islice(chain(base.glob("*"), base.glob("*/*")), MAX_CANDIDATES)]
        runs = [os.path.normpath(folder) for folder in candidates if (folder / MODEL).is_file()]
        if base == path and runs:
            return f"; did you mean {max(runs, key=os.path.getmtime)}?"
        names = {os.path.basename(run): run for run in runs}
        if near := nearest(path.name, list(names), min_similarity=0.75):
            return f"; did you mean {names[near]}?"
    return "; give the folder of a run, such as runs/NAME"
