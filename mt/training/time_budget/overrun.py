"""The warning that a run will take much longer than ``training.minutes``. It never changes the run."""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass
from statistics import median

from mt.config import TrainingConfig
from mt.training.checkpoint import Progress

logger = logging.getLogger(__name__)

MAX_OVERRUN = 1.25
"""Warn if the run will take more than this many times the minutes asked for."""
MIN_SEGMENT_SHARE = 1 / 20
"""The least time of a segment of updates, as a share of the minutes asked for. A slow period that is no longer than
this cannot make all recent segments slow."""
RECENT = 3
"""How many segments, and how many validations, count as recent. Warn by the fastest of them, so that all have to be
slow. Tell the estimate by their median, because a load that has just begun slowed only a part of the first one."""


@dataclass
class OverrunMonitor:
    """Estimates the total time of a run with ``training.minutes``, and warns once. The leader holds one."""

    training: TrainingConfig
    """The settings of the run, with ``minutes``."""
    start: InitVar[Progress]
    """The progress before the first update of this process. Of earlier processes of the run, only the time of their
    updates is known."""
    seconds_after_training: float
    """The estimated time from the last validation to the end of the run."""
    process_seconds: Callable[[], float]
    """Returns the seconds since this process began to work on the run."""

    def __post_init__(self, start: Progress) -> None:
        assert self.training.minutes is not None
        self._minutes = self.training.minutes
        self._earlier_seconds = start.seconds
        self._segment_start = start.update, start.seconds
        self._update_seconds: deque[float] = deque(maxlen=RECENT)  # the mean in each segment
        self._validation_seconds: deque[float] = deque(maxlen=RECENT)
        self._has_warned = False

    def record_update(self, progress: Progress) -> None:
        """Record the update that ``progress`` has just counted. Warn if the run will take too long."""
        first_update, first_seconds = self._segment_start
        seconds = progress.seconds - first_seconds
        if seconds >= MIN_SEGMENT_SHARE * 60 * self._minutes:
            self._update_seconds.append(seconds / (progress.update - first_update))
            self._segment_start = progress.update, progress.seconds
            self._warn_if_too_slow(progress.update)

    def record_validation(self, progress: Progress, seconds: float) -> None:
        """Record the time of the validation at the current update. Warn if the run will take too long."""
        self._validation_seconds.append(seconds)
        self._warn_if_too_slow(progress.update)

    def _warn_if_too_slow(self, update: int) -> None:
        if self._has_warned or self._total_minutes(update, min) <= MAX_OVERRUN * self._minutes:
            return
        self._has_warned = True
        logger.warning(
            "training.minutes=%g, but at its recent speed this run takes about %.1f minutes. It keeps its length and "
            "its learning rates (training.max_updates=%d). End other programs that use this machine. Or stop the run "
            "with Ctrl-C, which saves its state but gives no finished model, and start a new one under another name "
            "(name=…) with the minutes that are left, and with fewer training.max_updates if you set them",
            self._minutes,
            self._total_minutes(update, median),
            self.training.max_updates,
        )

    def _total_minutes(self, update: int, average: Callable[[Iterable[float]], float]) -> float:
        """Estimate the minutes of the whole run after ``update`` updates.

        ``average`` summarises the recent times of updates, and those of validations. Fewer than RECENT times count as
        0.
        """
        per_update, per_validation = (
            average(seconds) if len(seconds) == RECENT else 0.0
            for seconds in (self._update_seconds, self._validation_seconds)
        )
        elapsed = self._earlier_seconds + self.process_seconds()
        remaining = self.training.max_updates - update
        remaining_seconds = remaining * (per_update + per_validation / self.training.validate_every)
        return (elapsed + remaining_seconds + self.seconds_after_training) / 60
