"""Checks before a run is resumed: its files and pairs are unchanged, and a change of precision is reported."""

import logging

from mt.config import TrainConfig
from mt.core.errors import InputError
from mt.storage.run_folder import PROVENANCE
from mt.training.provenance import changed_files, precision_of, read_provenance, with_start

logger = logging.getLogger(__name__)

MAX_FILES_NAMED = 10
"""In the message about changed files."""


def resumed_provenance(config: TrainConfig, current: dict, update: int) -> dict:
    """Return the content of provenance.json for a run that is resumed after ``update``.

    Args:
        config: The run's config.
        current: The provenance of a run that begins now.
        update: The last update that is done.

    Raises:
        InputError: The run's data have changed since it began.
    """
    run = config.folder
    recorded = read_provenance(run)
    if files := list(changed_files(recorded, current)):
        more = [f"and {len(files) - MAX_FILES_NAMED} more"] if len(files) > MAX_FILES_NAMED else []
        raise InputError(
            f"{run}: its files are not those that the run began with (see {PROVENANCE}):\n  "
            + "\n  ".join([*files[:MAX_FILES_NAMED], *more])
            + "\nPut them back, or give a new run another name (name=…)"
        )
    changed = [split for split, facts in current["data"].items() if recorded["data"].get(split) != facts]
    if changed:
        raise InputError(
            f"{run}: the {' and '.join(changed)} pairs have changed since the run began (see {PROVENANCE}); "
            "give a new run another name (name=…)"
        )
    recorded = with_start(recorded, current, update)
    before, now = (precision_of(start) for start in recorded["starts"][-2:])
    if before != now:
        logger.warning(
            "training.precision=%s is %s here, but was %s up to update %d: the result will be another than where the "
            "run began",
            config.training.precision,
            now,
            before,
            update,
        )
    return recorded
