"""The learning-rate schedules."""

import math

from mt.config import ScheduleConfig


def schedule_factor(config: ScheduleConfig, update: int, max_updates: int) -> float:
    """Return the learning rate at ``update`` (the first is 1) as a share of its peak.

    This is a pure function, so that a resumed run needs no state of the schedule.
    """
    if update <= config.warmup:
        return update / config.warmup
    if config.kind == "inverse_sqrt":  # Vaswani et al. 2017, section 5.3
        return math.sqrt(max(config.warmup, 1) / update)
    done = min(1.0, (update - config.warmup) / (max_updates - config.warmup))
    return 1 - done if config.kind == "linear" else (1 + math.cos(math.pi * done)) / 2
