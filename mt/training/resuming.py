"""Checks when a train command is given again: whether data or precision have changed since the run began."""

import logging

from mt.config import PileConfig, TrainConfig, single_corpora
from mt.core.errors import InputError
from mt.core.wording import counted
from mt.data.corpus import load_corpus
from mt.storage.run_folder import PROVENANCE
from mt.training.provenance import precision_of, read_provenance, with_start

logger = logging.getLogger(__name__)

MAX_FILES_NAMED = 10
"""Changed files that the message names."""


def warn_of_changed_data(config: TrainConfig) -> None:
    """Log a warning if the files of a finished run have other pairs now. A data set of a hub or recipe is not read."""
    if not all(isinstance(corpus, PileConfig) for corpus in single_corpora(config.data)):
        return
    try:
        if read_provenance(config.folder)["corpus"] == load_corpus(config.data, tell=False).checksums:
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
    if changed := [split for split, digest in current["data"].items() if recorded["data"][split] != digest]:
        files = _changed_files(recorded, current)
        named = f" in {counted(len(files), 'file')}: {', '.join(files[:MAX_FILES_NAMED])}" if files else ""
        raise InputError(
            f"{run}: the {' and '.join(changed)} pairs have changed since the run began (see {PROVENANCE}){named}; "
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


def _changed_files(recorded: dict, current: dict) -> list[str]:
    """Return the input files whose pairs are in only one of two contents of provenance.json.

    A file that was moved has the same pairs. Nothing is known of the files of a run that names one for each split.
    """
    before, after = (
        {
            (split, file["sha256"] or file["paths"][0]): " + ".join(file["paths"])
            for split, files in provenance.get("files", {}).items()
            for file in files
        }
        for provenance in (recorded, current)
    )
    return sorted({(before | after)[key] for key in before.keys() ^ after.keys()})
