"""Checks when a train command is given again: whether data or precision have changed since the run began."""

import logging
import os
from collections.abc import Iterator

from mt.config import FilesConfig, TableConfig, TrainConfig, single_corpora
from mt.core.errors import InputError
from mt.data.corpus import load_corpus
from mt.storage.run_folder import PROVENANCE
from mt.training.provenance import precision_of, read_provenance, with_start

logger = logging.getLogger(__name__)

MAX_FILES_NAMED = 10
"""Changed files that the message names."""


def warn_of_changed_data(config: TrainConfig) -> None:
    """Log a warning if the files of a finished run have other pairs now. A data set of a hub or recipe is not read."""
    if not all(isinstance(corpus, FilesConfig | TableConfig) for corpus in single_corpora(config.data)):
        return
    try:
        if read_provenance(config.folder).get("corpus") in (None, load_corpus(config.data, tell=False).checksums):
            return
        finding = "these are not the results of the present data, whose pairs have changed since"
    except (InputError, OSError) as error:
        finding = f"it cannot be checked whether these are the results of the present data: {error}"
    logger.warning(
        "%s: %s. To train on the present data, start a new run under another name (name=…)", config.folder, finding
    )


def resumed_provenance(config: TrainConfig, current: dict, update: int) -> dict:
    """Return the content of provenance.json for a run that is resumed, with its new start.

    A warning is logged if the precision of this start differs from that of the last one.

    Args:
        config: The config of the run.
        current: The provenance of a new run in the present conditions, from ``begin_provenance``.
        update: The number of updates done.

    Raises:
        InputError: The data of the run have changed since it began.
    """
    run = config.folder
    recorded = read_provenance(run)
    if files := list(_changed_files(recorded, current)):
        raise InputError(
            f"{run}: its input files have changed since the run began ({len(files)} of them, see {PROVENANCE}):\n  "
            + "\n  ".join(files[:MAX_FILES_NAMED])
            + "\nRestore them, or start a new run under another name (name=…)"
        )
    changed = [split for split, digest in current["data"].items() if recorded["data"].get(split) != digest]
    if changed:
        raise InputError(
            f"{run}: the {' and '.join(changed)} pairs have changed since the run began (see {PROVENANCE}); "
            "restore them, or start a new run under another name (name=…)"
        )
    recorded = with_start(recorded, current, update)
    before, now = (precision_of(start) for start in recorded["starts"][-2:])
    if before != now:
        logger.warning(
            "training.precision=%s means %s here, but meant %s up to update %d, so the results will differ. To avoid "
            "that, resume the run on a machine like the one before",
            config.training.precision,
            now,
            before,
            update,
        )
    return recorded


def _changed_files(recorded: dict, now: dict) -> Iterator[str]:
    """Yield a message for each input file that was added, removed or changed, or is left out now but was not, or was
    but is not now. A file with the pairs of one that is gone counts as moved, which is no change.

    Args:
        recorded: The content of provenance.json.
        now: The provenance of a new run in the present conditions, from ``begin_provenance``.
    """
    before, after = (
        {
            (split, *map(os.path.abspath, file["paths"])): file
            for split, files in provenance.get("files", {}).items()
            for file in files
        }
        for provenance in (recorded, now)
    )
    gone: dict[tuple, list] = {}
    for key, file in before.items():
        if key not in after:
            gone.setdefault(_content_key(key[0], file), []).append(key)
    for key, file in after.items():
        if key not in before and (old_keys := gone.get(_content_key(key[0], file))):
            before[key] = before.pop(old_keys.pop(0))
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if old is None:
            change = "new"
        elif new is None:
            change = "no longer among the files"
        elif new["left_out"] and not old["left_out"]:
            change = f"now left out: {new['left_out']}"
        elif old["left_out"] and not new["left_out"]:
            change = "was left out and can be read now"
        elif old["sha256"] != new["sha256"]:
            change = "has other pairs"
        else:
            continue
        yield f"{key[0]}: {' + '.join((new or old or {})['paths'])}: {change}"


def _content_key(split: str, file: dict) -> tuple:
    """Return a key that is the same for a moved file: its content or, if that is left out, its name."""
    return split, file["sha256"], *(map(os.path.basename, file["paths"]) if file["left_out"] else ())
