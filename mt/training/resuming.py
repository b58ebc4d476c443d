"""Checks before a run is resumed: its data must be unchanged, and a change of precision is reported."""

import logging

from mt.config import TrainConfig
from mt.core.errors import InputError
from mt.storage.run_folder import PROVENANCE
from mt.training.provenance import changed_files, precision_of, read_provenance, with_start

logger = logging.getLogger(__name__)

MAX_FILES_NAMED = 10
"""Changed files that the message names."""


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
    if files := list(changed_files(recorded, current)):
        more = [f"and {len(files) - MAX_FILES_NAMED} more"] if len(files) > MAX_FILES_NAMED else []
        raise InputError(
            f"{run}: its input files have changed since the run began (see {PROVENANCE}):\n  "
            + "\n  ".join([*files[:MAX_FILES_NAMED], *more])
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
